# SPDX-License-Identifier: Apache-2.0
"""The command `history`, which lists the figures of many runs, in the terminal or as JSON.

May import `over_time` and `reporting.over_time`.
"""
