# SPDX-License-Identifier: Apache-2.0
"""The report of cipher kernels on network processors: its tables, its charts, its document.

May import `results`, `npcrypt.ciphers`, `reporting.parts` and `reporting.published`.
"""
