# SPDX-License-Identifier: Apache-2.0
"""Tests on real traffic: stalls of the host that explain a failure excuse it, a few times (host_stalls.py)."""

from support.session.host_stalls import pytest_runtest_protocol, pytest_sessionfinish, pytest_terminal_summary
from support.wire import generator, net, router, wire
from support.workshop import shop

__all__ = [
    "generator",
    "net",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "router",
    "shop",
    "wire",
]
