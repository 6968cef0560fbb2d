# SPDX-License-Identifier: Apache-2.0
"""Restores the signal handlers of the tests' own process after tests of code that sets others."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from espbench.this_machine.ending import ENDING


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the signal handlers of this process afterwards."""
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def own_handlers() -> Iterator[None]:
    """Restore the signal handlers after each test."""
    with handlers_kept():
        yield
