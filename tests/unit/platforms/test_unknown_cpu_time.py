# SPDX-License-Identifier: Apache-2.0
"""The CPU time of a namespace's gateway on a kernel that does not tell the CPU time of threads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from espbench.platforms import netns
from espbench.this_machine import processes


@pytest.fixture
def untold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_OWN", tmp_path / "none")


@pytest.mark.usefixtures("untold")
@pytest.mark.parametrize("booked", [True, False])
def test_it_is_unknown_and_not_0(booked: bool) -> None:
    threads = netns.PortThreads("home", [0])
    assert netns._gateway_cpu_ns(threads, os.getpid(), booked=booked) is None


@pytest.mark.usefixtures("untold")
def test_a_port_s_thread_is_not_taken_for_one_that_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Path, "read_text", lambda path: "napi/lan-0\n" if path.name == "comm" else _absent(path)
    )
    assert netns._ran_ns("lan", 1) == 0
    assert netns._ran_ns("wan", 1) is None


def _absent(path: Path) -> str:
    raise FileNotFoundError(path)
