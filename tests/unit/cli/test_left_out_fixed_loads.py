# SPDX-License-Identifier: Apache-2.0
"""A plan that compares at fixed loads says so if the run, in virtual time, leaves these loads out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_line import in_process
from support.plans import pair_plan, write_plan
from support.simulated.command import PROGRAM

LEFT_OUT = "in virtual time there is no comparison at fixed loads: searches have no noise"
NO_VERDICT = f"{LEFT_OUT}; a verdict needs repeat: 3 or more, and the plan has"


def _plan(folder: Path, dut: str, repeat: int, **compare: object) -> Path:
    stacks = ["xfrm", {"stack": "xfrm", "label": "other"}]
    by_stack = {"by": "stack", **compare}
    plan = pair_plan(dut, stacks=stacks, suites=["aes128gcm16"], compare=by_stack, repeat=repeat)
    return write_plan(folder, plan)


@pytest.mark.parametrize(
    ("dut", "repeat", "note"),
    [
        ("virt-x86", 1, f"{NO_VERDICT} 1"),
        ("mpc8548e", 2, f"{NO_VERDICT} 2"),
        ("virt-x86", 3, LEFT_OUT),
        ("netns", 1, None),
    ],
)
def test_a_dry_run_notes_what_virtual_time_leaves_out(
    tmp_path: Path, dut: str, repeat: int, note: str | None
) -> None:
    """Nothing is left out in real time."""
    done = in_process("run", _plan(tmp_path, dut, repeat), "--dry-run")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if "fixed loads" in line] == (
        [f"note: {note}"] if note else []
    )


def test_a_comparison_by_searches_alone_leaves_nothing_out(tmp_path: Path) -> None:
    """The plan asked for no fixed loads."""
    done = in_process("run", _plan(tmp_path, "virt-x86", 3, at=False), "--dry-run")
    assert done.returncode == 0
    assert "fixed loads" not in done.stdout


def test_a_run_with_several_jobs_notes_it_once(tmp_path: Path) -> None:
    """The same function of the command says it with one job."""
    arguments = [
        "run",
        _plan(tmp_path, "virt-x86", 1),
        "--out",
        tmp_path / "runs",
        "--jobs",
        "2",
        "--no-report",
    ]
    environment = os.environ | {"PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr.count(f"{NO_VERDICT} 1") == 1, done.stderr
