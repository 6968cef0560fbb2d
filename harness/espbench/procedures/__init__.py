# SPDX-License-Identifier: Apache-2.0
"""What a test is to a run (`procedure`), and what tests share.

A test asks for trials, takes their records and answers; most are a `series` of trials. The tests have a
folder for each standard. From a loss goal to its verdict: `rfc2544.throughput` hands the goals to the search,
whose answer it turns into an outcome. Nothing here makes a test bed. May import `plan.reading`, `plan.keys`,
`plan.resolved` and `measure.inputs`.
"""
