# SPDX-License-Identifier: Apache-2.0
"""Has the tests, in a folder for each standard, and the interface between a test and a run (`procedure`).

A test asks for trials, gets their records and returns its answer; most tests are a `series` of trials. For example,
`rfc2544.throughput` passes the loss goals to the search, and turns the search's answer into an outcome. Nothing here
makes a test bed. May import `plan.reading`, `plan.keys`, `plan.resolved` and `measure.inputs`.
"""
