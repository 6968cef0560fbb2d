# SPDX-License-Identifier: Apache-2.0
"""Holds the pytest hooks around the tests: which tests this machine can run, and which failures are excused."""
