# SPDX-License-Identifier: Apache-2.0
"""The keys of a plan: the values of each, its default, and its meaning.

`model` is the whole plan. The settings of tests, stacks, generators and ports have a module each. `values` defines
the kinds of values. A mistake that shows in one key alone is found here, any other in `plan.checks`. May import
`plan.reading`, `plan.traffic` and `catalogue`.
"""
