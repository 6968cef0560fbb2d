# SPDX-License-Identifier: Apache-2.0
"""Runs the longest test files first, so that the session does not have to wait for one of them at its end."""

from __future__ import annotations

import pytest

# The longest file comes first (docs/testing.md has the times). Files that are not listed take less than a minute.
LONGEST = (
    "stacks/test_ipsec_methodology.py",
    "e500/test_e500_strongswan.py",
    "stacks/test_ike_stacks.py",
    "x86/test_x86_ike.py",
    "x86/test_profile.py",
    "x86/test_x86_daemons.py",
    "e500/test_qemu_e500.py",
    "boards/test_seeds.py",
    "x86/test_qemu_x86.py",
    "e500/test_e500_stacks.py",
    "stacks/test_netns_esp.py",
    "boards/test_gate.py",
    "truth/test_side_by_side.py",
    "boards/test_npcryptbench.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of these files first; the order of the others stays."""
    items.sort(key=lambda item: _place("/".join(item.path.parts[-2:])))


def _place(file: str) -> int:
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
