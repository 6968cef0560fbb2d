# SPDX-License-Identifier: Apache-2.0
"""Stalls of the host that explain a failure excuse it, a few times (host_stalls.py); long files begin (order.py)."""

from support.session.host_stalls import pytest_runtest_protocol, pytest_sessionfinish, pytest_terminal_summary
from support.session.order import pytest_collection_modifyitems
from support.wire import generator, net, router, wire
from support.workshop import shop

__all__ = [
    "generator",
    "net",
    "pytest_collection_modifyitems",
    "pytest_runtest_protocol",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "router",
    "shop",
    "wire",
]
