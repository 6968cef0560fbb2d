# SPDX-License-Identifier: Apache-2.0
"""The user's tree and its revisions: `tree` runs git and the user's command, `bisecting` finds a commit; `history`.

May import `results`.
"""
