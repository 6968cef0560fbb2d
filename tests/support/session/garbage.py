# SPDX-License-Identifier: Apache-2.0
"""Keeps the collector of garbage from what was imported: it would look through all of that again and again."""

import gc

import pytest

gc.disable()  # until all is imported


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Let it look at what the tests make."""
    gc.freeze()
    gc.enable()
