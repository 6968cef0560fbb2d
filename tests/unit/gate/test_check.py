# SPDX-License-Identifier: Apache-2.0
"""`espbench check` as a CI system sees it: its exit code, its files, and that no fault ends in green.

`espbench run` is made up (World); everything else is the command as it is.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from espbench.cli.gate import measuring
from espbench.gate import baseline_file
from espbench.gate.from_run import base_of
from espbench.gate.telling import json_file
from espbench.results import RunDirectory
from espbench.terms import BaseLoad, Finding, Reason, Trial
from support.command_line import in_process
from support.synthetic.gate import PLAN, World, world_of


@dataclass
class Bench:
    """A plan, its base, and what `espbench run` will measure when it is asked."""

    folder: Path
    before: World
    after: World
    code: int = 0
    spoil: Callable[[Finding], Finding | None] = lambda finding: finding
    spoil_trial: Callable[[Trial], Trial] = lambda trial: trial
    damage: Callable[[RunDirectory], None] = lambda run: None
    base: str = ""
    options: list[str] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)

    @property
    def plan(self) -> Path:
        return self.folder / "plan.yaml"

    @property
    def file(self) -> Path:
        """The base as a file."""
        return self.folder / "baseline.json"

    def check(self) -> subprocess.CompletedProcess[str]:
        """The command, against the base's file unless another base is named."""
        outputs = [f"--{form}={self.folder / form}" for form in ("json", "junit", "markdown")]
        return in_process(
            "check", self.plan, "--against", self.base or self.file, "--out", self.folder / "runs",
            *outputs, *self.options,
        )  # fmt: skip

    def run(self, argv: Sequence[str]) -> tuple[int, str]:
        """Stand in for `espbench run`."""
        self.asked.append(list(argv))
        if "--base-loads" not in argv:
            run = self.after.run(self.folder / "runs")
        else:
            loads = json.loads(Path(argv[argv.index("--base-loads") + 1]).read_text())
            typed = {case: [BaseLoad(**load) for load in of] for case, of in loads.items()}
            run = self.after.check(self.folder / "runs", typed, self.spoil, self.spoil_trial)
        self.damage(run)
        return self.code, f"{run.path / 'results.csv'}\n"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A world that did not change."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    world = world_of(plan)
    found = Bench(tmp_path, world, world)
    rebase(found)
    monkeypatch.setattr(measuring, "_waited_for", found.run)
    return found


def rebase(bench: Bench) -> None:
    """Write the base's file anew."""
    base = base_of(bench.before.run(bench.folder / "bases"))
    bench.file.write_text(baseline_file.text_of(base))


def test_nothing_changed_is_0(bench: Bench) -> None:
    done = bench.check()
    assert done.returncode == 0, done.stderr
    assert "passed: 12 figures of 4 cases" in done.stdout
    assert "all the same" in done.stdout
    document = json.loads((bench.folder / "json").read_text())
    assert (document["schema"], document["verdict"], document["exit_code"]) == (json_file.SCHEMA, "passed", 0)
    assert {row["word"] for row in document["rows"]} == {"same"}
    suite = ElementTree.parse(bench.folder / "junit").getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4", "failures": "0", "errors": "0",
    }  # fmt: skip


def test_a_run_directory_is_a_base_too(bench: Bench) -> None:
    bench.base = str(bench.before.run(bench.folder / "bases").path)
    assert bench.check().returncode == 0


def test_a_regression_is_5_and_stands_in_every_file(bench: Bench) -> None:
    bench.after = dearer(bench.after, 212.0)
    done = bench.check()
    assert done.returncode == 5
    assert "+212.000" in done.stdout
    document = json.loads((bench.folder / "json").read_text())
    worse = [row for row in document["rows"] if row["word"] == "regressed"]
    assert {(row["side"], row["change"]) for row in worse} == {("home", 212.0), ("office", 212.0)}
    suite = ElementTree.parse(bench.folder / "junit").getroot()
    assert suite.get("failures") == "2"
    summary = (bench.folder / "markdown").read_text()
    assert "+212.000 (+1.77 %)" in summary
    assert "base: " in summary  # its provenance
    assert "begun 2026-01-02" in summary


def test_an_improvement_is_told_and_is_0(bench: Bench) -> None:
    bench.after = dearer(bench.after, -212.0)
    done = bench.check()
    assert done.returncode == 0
    assert "4 improved" in done.stdout


def test_a_limit_of_ones_own(bench: Bench) -> None:
    bench.after = dearer(bench.after, 1.0)
    assert bench.check().returncode == 0  # 0.1 % of 12,000
    bench.options = ["--limit", "instructions=0"]
    assert bench.check().returncode == 5
    bench.options = ["--limit", "instructions=1"]
    assert bench.check().returncode == 0


def test_the_loads_measured_are_the_bases(bench: Bench) -> None:
    """Nothing is searched, and what the base's file says is what is asked for."""
    bench.options = ["--jobs", "3", "--wait"]
    assert bench.check().returncode == 0
    ((argv),) = bench.asked
    assert "--base-loads" in argv
    assert argv[-3:] == ["--wait", "--jobs", "3"]


def test_the_users_own_daemon_is_what_is_tested(bench: Bench) -> None:
    """A daemon from `prefix` is the subject: its version is told, and may differ. A package's is refused."""
    for prefixed in (True, False):
        options = {"prefix": "./mine"} if prefixed else {}
        listed = [
            e.model_copy(update={"options": options}) if e.stack == "xfrm" else e for e in bench.before.listed
        ]
        bench.before = replace(bench.before, listed=listed, version="own build 1")
        bench.after = replace(bench.after, listed=listed, version="own build 2")
        rebase(bench)
        done = bench.check()
        assert done.returncode == 2  # plain's version is nobody's prefix
        assert "plain: version" in done.stderr
        bench.options = ["--allow-different", "plain: version"]
        done = bench.check()
        assert done.returncode == (0 if prefixed else 2), done.stderr
        if prefixed:
            assert "under test: xfrm: version: own build 1 → own build 2" in done.stdout
        bench.options = []


def dearer(world: World, instructions: float) -> World:
    return replace(
        world, cost=lambda entry: world.cost(entry) + (0.0 if entry.stack == "plain" else instructions)
    )


# -- faults -------------------------------------------------------------------------------------


Fault = Callable[[Bench], None]


def no_base(bench: Bench) -> None:
    bench.file.unlink()


def empty_folder(bench: Bench) -> None:
    (bench.folder / "nothing").mkdir()
    bench.base = str(bench.folder / "nothing")


def truncated_base(bench: Bench) -> None:
    bench.file.write_text(bench.file.read_text()[:700])


def edited_base(bench: Bench) -> None:
    text = bench.file.read_text()
    bench.file.write_text(text.replace("12000.0", "99000.0"))


def newer_base(bench: Bench) -> None:
    bench.file.write_text(bench.file.read_text().replace('"format": 1', '"format": 9'))


def other_profile(bench: Bench) -> None:
    profiles = {"mpc8548e": {**bench.before.asked["profiles"]["mpc8548e"], "memory": "256M"}}
    bench.before = replace(bench.before, asked={**bench.before.asked, "profiles": profiles})
    rebase(bench)


def other_settings(bench: Bench) -> None:
    bench.plan.write_text(PLAN.replace("100ms", "200ms"))


def other_traffic(bench: Bench) -> None:
    bench.before = replace(bench.before, conditions={"traffic": "another"})
    rebase(bench)


def other_qemu(bench: Bench) -> None:
    bench.after = replace(bench.after, qemu="qemu sha256 ffffffffffffffff")


def other_kernel(bench: Bench) -> None:
    """It is espbench's own, so it is not under test."""
    bench.after = replace(bench.after, kernel="6.1.2")


def other_espbench(bench: Bench) -> None:
    bench.before = replace(bench.before, espbench="0.0.1")
    rebase(bench)


def base_in_real_time(bench: Bench) -> None:
    profiles = {"mpc8548e": {"platform": "uml"}}
    world = replace(bench.before, asked={**bench.before.asked, "profiles": profiles})
    bench.base = str(world.run(bench.folder / "bases").path)


def invalid_base(bench: Bench) -> None:
    run = bench.before.run(bench.folder / "bases", lambda o: o.model_copy(update={"status": "INVALID"}))
    bench.base = str(run.path)


def unproven_base(bench: Bench) -> None:
    run = bench.before.run(
        bench.folder / "bases", lambda o: o.model_copy(update={"encryption": "not proven"})
    )
    bench.base = str(run.path)


def unfinished_base(bench: Bench) -> None:
    run = bench.before.run(bench.folder / "bases")
    (run.path / "results.json").unlink()
    bench.base = str(run.path)


def damaged_base(bench: Bench) -> None:
    run = bench.before.run(bench.folder / "bases")
    log = run.path / "trials.jsonl"
    log.write_text(log.read_text().replace('"lost":0', '"lost":7', 1))
    bench.base = str(run.path)


def a_case_without_base(bench: Bench) -> None:
    bench.plan.write_text(PLAN.replace("[64, 1456]", "[64, 512, 1456]"))


def a_case_that_is_not_measured_any_more(bench: Bench) -> None:
    bench.plan.write_text(PLAN.replace("[64, 1456]", "[64]"))


def no_case(bench: Bench) -> None:
    bench.plan.write_text(PLAN[: PLAN.index("  - throughput")] + "  - frame_loss: {trial: 100ms}\n")


def wrong_plan(bench: Bench) -> None:
    bench.plan.write_text(PLAN.replace("plain, xfrm", "plain, xfmr"))


def wrong_limit(bench: Bench) -> None:
    bench.options = ["--limit", "instructions=lots"]


def file_that_cannot_be_written(bench: Bench) -> None:
    (bench.folder / "junit").mkdir()


def the_run_fails(bench: Bench) -> None:
    bench.code = 1


def the_machine_lacks_something(bench: Bench) -> None:
    bench.code = 4


def the_run_is_interrupted(bench: Bench) -> None:
    bench.code = 130


def the_run_is_killed(bench: Bench) -> None:
    bench.code = -9


def a_case_is_invalid(bench: Bench) -> None:
    why = [Reason.of_text("the gateway died")]
    bench.spoil = lambda f: f.model_copy(update={"status": "INVALID", "reasons": why})


def a_case_is_violated(bench: Bench) -> None:
    bench.spoil = lambda f: f.model_copy(update={"status": "VIOLATED", "encryption": "not proven"})


def encryption_not_proven(bench: Bench) -> None:
    bench.spoil = lambda f: f.model_copy(update={"encryption": "not proven"})


def a_result_is_missing(bench: Bench) -> None:
    bench.spoil = lambda f: None if f.frame_size == 64 and f.stack == "xfrm" else f


def all_results_are_missing(bench: Bench) -> None:
    bench.spoil = lambda f: None


def a_trial_is_invalid(bench: Bench) -> None:
    bench.spoil_trial = lambda t: t.model_copy(update={"validity": "INVALID"})


def the_instructions_are_not_known(bench: Bench) -> None:
    def without(trial: Trial) -> Trial:
        readings = {
            side: r.model_copy(update={"instructions_per_frame": None}) for side, r in trial.gateways.items()
        }
        return trial.model_copy(update={"gateways": readings})

    bench.spoil_trial = without


def no_gateway_is_in_the_records(bench: Bench) -> None:
    bench.spoil_trial = lambda t: t.model_copy(update={"gateways": {}})


def one_gateway_is_not_in_the_records(bench: Bench) -> None:
    bench.spoil_trial = lambda t: t.model_copy(update={"gateways": {"home": t.gateways["home"]}})


def trials_at_other_loads(bench: Bench) -> None:
    bench.spoil_trial = lambda t: t.model_copy(update={"intended_fps": t.intended_fps + 1})


def trials_are_missing(bench: Bench) -> None:
    def damage(run: RunDirectory) -> None:
        (run.path / "trials.jsonl").write_text("")

    bench.damage = damage


def the_log_is_damaged(bench: Bench) -> None:
    def damage(run: RunDirectory) -> None:
        log = run.path / "trials.jsonl"
        log.write_text(log.read_text().replace('"tx_frames":4000', '"tx_frames":4001', 1))

    bench.damage = damage


def no_such_revision(bench: Bench) -> None:
    repository(bench)
    bench.base = "v9.9"
    bench.options += ["--build", "true"]


def the_build_fails(bench: Bench) -> None:
    repository(bench)
    bench.base = "HEAD"
    bench.options += ["--build", "echo no compiler; exit 7"]


def the_build_changes_nothing(bench: Bench) -> None:
    repository(bench)
    bench.base = "HEAD"
    bench.options += ["--build", "true"]


def no_git_tree(bench: Bench) -> None:
    bench.base = "HEAD"
    bench.options = ["--build", "true", "--tree", str(bench.folder)]


def repository(bench: Bench) -> None:
    """A tree of one commit."""
    tree = bench.folder / "tree"
    tree.mkdir()
    for argv in (
        ["init", "-q"],
        ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", "-C", str(tree), *argv], check=True, capture_output=True)
    bench.options = ["--tree", str(tree)]


FAULTS: list[tuple[Fault, int]] = [
    (no_base, 2),
    (empty_folder, 2),
    (truncated_base, 2),
    (edited_base, 2),
    (newer_base, 2),
    (other_profile, 2),
    (other_settings, 2),
    (other_traffic, 2),
    (other_qemu, 2),
    (other_kernel, 2),
    (other_espbench, 2),
    (base_in_real_time, 2),
    (invalid_base, 2),
    (unproven_base, 2),
    (unfinished_base, 2),
    (damaged_base, 2),
    (a_case_without_base, 2),
    (a_case_that_is_not_measured_any_more, 2),
    (wrong_plan, 2),
    (wrong_limit, 2),
    (file_that_cannot_be_written, 2),
    (no_such_revision, 2),
    (no_git_tree, 2),
    (no_case, 3),
    (a_case_is_invalid, 3),
    (a_case_is_violated, 3),
    (encryption_not_proven, 3),
    (a_result_is_missing, 3),
    (all_results_are_missing, 3),
    (a_trial_is_invalid, 3),
    (the_instructions_are_not_known, 3),
    (no_gateway_is_in_the_records, 3),
    (one_gateway_is_not_in_the_records, 3),
    (trials_at_other_loads, 3),
    (trials_are_missing, 3),
    (the_log_is_damaged, 3),
    (the_build_changes_nothing, 3),
    (the_build_fails, 1),
    (the_run_fails, 1),
    (the_run_is_killed, 1),
    (the_machine_lacks_something, 4),
    (the_run_is_interrupted, 130),
]


@pytest.mark.parametrize(("fault", "code"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
def test_no_fault_is_green(bench: Bench, fault: Fault, code: int) -> None:
    """An old file of a check that passed is not left lying about either."""
    for form in ("json", "markdown"):
        (bench.folder / form).write_text("passed")
    fault(bench)
    done = bench.check()
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for form in ("json", "markdown"):
        path = bench.folder / form
        assert not path.exists() or "passed" not in path.read_text().split("base")[0]


def test_a_regression_counts_more_than_what_was_not_judged(bench: Bench) -> None:
    bench.after = dearer(bench.after, 212.0)
    bench.spoil = lambda f: None if f.frame_size == 64 else f
    assert bench.check().returncode == 5


def test_a_foreign_base_is_told_by_its_difference(bench: Bench) -> None:
    other_qemu(bench)
    done = bench.check()
    assert (
        "mpc8548e: emulation.qemu: the base's qemu sha256 0123456789abcdef; now qemu sha256 ffff"
        in done.stderr
    )
    bench.options = ["--allow-different", "mpc8548e: emulation.qemu"]
    done = bench.check()
    assert done.returncode == 0
    assert "allowed to differ: mpc8548e: emulation.qemu" in done.stdout
