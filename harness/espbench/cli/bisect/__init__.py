# SPDX-License-Identifier: Apache-2.0
"""The command `bisect`: searches a commit, and then shows which functions it made dearer.

Commits are measured like a check, and profiled like `espbench profile` does. May import `plan`, `results`, `runs`,
`gate`, `gate.commits`, `profile`, `cli.gate` and `cli.profile`.
"""
