# SPDX-License-Identifier: Apache-2.0
"""A comparison in plain sentences: who is faster, what it costs, and what a reader must know beside it.

May import `comparison.sorting` and `comparison.deciding`.
"""
