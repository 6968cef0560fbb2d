# SPDX-License-Identifier: Apache-2.0
"""Starts runs of the truth DUT in virtual time: compiles its program, writes plans, makes undisturbed runs."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from campaign import ROOT, checks
from campaign.observed import TRUTH, Observed

SERVICE_NS = 200_000
BUFFER = 8
RATE_FPS = 1e9 / SERVICE_NS
RESOLUTION = 0.02
KNOWN = {"service_ns": SERVICE_NS, "buffer": BUFFER}
# The buffer may hold the excess frames of a final trial of one second.
RIGHT = checks.Truth(RATE_FPS / (1 + 2 * RESOLUTION), RATE_FPS * (1 + RESOLUTION) + BUFFER)


@functools.cache
def program() -> str:
    """Return the path of the truth DUT's program, compiled once."""
    folder = Path(tempfile.mkdtemp(prefix="campaign-truth-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    include = ROOT / "harness/emulator/qemu"
    source = ROOT / "tests/support/virtual/truth_dut.c"
    subprocess.run(
        ["gcc", "-std=gnu11", "-O2", f"-I{include}", "-o", folder / "truth_dut", source], check=True
    )
    return str(folder / "truth_dut")


def plan(**changes: Any) -> dict[str, Any]:
    """Return a plan with two cases and two loss goals.

    changes: keys of the plan; `throughput`: keys of the throughput test.
    """
    throughput = {
        "loss_goals": [0, "1%"], "minimum": "500fps", "maximum": "20000fps", "trial": "500ms",
        "final_trial": "1s", "resolution": f"{100 * RESOLUTION:g}%", "settle": "0s", "residue": "50ms",
        "learning": "0s", "warm_up": "0s",
    } | changes.pop("throughput", {})  # fmt: skip

    def port(side: str, number: int) -> dict[str, str]:
        return {
            "netns": f"truth-{side}", "interface": f"a{number}", "address": f"10.0.{number}.2/24",
            "gateway": f"10.0.{number}.1",
        }  # fmt: skip

    return {
        "name": "truth", "topology": "external", "dut": "known-truth", "line_rate": "1Gbps",
        "ports": {"west": port("west", 1), "east": port("east", 2)}, "frame_sizes": [64, 512],
        "tests": [{"throughput": throughput}],
    } | changes  # fmt: skip


def environment(**asked: Any) -> dict[str, str]:
    """Return the environment that truth_run.py reads: the program, and the settings of the DUT."""
    return {"TRUTH_PROGRAM": program(), "TRUTH_DUT": json.dumps({"known": KNOWN} | asked)}


def start(folder: Path, *arguments: str | Path, **asked: Any) -> Observed:
    """Start a run in a folder; asked: the settings of the DUT (truth_run.py)."""
    return Observed(folder, *arguments, program=TRUTH, env=environment(**asked))


def written(folder: Path, content: dict[str, Any]) -> Path:
    """Write a plan into a folder, and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{content['name']}.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def finished(folder: Path, content: dict[str, Any] | None = None, **asked: Any) -> tuple[Path, Observed]:
    """Make an undisturbed run; return its directory and the run. RuntimeError if it does not end with results."""
    file = written(folder, content or plan())
    with start(folder, file, "--out", folder / "runs", **asked) as run:
        code = run.ended()
        if code not in checks.WHOLE or run.directory is None:
            raise RuntimeError(f"a run that nobody disturbed ended with {code}: {run.said[-500:]}")
        return run.directory, run
