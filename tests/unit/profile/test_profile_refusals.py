# SPDX-License-Identifier: Apache-2.0
"""The command `espbench profile` refuses before it measures anything, in one message that says what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from espbench.cli.gate import measuring
from espbench.cli.profile.profiling import finals_of, say_if_another
from espbench.profile import csv_file, from_run
from espbench.profile.attribution import Profile
from espbench.profile.symbols import Function
from espbench.results import RunDirectory
from espbench.terms import BaseLoad
from support.command_line import in_process
from support.plans import pair_plan, write_plan
from support.synthetic.gate import PLAN, World, world_of

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(argv: list[str]) -> tuple[int, str]:
        raise AssertionError(f"measured {argv}")

    monkeypatch.setattr(measuring, "_waited_for", measured)


@pytest.fixture
def board(tmp_path: Path) -> World:
    """A run of an emulated board, whose kernel does not tell its functions."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    return world_of(plan)


def refused(tmp_path: Path, subject: Path, *options: str | Path) -> str:
    """Return what the command says when it refuses the subject."""
    done = in_process("profile", subject, "--out", tmp_path / "out", *options)
    assert done.returncode == 2, done.stderr
    assert not (tmp_path / "out").exists()
    return done.stderr


def test_a_plan_that_perf_cannot_sample_is_refused(tmp_path: Path) -> None:
    write_plan(tmp_path, pair_plan("uml", name="real"))
    said = refused(tmp_path, tmp_path / "real.yaml")
    assert (
        "real.yaml: nothing to profile\n  expected: a plan in virtual time, or on namespaces or boxes" in said
    )
    assert "got: one on uml\n  what to do: name a dut in virtual time, such as virt-x86" in said


def test_a_run_that_perf_cannot_sample_is_refused(tmp_path: Path, board: World) -> None:
    run = replace(board, ns_per_instruction=None, asked={}).run(tmp_path)
    said = refused(tmp_path, run.path)
    assert f"{run.path}: nothing to profile" in said
    assert "expected: a run in virtual time, or on namespaces or boxes\n" in said


def test_gateways_that_tell_no_functions_are_refused(tmp_path: Path, board: World) -> None:
    """The refusal is the same for a run, a plan, and a plan compared with a run, before it is measured."""
    run, plan = board.run(tmp_path).path, REPOSITORY / "plans/npcryptbench.yaml"
    asked: list[tuple[str, Path, list[str | Path]]] = [
        ("made-up", run, []),
        ("ixp", plan, []),
        ("ixp", plan, ["--against", run]),
    ]
    for got, subject, options in asked:
        said = refused(tmp_path, subject, *options)
        assert (
            "no names to profile\n  expected: gateways whose kernels tell their functions: dut: virt-x86"
            in said
        )
        assert f"got: {got}" in said


def test_a_run_with_a_damaged_line_is_refused(tmp_path: Path, board: World) -> None:
    """Its final trials are not known for certain."""
    run = board.run(tmp_path)
    log = run.path / "trials.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([lines[0].replace("0", "1", 1), *lines[1:]]))
    manifest = run.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace("made-up", "qemu_e500"))
    said = refused(tmp_path, run.path)
    assert "nothing to profile\n  expected: trials as they were written" in said
    assert f"what to do: let espbench run --resume {run.path} measure" in said


def test_a_goal_without_a_figure_does_not_hide_the_one_that_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No load meets a goal of no loss; the other goal's throughput is profiled."""
    world = World()
    with world.run(tmp_path) as run:
        results = [
            outcome.model_copy(update=update)
            for outcome in run.outcomes()
            for update in (
                {"loss_goal": 0.0, "status": "BELOW_MINIMUM", "final_trial": None, "throughput_fps": None},
                {"loss_goal": 0.01},
            )
        ]
        run.save_results(results)
    run = RunDirectory.open(run.path)
    finals = finals_of(run)
    assert {case: (o.loss_goal, t.sequence) for case, (o, t) in finals.items()} == {
        entry.case: (0.01, 1) for entry in world.entries
    }
    loads = {
        case: [BaseLoad(goal=1.0, load_fps=t.intended_fps, duration_s=0.1, floor_fps=1.0)]
        for case, (_, t) in finals.items()
    }
    say_if_another(run, world.check(tmp_path / "same", loads))
    assert capsys.readouterr().err == ""
    say_if_another(run, replace(world, cost=lambda entry: 1.0).check(tmp_path / "other", loads))
    assert capsys.readouterr().err.count("it was measured on other gateways") == len(world.entries)


def profiled(tmp_path: Path, board: World) -> Path:
    """Return a run that `espbench profile` made, of its first case, at a load of 12,345 frames/s."""
    case = board.entries[0].case
    loads = {case: [BaseLoad(goal=1.0, load_fps=12_345.0, duration_s=0.1, floor_fps=12_345.0)]}
    run = board.check(tmp_path / "made", loads)
    manifest = run.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"platform": "made-up"', '"platform": "qemu_e500"', 1))
    of_case = Profile(case, "home", 100, {(Function("esp_output", "esp4"), "softirq"): 5000}, {})
    (run.path / csv_file.FILE).write_text(csv_file.text_of([of_case]))
    return run.path


def test_a_profile_that_is_there_is_shown_with_its_load(tmp_path: Path, board: World) -> None:
    done = in_process("profile", profiled(tmp_path, board))
    assert done.returncode == 0, done.stderr
    assert "home, at 12,345 frames/s: 50.000 instructions per frame" in done.stdout
    assert "100.00% of them have a name, 0.00% only an offset, 0.00% neither" in done.stdout


def test_the_table_of_a_profile_stands_for_its_run(tmp_path: Path, board: World) -> None:
    path = profiled(tmp_path, board)
    done = in_process("profile", path / csv_file.FILE)
    assert (done.returncode, done.stdout) == (0, in_process("profile", path).stdout)


def test_a_profile_that_is_there_has_no_half(tmp_path: Path, board: World) -> None:
    """It would be shown as it is, at the whole load."""
    path = profiled(tmp_path, board)
    asked: list[list[str | Path]] = [[], ["--against", path]]
    for options in asked:
        said = refused(tmp_path, path, "--half", *options)
        assert f"{path}: --half: the loads of this profile are fixed" in said


def test_the_last_trial_of_a_case_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial that was INVALID was made again, and the guest's counts are of the last one."""
    world = World()
    case = world.entries[0].case
    loads = {case: [BaseLoad(goal=1.0, load_fps=12_345.0, duration_s=0.1, floor_fps=12_345.0)]}
    run = world.check(tmp_path, loads)
    (trial,) = run.trials_of(case)
    for number, validity in ((1, "INVALID"), (2, "VALID")):
        with RunDirectory.open(run.path) as again:
            again.append(trial.model_copy(update={"sequence": number, "validity": validity}))
    seen = []
    monkeypatch.setattr(
        from_run, "_profile", lambda file, case, side, trial, ns: seen.append((side, trial.sequence))
    )
    from_run.profiles(RunDirectory.open(run.path))
    assert seen == [("home", 2), ("office", 2)]
    with RunDirectory.open(run.path) as again:
        again.append(trial.model_copy(update={"sequence": 3, "validity": "INVALID"}))
    made, (why,) = from_run.profiles(RunDirectory.open(run.path))
    assert made == []
    assert "expected a valid trial with its gateways, got none of 4" in why
