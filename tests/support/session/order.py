# SPDX-License-Identifier: Apache-2.0
"""Begins with the files that take longest: a worker that comes to one of them last would be waited for by all."""

from __future__ import annotations

import pytest

# The longest first (docs/testing.md says how long). A file that is not named here takes less than a minute.
LONGEST = (
    "x86/test_x86_daemons.py",
    "e500/test_qemu_e500.py",
    "e500/test_e500_stacks.py",
    "stacks/test_netns_esp.py",
    "boards/test_gate.py",
    "truth/test_side_by_side.py",
    "boards/test_npcryptbench.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put their tests in front; else nothing moves."""
    items.sort(key=lambda item: _place("/".join(item.path.parts[-2:])))


def _place(file: str) -> int:
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
