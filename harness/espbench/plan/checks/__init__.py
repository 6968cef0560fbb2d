# SPDX-License-Identifier: Apache-2.0
"""Checks rules that involve several keys of a plan: keys that contradict each other, frames that cannot pass.

Each module has functions from a resolved plan to problems; `all_checks` lists them. Put a new check into the module
of its subject, and its function into that list. May import `plan.reading`, `plan.traffic`, `plan.keys`, `plan.duts`,
`plan.resolved` and `catalogue`.
"""
