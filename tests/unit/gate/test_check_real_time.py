# SPDX-License-Identifier: Apache-2.0
"""`espbench check` in real time: two runs by their repeats, or two arms of one; `espbench run` is made up."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from espbench.cli.gate import measuring
from espbench.terms import CaseEntry, Outcome
from support.command_line import in_process
from support.synthetic.gate import PLAN, World, world_of

REAL = PLAN.replace("mpc8548e", "uml").replace("tests:", "repeat: 5\ntests:")
ARMS = REAL.replace(
    "[plain, xfrm]", "[plain, {stack: xfrm, label: base}, {stack: xfrm, label: change, esn: true}]"
)
ARMS = ARMS.replace("repeat: 5", "repeat: 5\ncompare: {by: stack, reference: base, at: false}")


@dataclass
class Situation:
    """A plan in real time, the base's run, and the world that will be measured."""

    folder: Path
    base: Path
    after: World
    spoil: Callable[[Outcome], Outcome] = lambda outcome: outcome

    def check(self, *options: str, base: str = "") -> subprocess.CompletedProcess[str]:
        return in_process(
            "check", self.folder / "plan.yaml", "--against", base or self.base, "--out", self.folder / "runs", *options
        )  # fmt: skip

    def run(self, argv: Sequence[str]) -> tuple[int, str]:
        """Stand in for `espbench run`."""
        assert "--base-loads" not in argv
        return 0, f"{self.after.run(self.folder / 'runs', self.spoil).path / 'results.csv'}\n"


def begun(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Situation:
    plan = folder / "plan.yaml"
    plan.write_text(text)
    world = replace(world_of(plan), ns_per_instruction=None, throughput=scattered(40_000.0))
    situation = Situation(folder, world.run(folder / "base").path, world)
    monkeypatch.setattr(measuring, "_waited_for", situation.run)
    return situation


@pytest.fixture
def situation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Situation:
    return begun(tmp_path, REAL, monkeypatch)


def scattered(fps: float, change: float = 1.0, stack: str = "") -> Callable[[CaseEntry], float]:
    """Within 0.4 %, from repeat to repeat; the change is of one stack, or of all."""
    return lambda e: (change if stack in ("", e.stack) else 1.0) * fps * (1 + 0.002 * (e.repeat % 3 - 1))


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [(1.0, 0, "all the same"), (0.9, 5, "regressed"), (1.1, 0, "improved"), (0.99, 0, "moved")],
)
def test_two_runs_are_held_against_each_other_by_their_repeats(
    situation: Situation, change: float, code: int, word: str
) -> None:
    """Limit: 2 %; 1 % is shown and allowed."""
    situation.after = replace(situation.after, throughput=scattered(40_000.0, change))
    done = situation.check()
    assert done.returncode == code, done.stdout + done.stderr
    assert word in done.stdout
    assert "two runs are not paired" in done.stdout


@pytest.mark.parametrize(("change", "code"), [(1.0, 0), (0.9, 5)])
def test_two_arms_of_one_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: float, code: int
) -> None:
    situation = begun(tmp_path, ARMS, monkeypatch)
    situation.after = replace(situation.after, throughput=scattered(40_000.0, change, "change"))
    done = situation.check(base="base")
    assert done.returncode == code, done.stdout + done.stderr


def test_too_few_repeats_are_no_verdict(situation: Situation) -> None:
    listed = [entry for entry in situation.after.listed if entry.repeat < 3]
    situation.after = replace(situation.after, listed=listed)
    assert situation.check().returncode == 3


def test_a_case_that_leaked_is_no_green(situation: Situation) -> None:
    def leaked(outcome: Outcome) -> Outcome:
        return outcome.model_copy(update={"status": "VIOLATED"}) if outcome.repeat == 5 else outcome

    situation.spoil = leaked
    done = situation.check()
    assert done.returncode == 3
    assert "VIOLATED" in done.stdout


def test_another_machine_is_foreign(situation: Situation) -> None:
    situation.after = replace(situation.after, host={"cpu": "another, 2 cores"})
    done = situation.check()
    assert done.returncode == 2
    assert "host.cpu: the base's invented, 2 cores; now another, 2 cores" in done.stderr
    assert situation.check("--allow-different", "host.cpu").returncode == 0


def test_a_file_has_no_repeats_to_judge_by(situation: Situation) -> None:
    (situation.folder / "baseline.json").write_text("{}")
    done = situation.check(base=str(situation.folder / "baseline.json"))
    assert done.returncode == 2
    assert "expected: a run directory, whose repeats show" in done.stderr


def test_baseline_refuses_a_run_in_real_time(situation: Situation) -> None:
    done = in_process("baseline", situation.base, "--out", situation.folder / "baseline.json")
    assert done.returncode == 2
    assert "a run in virtual time" in done.stderr
    assert not (situation.folder / "baseline.json").exists()
