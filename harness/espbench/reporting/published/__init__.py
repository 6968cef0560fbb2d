# SPDX-License-Identifier: Apache-2.0
"""Writes documents that compare published figures with those of emulated devices.

May import `results`, `plan.duts`, `claims`, `npcrypt.ciphers`, `comparison.sorting` and `reporting.parts`.
"""
