# SPDX-License-Identifier: Apache-2.0
"""Has the tests, in a folder for each standard, and the interface between a test and a run (`procedure`).

A test asks for trials, takes their records and answers; most are a `series` of trials. A loss goal becomes a verdict
like this: `rfc2544.throughput` passes the goals to the search, and turns its answer into an outcome. Nothing here
makes a test bed. May import `plan.reading`, `plan.keys`, `plan.resolved` and `measure.inputs`.
"""
