# SPDX-License-Identifier: Apache-2.0
"""A plan with everything it names, and what follows from it.

`resolved_plan` is that plan. `cases` lists its cases, `arms` what it compares and the order of the cases.
`conditions` lists what must be equal for two runs to be comparable, and `asked` lists every key that must be equal
to resume a run. May import `plan.reading`, `plan.traffic`, `plan.keys`, `plan.duts` and `catalogue`.
"""
