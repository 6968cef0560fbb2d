# SPDX-License-Identifier: Apache-2.0
"""The tests beside throughput in a report, each in its standard's form.

`finding_view` is the section; a test that it does not know is shown by its figures and its curve, so a new
test needs nothing here. May import `results` and `reporting.parts`.
"""
