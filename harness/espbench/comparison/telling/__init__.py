# SPDX-License-Identifier: Apache-2.0
"""Writes a comparison in plain sentences: which arm is faster, what it costs, and what else a reader must know.

May import `comparison.sorting` and `comparison.deciding`.
"""
