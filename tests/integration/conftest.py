# SPDX-License-Identifier: Apache-2.0
"""Tests on real traffic: stalls of the host that explain a failure excuse it, a few times (host_stalls.py)."""

from host_stalls import pytest_runtest_protocol, pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_runtest_protocol", "pytest_sessionfinish", "pytest_terminal_summary"]
