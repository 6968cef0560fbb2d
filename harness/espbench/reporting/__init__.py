# SPDX-License-Identifier: Apache-2.0
"""Results → documents: `write_report` in `report`; its templates are in reports/ at the project's root.

`parts` is what all documents are made with, `findings` and `one_run` are the report of a run, `compared` and
`published` the documents of several. May import `results`, `comparison`, `comparison.sorting` and
`reporting.*`.
"""
