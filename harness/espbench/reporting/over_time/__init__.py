# SPDX-License-Identifier: Apache-2.0
"""Many runs as one page that needs no server: lists, a series with its changes, two runs side by side.

May import `results`, `over_time` and `reporting.parts`.
"""
