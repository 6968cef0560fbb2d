# SPDX-License-Identifier: Apache-2.0
"""The verdict of a check as files: JSON, JUnit XML, Markdown; `figures` words what they share.

May import `results.exports` and `gate`.
"""
