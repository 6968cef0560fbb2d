# SPDX-License-Identifier: Apache-2.0
"""Writes the report of cipher kernels on network processors: its tables, charts and document.

May import `results`, `npcrypt.ciphers`, `reporting.parts` and `reporting.published`.
"""
