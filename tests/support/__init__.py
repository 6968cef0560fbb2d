# SPDX-License-Identifier: Apache-2.0
"""Holds the shared support of the tests: test set-ups, devices of known truth, and ways to start and watch espbench.

Test files import these modules, and never each other (docs/testing.md describes each module in a line).
"""
