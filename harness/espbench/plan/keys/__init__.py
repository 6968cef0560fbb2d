# SPDX-License-Identifier: Apache-2.0
"""The keys of a plan: what each may hold, its default, and what it means.

`model` is the whole plan; the settings of tests, stacks, generators and ports have a module each; `values`
says what kinds of value there are. A mistake that one key shows by itself is found here, any other in
`plan.checks`. May import `plan.reading`, `plan.traffic` and `catalogue`.
"""
