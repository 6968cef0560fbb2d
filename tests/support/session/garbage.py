# SPDX-License-Identifier: Apache-2.0
"""Excludes imported objects from garbage collection, which would otherwise examine all of them again and again."""

import gc

import pytest

gc.disable()  # until all is imported


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Exclude all objects made so far, and collect those that the tests make."""
    gc.freeze()
    gc.enable()
