# SPDX-License-Identifier: Apache-2.0
"""Has what several tests share: test set-ups, devices of known truth, and ways to start and watch espbench.

Test files import these modules, and never each other (docs/testing.md has a line for each).
"""
