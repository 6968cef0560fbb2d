# SPDX-License-Identifier: Apache-2.0
"""Has the statistics of a comparison: it makes ratios, intervals and verdicts from points.

`statistics` and `verdicts` judge the results of searches, `paired_ratios` judges trials at the same loads, and
`overheads` compares with the baselines. May import `comparison.sorting`.
"""
