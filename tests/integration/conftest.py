# SPDX-License-Identifier: Apache-2.0
"""Stalls of the host that explain a failure excuse it, a few times (host_stalls.py); what failed beside others is tried
alone (company.py); long files begin (order.py).
"""

from support.gateways.workshop import shop
from support.generators.wire import generator, net, router, wire
from support.session.company import (
    pytest_addoption,
    pytest_collection_finish,
    pytest_report_collectionfinish,
)
from support.session.host_stalls import pytest_configure, pytest_runtest_protocol
from support.session.order import pytest_collection_modifyitems

__all__ = [
    "generator",
    "net",
    "pytest_addoption",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_collectionfinish",
    "pytest_runtest_protocol",
    "router",
    "shop",
    "wire",
]
