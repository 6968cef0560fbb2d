# SPDX-License-Identifier: Apache-2.0
"""Has the statistics of a comparison: it makes ratios, intervals and verdicts from points.

`statistics` and `verdicts` decide by searches, `paired_ratios` by trials at the same loads, `overheads`
against baselines. May import `comparison.sorting`.
"""
