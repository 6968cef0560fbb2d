# SPDX-License-Identifier: Apache-2.0
"""Runs the longest test files first, so that the session does not have to wait for one of them at its end."""

from __future__ import annotations

import pytest

# The longest file of `make rest` comes first (docs/testing.md has the times), but the last of these waits for programs
# that are built meanwhile (Makefile: boards-strongswan). Files that are not listed take about a minute or less.
LONGEST = (
    "x86/test_x86_ike.py",
    "stacks/test_ipsec_methodology.py",
    "stacks/test_ike_stacks.py",
    "x86/test_x86_daemons.py",
    "x86/test_profile.py",
    "x86/test_own_kernel_pairs.py",
    "boards/test_seeds.py",
    "e500/test_qemu_e500.py",
    "x86/test_qemu_x86.py",
    "stacks/test_netns_esp.py",
    "x86/test_x86_cluster.py",
    "truth/test_cluster.py",
    "truth/test_side_by_side.py",
    "boards/test_links_that_err.py",
    "e500/test_e500_stacks.py",
    "x86/test_daemon_profile.py",
    "x86/test_x86_lifetimes.py",
    "e500/test_accelerator_run.py",
    "stacks/test_libreswan_pair.py",
    "boards/test_gate.py",
    "boards/test_npcryptbench.py",
    "e500/test_e500_behaviours.py",
    "e500/test_e500_strongswan.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of these files first; the order of the others stays."""
    items.sort(key=lambda item: _place("/".join(item.path.parts[-2:])))


def _place(file: str) -> int:
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)
