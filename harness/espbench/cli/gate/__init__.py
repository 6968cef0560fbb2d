# SPDX-License-Identifier: Apache-2.0
"""The commands of the regression gate, `check` and `baseline`, and the parts that they share with `bisect`.

`espbench run` measures each run in a process of its own (`measuring`), so that it is made like every other run.
May import `results`, `plan`, `plan.resolved`, `runs`, `comparison`, `gate` and `gate.*`.
"""
