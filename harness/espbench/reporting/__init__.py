# SPDX-License-Identifier: Apache-2.0
"""Writes documents from results: `write_report` in `report`. The templates are in reports/ at the project's root.

`parts` has what all documents share. `findings` and `one_run` make the report of a run, `compared` and `published` the
documents of several runs. May import `results`, `results.exports`, `comparison`, `comparison.sorting` and
`reporting.*`.
"""
