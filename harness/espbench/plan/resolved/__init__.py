# SPDX-License-Identifier: Apache-2.0
"""A plan with everything it names, and what follows from it.

`resolved_plan` is that plan; `cases` lists what is to be measured, `arms` what is compared and in which
order, `conditions` what must be equal for two runs to be comparable, `asked` every key a resumed run must
have in common with its beginning. May import `plan.reading`, `plan.traffic`, `plan.keys`, `plan.duts` and
`catalogue`.
"""
