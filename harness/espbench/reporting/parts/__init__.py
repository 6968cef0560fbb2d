# SPDX-License-Identifier: Apache-2.0
"""Has the parts of all documents: numbers and statements as text, tables, charts, templates.

`trial_digest` reads the trials once for everything that is reported about them. May import `this_machine` and
`results`.
"""
