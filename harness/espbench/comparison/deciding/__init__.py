# SPDX-License-Identifier: Apache-2.0
"""From points to ratios, intervals and verdicts: the statistics of a comparison.

`statistics` and `verdicts` decide by searches, `paired_ratios` by trials at the same loads, `overheads`
against baselines. May import `comparison.sorting`.
"""
