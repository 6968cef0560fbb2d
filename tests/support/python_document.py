# SPDX-License-Identifier: Apache-2.0
"""Executes docs/python.md: makes the runs that it describes, and executes its blocks of code.

Measurements in it use `support.simulated.command`, which is espbench with simulated gateways and without a generator.
The tasks of an executor use `support.simulated.worker_process`.

PYTHONPATH=harness:tests python -m support.python_document    # writes the real output under each block
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from espbench.frames import measuring
from espbench.profile import csv_file
from espbench.profile.attribution import Profile, Where
from espbench.profile.symbols import Function
from espbench.runs.workers import process
from espbench.terms import Finding, Outcome
from support.simulated.command import PROGRAM
from support.synthetic import run as synthetic_run
from support.synthetic import series

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"
SHAPE = synthetic_run.Shape(
    suites=("3des-sha1", "aes128-sha1", "aes128gcm16"),
    sizes=(64, 256, 1024, 1424),
    repeats=3,
    tests=("throughput", "latency"),
)
PROFILED = synthetic_run.Shape(stacks=("xfrm",), suites=("aes128gcm16",), sizes=(64,), goals=(0.0,))
FRAMES = 10_000
_WORKER = (sys.executable, "-m", "support.simulated.worker_process", "0")
FASTER = 1.1  # the speed of the second run's gateways, as a multiple of the first run's
_BLOCK = re.compile(r"(?P<block>^```python\n(?P<code>.*?)^```\n)(?:\n```text\n.*?^```\n)?", re.M | re.S)


def make_runs(parent: Path) -> None:
    """Make the runs of the document in the folder `parent`.

    `runs/…-before` and `runs/…-after` are equal, except that the latter's gateways are FASTER; `runs/…-profile` has a
    profile; `nights/` has six runs; `plans/` is a link to the project's plans.
    """
    (parent / "plans").symlink_to(DOCUMENT.parents[1] / "plans")
    for name, factor in (("before", 1.0), ("after", FASTER)):
        made = synthetic_run.build(parent / "runs", SHAPE, name)
        made.save_results([_faster(result, factor) for result in made.results()])
        made.path.rename(parent / "runs" / f"20260102T030405Z-{name}")
    for night in range(6):
        changed = night >= 4
        series.write(
            parent / "nights",
            night,
            series.Night(
                factor=0.96 if changed else 1.0, is_virtual=True, kernel="6.1.12" if changed else "6.1.11"
            ),
        )
    profiled = synthetic_run.build(parent / "runs", PROFILED, "profile")
    (case,) = profiled.manifest.cases
    profiles = [Profile(case.case, side, FRAMES, _costs(), {}) for side in ("home", "office")]
    (profiled.path / csv_file.FILE).write_text(csv_file.text_of(profiles), encoding="utf-8")
    profiled.path.rename(parent / "runs" / "20260102T040506Z-profile")


def _costs() -> dict[tuple[Function, Where], int]:
    """Return invented costs of all frames, by function and context."""
    costs: dict[tuple[Function, Where], int] = {
        (Function("aesni_gcm_enc_update", "aesni_intel"), "softirq"): 2310,
        (Function("esp_output", "esp4"), "softirq"): 640,
        (Function("fib_table_lookup", ""), "softirq"): 310,
        (Function("e1000_intr", "e1000"), "hard interrupt"): 120,
    }
    return {place: FRAMES * per_frame for place, per_frame in costs.items()}


def _faster(result: Outcome | Finding, factor: float) -> Outcome | Finding:
    """Return a throughput result with all rates multiplied by the factor, and CPU per frame divided by it."""
    if isinstance(result, Finding) or result.throughput_fps is None:
        return result
    rates = ("throughput_fps", "throughput_mbps", "line_rate_pct", "lower_fps", "upper_fps", "offered_fps")
    costs = ("cpu_home_us_per_frame", "cpu_office_us_per_frame")
    changed: dict[str, Any] = {
        name: value * by
        for names, by in ((rates, factor), (costs, 1 / factor))
        for name in names
        if (value := getattr(result, name)) is not None
    }
    return result.model_copy(update=changed)


def with_output(text: str, directory: Path) -> str:
    """Return the document with the real output of each block under it; blocks share their names, as in a notebook."""
    import dask  # noqa: PLC0415  (an extra)

    names: dict[str, Any] = {}

    def run(match: re.Match[str]) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(match["code"], str(DOCUMENT), "exec"), names)
        output = "".join(f"{line.rstrip()}\n" for line in said.getvalue().splitlines())
        return match["block"] + (f"\n```text\n{output}```\n" if output else "")

    with contextlib.chdir(directory), pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(directory / "cache"))  # of the index of many runs
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        patch.setattr(measuring, "PROGRAM", PROGRAM)
        patch.setattr(process, "COMMAND", _WORKER)
        # The workers of a cluster are new Pythons, which execute this text first.
        preloaded = f"from espbench.runs.workers import process; process.COMMAND = {_WORKER!r}"
        settings = {"distributed.worker.preload": [preloaded], "temporary-directory": str(directory)}
        with dask.config.set(settings):
            return _BLOCK.sub(run, text)


def main() -> None:
    """Write the document anew."""
    with tempfile.TemporaryDirectory() as directory:
        make_runs(Path(directory))
        text = with_output(DOCUMENT.read_text(encoding="utf-8"), Path(directory))
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
