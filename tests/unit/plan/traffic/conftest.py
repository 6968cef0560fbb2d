# SPDX-License-Identifier: Apache-2.0
"""Scapy, asked in the process of the test: a process for each expression takes half a second of it to import."""

from __future__ import annotations

import json
import subprocess

import pytest

from espbench_scapy import render


@pytest.fixture
def scapy_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the same question be answered by the same code, without the process between."""

    def run(argv: list[str], **given: object) -> subprocess.CompletedProcess[str]:
        assert argv[1:] == ["-m", "espbench_scapy.render"]
        answer = render.answer(json.loads(str(given["input"])))
        return subprocess.CompletedProcess(argv, 0, json.dumps(answer), "")

    monkeypatch.setattr(subprocess, "run", run)
