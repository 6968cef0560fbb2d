# SPDX-License-Identifier: Apache-2.0
"""Shows many runs in one page that needs no server: lists, series with their changes, two runs side by side.

May import `results`, `over_time` and `reporting.parts`.
"""
