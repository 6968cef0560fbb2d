# SPDX-License-Identifier: Apache-2.0
"""A case that cannot be profiled or compared is named, and costs the others nothing. `espbench run` is made up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from espbench.cli.gate import measuring
from espbench.profile import from_run
from espbench.profile.attribution import Profile
from espbench.profile.symbols import Function
from espbench.results import RunDirectory
from espbench.terms import BaseLoad, Trial
from support.command_line import in_process
from support.synthetic.gate import PLAN, World, world_of


def attributed(file: Path, case: str, side: Any, trial: Trial, ns: object) -> Profile:
    """Stand in for what a guest has counted."""
    return Profile(case, side, 100, {(Function("forward"), "softirq"): 5000}, {})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    made = replace(world_of(plan), platform="qemu_e500")
    spoiled = made.entries[1].case

    def run(argv: list[str]) -> tuple[int, str]:
        if argv[3] == "report":
            return 0, ""
        loads = json.loads(Path(argv[argv.index("--base-loads") + 1]).read_text())
        typed = {case: [BaseLoad(**load) for load in of] for case, of in loads.items()}
        invalid = {"validity": "INVALID"}
        done = made.check(
            tmp_path / "out", typed, lambda f: f,
            lambda t: t.model_copy(update=invalid) if t.case == spoiled else t,
        )  # fmt: skip
        return 3, f"{done.path / 'results.csv'}\n"

    monkeypatch.setattr(measuring, "_waited_for", run)
    monkeypatch.setattr(from_run, "_profile", attributed)
    monkeypatch.setattr(from_run, "_ns_per_instruction", lambda profile: 1)
    return made


def run_of(world: World, folder: Path, without: str = "") -> RunDirectory:
    """Return a finished run; one of its cases may have no figure."""
    with world.run(folder) as run:
        lacking = {"status": "BELOW_MINIMUM", "final_trial": None, "throughput_fps": None}
        run.save_results([o.model_copy(update=lacking) if o.case == without else o for o in run.outcomes()])
    return RunDirectory.open(run.path)


def test_an_invalid_case_costs_the_others_nothing(world: World, tmp_path: Path) -> None:
    done = in_process("profile", run_of(world, tmp_path / "runs").path, "--out", tmp_path / "out")
    assert done.returncode == 3, done.stderr
    first, second, *others = [entry.case for entry in world.entries]
    assert f"not profiled:\n{second}: expected a valid trial with its gateways, got none of 1" in done.stderr
    for case in (first, *others):
        assert f"{case}, home, at 40,000 frames/s: 50.000 instructions per frame" in done.stdout


def test_a_case_without_a_throughput_is_named(world: World, tmp_path: Path) -> None:
    first = world.entries[0].case
    done = in_process("profile", run_of(world, tmp_path / "runs", first).path, "--out", tmp_path / "out")
    assert done.returncode == 3, done.stderr
    assert f"\n{first}: no throughput, at whose load it would be measured" in done.stderr


def test_a_case_that_has_nothing_to_be_compared_with_is_named(world: World, tmp_path: Path) -> None:
    """The other run has no figure of the first case, and this one's second case is INVALID."""
    first, second, *_ = (entry.case for entry in world.entries)
    other, run = run_of(world, tmp_path / "other", first), run_of(world, tmp_path / "runs")
    done = in_process("profile", run.path, "--against", other.path, "--out", tmp_path / "out")
    (line,) = [text for text in done.stderr.splitlines() if text.startswith("not compared")]
    assert line.endswith(f": {first}")
    assert f"{second}: expected a valid trial" in done.stderr
