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
from espbench.gate import baseline_file, from_check, low_loads
from espbench.gate.base import Base
from espbench.gate.from_run import base_of
from espbench.gate.limits import DEFAULTS
from espbench.gate.telling import json_file
from espbench.results import RunDirectory
from espbench.terms import BaseLoad, Finding, Reason, Trial
from support.command_line import in_process
from support.synthetic.gate import LOAD_FPS, PLAN, World, tree_of_one_commit, world_of


@dataclass
class Situation:
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
def situation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Situation:
    """A world that did not change."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    world = world_of(plan)
    made = Situation(tmp_path, world, world)
    rebase(made)
    monkeypatch.setattr(measuring, "_waited_for", made.run)
    return made


def rebase(situation: Situation) -> None:
    """Write the base's file anew."""
    base = base_of(situation.before.run(situation.folder / "bases"))
    situation.file.write_text(baseline_file.text_of(base))


def test_nothing_changed_is_0(situation: Situation) -> None:
    done = situation.check()
    assert done.returncode == 0, done.stderr
    assert "passed: 12 figures of 4 cases" in done.stdout
    assert "all the same" in done.stdout
    document = json.loads((situation.folder / "json").read_text())
    assert (document["schema"], document["verdict"], document["exit_code"]) == (json_file.SCHEMA, "passed", 0)
    assert {row["word"] for row in document["rows"]} == {"same"}
    suite = ElementTree.parse(situation.folder / "junit").getroot()
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "4", "failures": "0", "errors": "0",
    }  # fmt: skip


def test_a_run_directory_is_a_base_too(situation: Situation) -> None:
    situation.base = str(situation.before.run(situation.folder / "bases").path)
    assert situation.check().returncode == 0


def test_a_regression_is_5_and_stands_in_every_file(situation: Situation) -> None:
    situation.after = dearer(situation.after, 212.0)
    done = situation.check()
    assert done.returncode == 5
    assert "+212.000" in done.stdout
    document = json.loads((situation.folder / "json").read_text())
    worse = [row for row in document["rows"] if row["word"] == "regressed"]
    assert {(row["side"], row["change"]) for row in worse} == {("home", 212.0), ("office", 212.0)}
    suite = ElementTree.parse(situation.folder / "junit").getroot()
    assert suite.get("failures") == "2"
    summary = (situation.folder / "markdown").read_text()
    assert "+212.000 (+1.77 %)" in summary
    assert "base: " in summary  # its provenance
    assert "begun 2026-01-02" in summary


def test_frames_lost_by_an_idle_gateway_are_5(situation: Situation) -> None:
    """At a tenth of the throughput, with the same cost and the same throughput; each file and the table say so."""
    situation.file.write_text(baseline_file.text_of(with_low_loads(situation.before, situation.folder)))
    assert situation.check().returncode == 0

    def lossy(trial: Trial) -> Trial:
        lost = {"lost": 40, "rx_frames": 3960, "frame_loss_ratio": 0.01}
        return trial.model_copy(update=lost) if trial.intended_fps < LOAD_FPS / 2 else trial

    situation.spoil_trial = lossy
    done = situation.check()
    assert done.returncode == 5, done.stdout + done.stderr
    assert "4 regressed" in done.stdout
    assert "frame loss: at most 0 % → 1 %" in (situation.folder / "junit").read_text()
    assert "| frame loss | at most 0 % | 1 % | | 0 % | **regressed** |" in " ".join(
        (situation.folder / "markdown").read_text().split()
    )
    worse = [row for row in json.loads((situation.folder / "json").read_text())["rows"] if row["now"] == 0.01]
    assert {(row["quantity"], row["load_fps"], row["word"]) for row in worse} == {
        ("frame loss", 4000.0, "regressed")
    }


def with_low_loads(world: World, folder: Path) -> Base:
    """Return the base that `espbench baseline` makes of this world."""
    wanted = low_loads.to_measure(base_of(world.run(folder / "bases")))
    loads = from_check.base_loads(wanted, world.entries, DEFAULTS)
    return low_loads.measured(wanted, world.check(folder / "bases", loads))


def test_an_improvement_is_told_and_is_0(situation: Situation) -> None:
    situation.after = dearer(situation.after, -212.0)
    done = situation.check()
    assert done.returncode == 0
    assert "4 improved" in done.stdout


def test_a_limit_of_ones_own(situation: Situation) -> None:
    situation.after = dearer(situation.after, 1.0)
    assert situation.check().returncode == 0  # 0.1 % of 12,000
    situation.options = ["--limit", "instructions=0"]
    assert situation.check().returncode == 5
    situation.options = ["--limit", "instructions=1"]
    assert situation.check().returncode == 0


def test_the_loads_measured_are_the_bases(situation: Situation) -> None:
    """Nothing is searched, and what the base's file says is what is asked for."""
    situation.options = ["--jobs", "3", "--wait"]
    assert situation.check().returncode == 0
    ((argv),) = situation.asked
    assert "--base-loads" in argv
    assert argv[-3:] == ["--wait", "--jobs", "3"]


def test_the_users_own_daemon_is_what_is_tested(situation: Situation) -> None:
    """A daemon from `prefix` is the subject: its version is told, and may differ. A package's is refused."""
    for prefixed in (True, False):
        options = {"prefix": "./mine"} if prefixed else {}
        listed = [
            e.model_copy(update={"options": options}) if e.stack == "xfrm" else e
            for e in situation.before.listed
        ]
        situation.before = replace(situation.before, listed=listed, version="own build 1")
        situation.after = replace(situation.after, listed=listed, version="own build 2")
        rebase(situation)
        done = situation.check()
        assert done.returncode == 2  # plain's version is nobody's prefix
        assert "plain: version" in done.stderr
        situation.options = ["--allow-different", "plain: version"]
        done = situation.check()
        assert done.returncode == (0 if prefixed else 2), done.stderr
        if prefixed:
            assert "under test: xfrm: version: own build 1 → own build 2" in done.stdout
        situation.options = []


def dearer(world: World, instructions: float) -> World:
    return replace(
        world, cost=lambda entry: world.cost(entry) + (0.0 if entry.stack == "plain" else instructions)
    )


# -- faults -------------------------------------------------------------------------------------


Fault = Callable[[Situation], None]


def no_base(situation: Situation) -> None:
    situation.file.unlink()


def empty_folder(situation: Situation) -> None:
    (situation.folder / "nothing").mkdir()
    situation.base = str(situation.folder / "nothing")


def truncated_base(situation: Situation) -> None:
    situation.file.write_text(situation.file.read_text()[:700])


def edited_base(situation: Situation) -> None:
    text = situation.file.read_text()
    situation.file.write_text(text.replace("12000.0", "99000.0"))


def newer_base(situation: Situation) -> None:
    situation.file.write_text(situation.file.read_text().replace('"format": 1', '"format": 9'))


def other_profile(situation: Situation) -> None:
    profiles = {"mpc8548e": {**situation.before.asked["profiles"]["mpc8548e"], "memory": "256M"}}
    situation.before = replace(situation.before, asked={**situation.before.asked, "profiles": profiles})
    rebase(situation)


def other_settings(situation: Situation) -> None:
    situation.plan.write_text(PLAN.replace("100ms", "200ms"))


def other_traffic(situation: Situation) -> None:
    situation.before = replace(situation.before, conditions={"traffic": "another"})
    rebase(situation)


def other_qemu(situation: Situation) -> None:
    situation.after = replace(situation.after, qemu="qemu sha256 ffffffffffffffff")


def other_kernel(situation: Situation) -> None:
    """It is espbench's own, so it is not under test."""
    situation.after = replace(situation.after, kernel="6.1.2")


def other_espbench(situation: Situation) -> None:
    situation.before = replace(situation.before, espbench="0.0.1")
    rebase(situation)


def other_code(situation: Situation) -> None:
    """Its version is the same."""
    situation.before = replace(situation.before, code="0123456789abcdef")
    rebase(situation)


def a_base_that_does_not_say_its_code(situation: Situation) -> None:
    situation.before = replace(situation.before, code="")
    rebase(situation)


def base_in_real_time(situation: Situation) -> None:
    profiles = {"mpc8548e": {"platform": "uml"}}
    world = replace(situation.before, asked={**situation.before.asked, "profiles": profiles})
    situation.base = str(world.run(situation.folder / "bases").path)


def invalid_base(situation: Situation) -> None:
    run = situation.before.run(
        situation.folder / "bases", lambda o: o.model_copy(update={"status": "INVALID"})
    )
    situation.base = str(run.path)


def unproven_base(situation: Situation) -> None:
    run = situation.before.run(
        situation.folder / "bases", lambda o: o.model_copy(update={"encryption": "not proven"})
    )
    situation.base = str(run.path)


def unfinished_base(situation: Situation) -> None:
    run = situation.before.run(situation.folder / "bases")
    (run.path / "results.json").unlink()
    situation.base = str(run.path)


def damaged_base(situation: Situation) -> None:
    run = situation.before.run(situation.folder / "bases")
    log = run.path / "trials.jsonl"
    log.write_text(log.read_text().replace('"lost":0', '"lost":7', 1))
    situation.base = str(run.path)


def a_case_without_base(situation: Situation) -> None:
    situation.plan.write_text(PLAN.replace("[64, 1456]", "[64, 512, 1456]"))


def a_case_that_is_not_measured_any_more(situation: Situation) -> None:
    situation.plan.write_text(PLAN.replace("[64, 1456]", "[64]"))


def a_loss_goal_without_base(situation: Situation) -> None:
    situation.plan.write_text(PLAN.replace("loss_goals: [0]", "loss_goals: [0, 0.001%]"))


def no_case(situation: Situation) -> None:
    situation.plan.write_text(PLAN[: PLAN.index("  - throughput")] + "  - frame_loss: {trial: 100ms}\n")


def wrong_plan(situation: Situation) -> None:
    situation.plan.write_text(PLAN.replace("plain, xfrm", "plain, xfmr"))


def wrong_limit(situation: Situation) -> None:
    situation.options = ["--limit", "instructions=lots"]


def limit_above_the_throughput(situation: Situation) -> None:
    """It would allow less than no frames."""
    situation.options = ["--limit", "throughput=40000"]


def limit_above_the_instructions(situation: Situation) -> None:
    situation.options = ["--limit", "instructions=0.1%|5000"]


def file_that_cannot_be_written(situation: Situation) -> None:
    (situation.folder / "junit").mkdir()


def the_run_fails(situation: Situation) -> None:
    situation.code = 1


def the_machine_lacks_something(situation: Situation) -> None:
    situation.code = 4


def the_run_is_interrupted(situation: Situation) -> None:
    situation.code = 130


def the_run_is_killed(situation: Situation) -> None:
    situation.code = -9


def a_case_is_invalid(situation: Situation) -> None:
    why = [Reason.of_text("the gateway died")]
    situation.spoil = lambda f: f.model_copy(update={"status": "INVALID", "reasons": why})


def no_gateway_can_be_set_up(situation: Situation) -> None:
    """None says what it is made of."""
    a_case_is_invalid(situation)
    situation.after = replace(situation.after, is_up=lambda entry: False)


def the_gateways_of_one_stack_cannot_be_set_up(situation: Situation) -> None:
    down = [Reason.of_text("no tunnel")]
    situation.after = replace(situation.after, is_up=lambda entry: entry.stack != "xfrm")
    situation.spoil = lambda f: (
        f.model_copy(update={"status": "INVALID", "reasons": down}) if f.stack == "xfrm" else f
    )


def a_case_is_violated(situation: Situation) -> None:
    situation.spoil = lambda f: f.model_copy(update={"status": "VIOLATED", "encryption": "not proven"})


def encryption_not_proven(situation: Situation) -> None:
    situation.spoil = lambda f: f.model_copy(update={"encryption": "not proven"})


def a_result_is_missing(situation: Situation) -> None:
    situation.spoil = lambda f: None if f.frame_size == 64 and f.stack == "xfrm" else f


def all_results_are_missing(situation: Situation) -> None:
    situation.spoil = lambda f: None


def a_trial_is_invalid(situation: Situation) -> None:
    situation.spoil_trial = lambda t: t.model_copy(update={"validity": "INVALID"})


def the_instructions_are_not_known(situation: Situation) -> None:
    def without(trial: Trial) -> Trial:
        readings = {
            side: r.model_copy(update={"instructions_per_frame": None}) for side, r in trial.gateways.items()
        }
        return trial.model_copy(update={"gateways": readings})

    situation.spoil_trial = without


def no_gateway_is_in_the_records(situation: Situation) -> None:
    situation.spoil_trial = lambda t: t.model_copy(update={"gateways": {}})


def one_gateway_is_not_in_the_records(situation: Situation) -> None:
    situation.spoil_trial = lambda t: t.model_copy(update={"gateways": {"home": t.gateways["home"]}})


def trials_at_other_loads(situation: Situation) -> None:
    situation.spoil_trial = lambda t: t.model_copy(update={"intended_fps": t.intended_fps + 1})


def trials_are_missing(situation: Situation) -> None:
    def damage(run: RunDirectory) -> None:
        (run.path / "trials.jsonl").write_text("")

    situation.damage = damage


def the_log_is_damaged(situation: Situation) -> None:
    def damage(run: RunDirectory) -> None:
        log = run.path / "trials.jsonl"
        log.write_text(log.read_text().replace('"tx_frames":4000', '"tx_frames":4001', 1))

    situation.damage = damage


def no_such_revision(situation: Situation) -> None:
    repository(situation)
    situation.base = "v9.9"
    situation.options += ["--build", "true"]


def the_build_fails(situation: Situation) -> None:
    repository(situation)
    situation.base = "HEAD"
    situation.options += ["--build", "echo no compiler; exit 7"]


def the_build_changes_nothing(situation: Situation) -> None:
    repository(situation)
    situation.base = "HEAD"
    situation.options += ["--build", "true"]


def no_git_tree(situation: Situation) -> None:
    situation.base = "HEAD"
    situation.options = ["--build", "true", "--tree", str(situation.folder)]


def repository(situation: Situation) -> None:
    """A tree of one commit."""
    tree = tree_of_one_commit(situation.folder)
    situation.options = ["--tree", str(tree)]


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
    (other_code, 2),
    (a_base_that_does_not_say_its_code, 2),
    (base_in_real_time, 2),
    (invalid_base, 2),
    (unproven_base, 2),
    (unfinished_base, 2),
    (damaged_base, 2),
    (a_case_without_base, 2),
    (a_case_that_is_not_measured_any_more, 2),
    (wrong_plan, 2),
    (wrong_limit, 2),
    (limit_above_the_throughput, 2),
    (limit_above_the_instructions, 2),
    (file_that_cannot_be_written, 2),
    (no_such_revision, 2),
    (no_git_tree, 2),
    (a_loss_goal_without_base, 2),
    (no_case, 3),
    (no_gateway_can_be_set_up, 3),
    (the_gateways_of_one_stack_cannot_be_set_up, 3),
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
def test_no_fault_is_green(situation: Situation, fault: Fault, code: int) -> None:
    """An old file of a check that passed is not left lying about either."""
    for form in ("json", "markdown"):
        (situation.folder / form).write_text("passed")
    fault(situation)
    done = situation.check()
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    for form in ("json", "markdown"):
        path = situation.folder / form
        assert not path.exists() or "passed" not in path.read_text().split("base")[0]


def test_a_regression_counts_more_than_what_was_not_judged(situation: Situation) -> None:
    situation.after = dearer(situation.after, 212.0)
    situation.spoil = lambda f: None if f.frame_size == 64 else f
    assert situation.check().returncode == 5


def test_a_foreign_base_is_told_by_its_difference(situation: Situation) -> None:
    other_qemu(situation)
    done = situation.check()
    assert (
        "mpc8548e: emulation.qemu: the base's qemu sha256 0123456789abcdef; now qemu sha256 ffff"
        in done.stderr
    )
    situation.options = ["--allow-different", "mpc8548e: emulation.qemu"]
    done = situation.check()
    assert done.returncode == 0
    assert "allowed to differ: mpc8548e: emulation.qemu" in done.stdout


def test_a_base_of_other_code_is_told_before_anything_is_measured(situation: Situation) -> None:
    other_code(situation)
    done = situation.check()
    assert (done.returncode, situation.asked) == (2, [])
    assert f"espbench.code: the base's 0123456789abcdef; now {situation.after.code}" in done.stderr
    assert "measure the base anew, or name what may differ: --allow-different 'espbench.code'" in done.stderr
    situation.options = ["--allow-different", "code"]
    done = situation.check()
    assert done.returncode == 0
    assert "allowed to differ: espbench.code: 0123456789abcdef → " in done.stdout


def test_gateways_that_cannot_be_set_up_are_told_with_the_cause(situation: Situation) -> None:
    """Their conditions are not known, which does not make the base a foreign one."""
    no_gateway_can_be_set_up(situation)
    done = situation.check()
    assert "INVALID: the gateway died" in done.stdout
    assert "foreign base" not in done.stderr


@pytest.mark.parametrize("option", ["--build", "--tree"])
def test_a_build_that_no_base_needs_is_refused(situation: Situation, option: str) -> None:
    """It would not be executed, and the old build would pass for the new one."""
    marker = situation.folder / "built"
    run = situation.before.run(situation.folder / "bases").path
    for base in (str(situation.file), str(run)):
        situation.base = base
        situation.options = [option, f"touch {marker}" if option == "--build" else str(situation.folder)]
        done = situation.check()
        assert (done.returncode, situation.asked) == (2, [])
        assert f"{option}: nothing to build for --against {base}" in done.stderr
        assert not marker.exists()


def test_a_base_with_more_repeats_may_be_allowed(situation: Situation) -> None:
    """Only the repeats that both have are measured, and judged."""
    situation.plan.write_text(PLAN.replace("tests:", "repeat: 2\ntests:"))
    situation.before = world_of(situation.plan)
    rebase(situation)
    situation.plan.write_text(PLAN)
    done = situation.check()
    assert done.returncode == 2
    assert "--allow-different cases" in done.stderr
    situation.options = ["--allow-different", "cases"]
    done = situation.check()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed: 12 figures of 4 cases" in done.stdout


def of_five_seeds(situation: Situation, more: float) -> None:
    """Let the base have five repeats, whose costs differ by one instruction; a frame now costs more by `more`."""
    situation.plan.write_text(PLAN.replace("tests:", "repeat: 5\ntests:"))
    world = replace(world_of(situation.plan), cost=lambda entry: 12_000.0 + entry.repeat)
    situation.before, situation.after = world, replace(world, cost=lambda e: 12_000.0 + e.repeat + more)
    rebase(situation)
    situation.options = ["--limit", "instructions=0"]


@pytest.mark.parametrize(
    ("repeats", "more", "code"),
    [("1", 0.0, 0), ("1", 4.0, 0), ("1", 5.0, 5), ("2", 3.5, 0), ("2", 4.0, 5), ("5", 2.0, 0), ("5", 3.0, 5)],
)
def test_the_first_repeats_are_held_against_the_band_of_all(
    situation: Situation, repeats: str, more: float, code: int
) -> None:
    """Their median, beside 12,001 to 12,005; no other repeat is measured or missed."""
    of_five_seeds(situation, more)
    situation.options += ["--repeats", repeats]
    done = situation.check()
    assert done.returncode == code, done.stdout + done.stderr
    document = json.loads((situation.folder / "json").read_text())
    assert document["problems"] == []
    assert {(row["low"], row["high"], row["repeats"]) for row in document["rows"] if row["side"]} == {
        (12_001.0, 12_005.0, 5)
    }
    run = RunDirectory.open(Path(document["run"]))
    assert {name[-2:] for name in run.manifest.base_loads} == {f"r{n + 1}" for n in range(int(repeats))}
    fewer = any("measured now: the first" in note for note in document["notes"])
    assert fewer == (repeats != "5")


def test_a_first_repeat_that_is_missing_is_3(situation: Situation) -> None:
    of_five_seeds(situation, 0.0)
    situation.options += ["--repeats", "1"]
    situation.spoil = lambda finding: None
    assert situation.check().returncode == 3


def test_a_base_of_the_first_repeat_alone_is_refused(situation: Situation) -> None:
    """It has no band."""
    plan = situation.plan.read_text()
    of_five_seeds(situation, 0.0)
    whole = situation.plan.read_text()
    situation.plan.write_text(plan)
    situation.before = world_of(situation.plan)
    rebase(situation)
    situation.plan.write_text(whole)
    situation.options += ["--repeats", "1"]
    done = situation.check()
    assert done.returncode == 2
    assert "no base for 16 of 20 throughputs" in done.stderr


def test_a_loss_goal_that_is_not_measured_any_more_is_refused(situation: Situation) -> None:
    """The plan's goal is another one than the base's."""
    situation.plan.write_text(PLAN.replace("loss_goals: [0]", "loss_goals: [0.001%]"))
    done = situation.check()
    assert "no base for 4 of 4 throughputs" in done.stderr
    assert "repeat 1, 0.001 %" in done.stderr
