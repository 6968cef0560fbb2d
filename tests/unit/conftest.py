# SPDX-License-Identifier: Apache-2.0
"""Unit tests: the SEC model's fixtures, charts that are not drawn, and files that need not outlive a power cut."""

import os
from collections.abc import Iterator

import pytest

from support.sec.models import console, make, sec
from support.session.pictures import pictures_by_digest
from support.signal_handlers import own_handlers

__all__ = ["console", "make", "own_handlers", "pictures_by_digest", "sec"]


@pytest.fixture(scope="session", autouse=True)
def no_power_cuts() -> Iterator[None]:
    """Thousands of made-up trials are written here; who waits for the disk is tested by what he asks of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
