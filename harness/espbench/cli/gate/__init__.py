# SPDX-License-Identifier: Apache-2.0
"""The commands of the regression gate: `check`, `baseline`, `bisect`, and what they share.

A run is measured by `espbench run` in a process of its own (`measuring`), so that it is made as every run is.
May import `results`, `plan`, `plan.resolved`, `runs`, `comparison`, `gate` and `gate.*`.
"""
