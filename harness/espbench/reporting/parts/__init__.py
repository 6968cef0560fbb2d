# SPDX-License-Identifier: Apache-2.0
"""What all documents are made with: numbers and statements as text, tables, charts, templates.

`trial_digest` reads the trials once for everything that is told of them. May import `this_machine` and
`results`.
"""
