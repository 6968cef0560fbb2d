# SPDX-License-Identifier: Apache-2.0
"""The command of many runs, `history`: what it lists in the terminal and as JSON.

May import `over_time` and `reporting.over_time`.
"""
