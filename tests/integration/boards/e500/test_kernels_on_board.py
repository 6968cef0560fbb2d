# SPDX-License-Identifier: Apache-2.0
"""Cipher kernels on the core of an emulated board: twice the same, without root, and never a figure of wrong output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from espbench.results import kernels
from support.plans import kernels_text

pytestmark = [
    pytest.mark.boards,
    pytest.mark.virtual_time,
    pytest.mark.untimed,
    pytest.mark.needs("gcc-powerpc-linux-gnu"),
]

PLAN = kernels_text(
    dut="mpc8548e", tests="[cipher_kernels: {kernels: [rc4, md5], levels: [1], data: 256}]"
)  # fmt: skip


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    (folder / "plan.yaml").write_text(PLAN)
    command = [sys.executable, "-m", "espbench", "run", "--wait", "plan.yaml", "--out", "runs"]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=os.environ | environment
    )


def test_two_runs_are_the_same_and_every_byte_was_compared(tmp_path: Path) -> None:
    """Times to the nanosecond. A board's instructions take what its profile has, and it executes all of the time."""
    texts = []
    for name in ("first", "second"):
        done = run(tmp_path / name)
        assert done.returncode == 0, done.stderr
        (made,) = (tmp_path / name / "runs").iterdir()
        texts.append((made / kernels.FILE).read_bytes())
        results = {r.kernel: r for r in kernels.read(made)}
        assert "Throughput at level 1" in (made / "report.md").read_text()
    assert texts[0] == texts[1]
    assert {name: r.checked for name, r in results.items()} == {"rc4": 256, "md5": 16}
    for result in results.values():
        assert result.executed is not None
        # 0.472 ns of a clock of 1333 MHz for each instruction.
        assert result.cycles / result.executed == pytest.approx(0.472 * 1.333, rel=0.01)
        assert 2 < result.instructions_per_byte < 100
