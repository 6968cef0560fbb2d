# SPDX-License-Identifier: Apache-2.0
"""Published against emulated as documents.

May import `results`, `plan.duts`, `claims` and `reporting.parts`.
"""
