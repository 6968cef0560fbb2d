# SPDX-License-Identifier: Apache-2.0
"""A board boots the kernel and unpacks the overlay that the user's profile names; the Security Context says which."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from espbench.paths import data_dir
from espbench.platforms.virtual.parts import tools
from espbench.platforms.virtual.parts.cpio import Entry, archive
from espbench.platforms.virtual.parts.kits import E500_KIT
from support.plans import pair_plan, write_plan
from support.runs import espbench
from support.virtual.virtual_runs import build, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("e500")


def kernel(folder: Path, content: bytes) -> str:
    """Return the key of a profile whose Home boots this kernel, and Office espbench's."""
    (folder / "vmlinux").write_bytes(content)
    return f"kernel: {{home: vmlinux, office: {E500_KIT.require().kernel}}}"


def plan_with(folder: Path, keys: str) -> Path:
    """Return a plan for boards whose profile has these keys too."""
    text = (data_dir("dut-profiles") / "mpc8548e.yaml").read_text()
    own = re.sub("^name: .*", f"name: mine\n{keys}", text, count=1, flags=re.MULTILINE)
    (folder / "mine.yaml").write_text(own)
    throughput = {
        "minimum": "5000fps", "maximum": "10000fps", "trial": "10ms", "final_trial": "20ms", "warm_up": "10ms",
        "resolution": "20%",
    }  # fmt: skip
    few: dict[str, Any] = {"name": "own", "stacks": ["xfrm"], "suites": ["aes128-sha1"], "frame_sizes": [512]}
    return write_plan(folder, pair_plan("./mine.yaml", throughput=throughput, **few))


def overlay(folder: Path, ends_with: int) -> Path:
    """Return an overlay whose /first says a word, sets the TTL of the board's own packets, and ends with this code."""
    source, program = folder / "first.c", folder / "first"
    source.write_text(f"""\
#include <stdio.h>

int main(void)
{{
	FILE *ttl = fopen("/proc/sys/net/ipv4/ip_default_ttl", "w");

	puts("the overlay's word");
	return ttl && fputs("77", ttl) >= 0 && fclose(ttl) == 0 ? {ends_with} : 99;
}}
""")
    subprocess.run([f"{tools.CROSS}gcc", "-static", "-Os", "-o", program, source], check=True)
    made = folder / "overlay.cpio"
    made.write_bytes(archive([Entry.file("first", program.read_bytes(), mode=0o755)]))
    return made


def test_boards_boot_the_kernel_and_run_the_first_program_that_their_profile_names(tmp_path: Path) -> None:
    """Home's kernel differs from espbench's in the version that it tells, and in nothing else.

    The gateways carry their frames after the overlay's program; the context names the overlay, and the log has the
    program's word.
    """
    changed = E500_KIT.require().kernel.read_bytes().replace(b"6.1.", b"6.9.")
    made = overlay(tmp_path, 0)
    keys = f"{kernel(tmp_path, changed)}\noverlay: {made.name}"
    run = measured(plan_with(tmp_path, keys), tmp_path / "runs")
    context = json.loads((run.directory / "manifest.json").read_text())["contexts"]["xfrm-aes128-sha1-ipv4"]
    told = context["emulation"]
    assert re.fullmatch(r"6\.9\.\d+, vmlinux sha256 [0-9a-f]{16}", told["kernel"]["home"])
    assert re.fullmatch(r"6\.1\.\d+, vmlinux sha256 [0-9a-f]{16}", told["kernel"]["office"])
    assert "6.9." in context["kernel"]["home"]
    assert "6.1." in context["kernel"]["office"]
    assert context["crypto engine"]["home"]["behaviour"] == "async"
    assert re.fullmatch(r"overlay\.cpio sha256 [0-9a-f]{16}", told["overlay"]["home"])
    assert told["overlay"]["office"] == told["overlay"]["home"]
    logs = [path.read_text(errors="replace") for path in (run.directory / "logs").iterdir() if path.is_file()]
    assert sum("the overlay's word" in log for log in logs) >= 2
    assert all(trial["validity"] == "VALID" for trial in run.trials)


def test_a_kernel_without_espbenchs_additions_is_refused_before_anything_starts(tmp_path: Path) -> None:
    lacking = E500_KIT.require().kernel.read_bytes().replace(b"espbench_idle", b"espbench-idle")
    done = espbench("run", plan_with(tmp_path, kernel(tmp_path, lacking)), "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "how long the CPU was idle (harness/emulator/kernel/idle.c)" in done.stderr


def test_a_first_program_that_fails_is_one_message(tmp_path: Path) -> None:
    made = overlay(tmp_path, 3)
    done = espbench(
        "run", plan_with(tmp_path, f"overlay: {{home: {made.name}, office: {made.name}}}"), "--out", tmp_path
    )
    assert done.returncode not in (0, 2)
    assert "espbench: /first ended with exit code 3" in done.stderr
    assert "Traceback" not in done.stderr
