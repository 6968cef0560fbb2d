# SPDX-License-Identifier: Apache-2.0
"""A whole run of kernels on network processors: twice the same, without root, with a report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.plans import kernels_text

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.untimed,
    pytest.mark.needs("ixp", "gcc-riscv64-unknown-elf", "clang"),
]

PLAN = kernels_text(
    dut="[ixp1200, ixp2800]",
    tests="""
  - cipher_kernels: {kernels: [aes, md5], levels: [0, 3], data: 256}
  - cipher_kernels: {duts: [ixp2800], kernels: [aes], levels: [2, 3], engines: [1, 4], threads: [2], data: 256}
  - cipher_kernels: {duts: [ixp2800], kernels: [aes], levels: [0], compilers: [clang], options: [O0, O1], data: 256}""",
)
# But for these a run directory is the same: when it was, on what host, and text that names the directory.
_OF_THE_RUN = (".lock", "manifest.json", "logs", "report.html", "report.md", "published.html", "published.md")


def run(plan: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "espbench", "run", "--wait", str(plan), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).name == "report.html"
    (made,) = out.iterdir()
    return made


def test_two_runs_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    """Results, tables and pictures."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    first, second = (run(plan, tmp_path / name) for name in ("first", "second"))
    files = {
        str(file.relative_to(first))
        for file in first.rglob("*")
        if file.is_file() and file.relative_to(first).parts[0] not in _OF_THE_RUN
    }
    assert {"kernels.jsonl", "kernels.csv", "results.csv", "figures/kernels-throughput-mbps.svg"} <= files
    assert len((first / "kernels.jsonl").read_text().splitlines()) == 8 + 4 + 2
    assert [
        name for name in sorted(files) if (first / name).read_bytes() != (second / name).read_bytes()
    ] == []
