# SPDX-License-Identifier: Apache-2.0
"""Makes a run, from its plan to its last outcome: the one part that knows platforms, stacks, generators and tests.

`session` runs the cases, on test set-ups (`setups`) made of test beds (`beds`) with a stack on them.
`platform_kinds/table` is the table of platforms and `procedure_kinds` that of tests: a new platform or test needs a row
there. `stack_kinds` makes the stack that a plan names. May import `catalogue`, `this_machine`, `plan.*`, `platforms.*`,
`stacks.*`, `generators`, `measure.*`, `procedures.*` and `runs.platform_kinds.*`.
"""
