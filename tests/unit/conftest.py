# SPDX-License-Identifier: Apache-2.0
"""Unit tests: the fixtures of the SEC model, and what thousands of tests need not do again and again."""

import functools
import os
from collections.abc import Iterator

import pytest
import typer.main
import typer.testing

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


@pytest.fixture(scope="session", autouse=True)
def parser_made_once() -> Iterator[None]:
    """Typer makes the parser of all commands anew for each command line: 20 ms, and the same for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(typer.main.get_command)
        patch.setattr(typer.main, "get_command", once)
        patch.setattr(typer.testing, "_get_command", once)
        yield
