# SPDX-License-Identifier: Apache-2.0
"""Prepares the report of one run: `view` words the throughputs and puts the sections together.

May import `results`, `reporting.parts` and `reporting.findings`.
"""
