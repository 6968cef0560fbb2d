# SPDX-License-Identifier: Apache-2.0
"""A kernel that the user's profile names is the one that a board boots, and the Security Context says which."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from espbench.paths import data_dir
from espbench.platforms.virtual.parts.kits import E500_KIT
from support.plans import pair_plan, write_plan
from support.runs import espbench
from support.virtual.virtual_runs import build, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("e500")


def plan(folder: Path, kernel: bytes) -> Path:
    """Return a plan whose Home boots this kernel, and Office espbench's."""
    usual = E500_KIT.require().kernel
    (folder / "vmlinux").write_bytes(kernel)
    text = (data_dir("dut-profiles") / "mpc8548e.yaml").read_text()
    kernels = f"kernel: {{home: vmlinux, office: {usual}}}"
    own = re.sub("^name: .*", f"name: mine\n{kernels}", text, count=1, flags=re.MULTILINE)
    (folder / "mine.yaml").write_text(own)
    throughput = {
        "minimum": "5000fps", "maximum": "10000fps", "trial": "10ms", "final_trial": "20ms", "warm_up": "10ms",
        "resolution": "20%",
    }  # fmt: skip
    few: dict[str, Any] = {"name": "own", "stacks": ["xfrm"], "suites": ["aes128-sha1"], "frame_sizes": [512]}
    return write_plan(folder, pair_plan("./mine.yaml", throughput=throughput, **few))


def test_a_board_boots_the_kernel_that_its_profile_names(tmp_path: Path) -> None:
    """Home's differs from espbench's in the version that it tells, and in nothing else."""
    changed = E500_KIT.require().kernel.read_bytes().replace(b"6.1.", b"6.9.")
    run = measured(plan(tmp_path, changed), tmp_path / "runs")
    context = json.loads((run.directory / "manifest.json").read_text())["contexts"]["xfrm-aes128-sha1-ipv4"]
    told = context["emulation"]["kernel"]
    assert re.fullmatch(r"6\.9\.\d+, vmlinux sha256 [0-9a-f]{16}", told["home"])
    assert re.fullmatch(r"6\.1\.\d+, vmlinux sha256 [0-9a-f]{16}", told["office"])
    assert "6.9." in context["kernel"]["home"]
    assert "6.1." in context["kernel"]["office"]
    assert context["crypto engine"]["home"]["behaviour"] == "async"
    assert all(trial["validity"] == "VALID" for trial in run.trials)


def test_a_kernel_without_espbenchs_additions_is_refused_before_anything_starts(tmp_path: Path) -> None:
    lacking = E500_KIT.require().kernel.read_bytes().replace(b"espbench_idle", b"espbench-idle")
    done = espbench("run", plan(tmp_path, lacking), "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "how long the CPU was idle (harness/emulator/kernel/idle.c)" in done.stderr
