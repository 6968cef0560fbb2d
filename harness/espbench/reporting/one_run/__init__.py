# SPDX-License-Identifier: Apache-2.0
"""One run as a reader sees it: `view` words the throughputs and puts the sections together.

May import `results`, `reporting.parts` and `reporting.findings`.
"""
