# SPDX-License-Identifier: Apache-2.0
"""The tests of RFC 2544, one module each, and `flood`; `warm_start` guesses where a search begins.

May import `plan.keys`, `plan.resolved`, `search`, `measure.inputs` and `procedures`.
"""
