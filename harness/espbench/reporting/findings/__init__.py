# SPDX-License-Identifier: Apache-2.0
"""Reports the tests other than throughput, each in the form that its standard requires.

`finding_view` makes the sections. It shows a test that it does not know by its figures and its curve, so a new test
needs no code here. May import `results` and `reporting.parts`.
"""
