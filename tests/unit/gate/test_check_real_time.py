# SPDX-License-Identifier: Apache-2.0
"""`espbench check` in real time: two runs by their repeats, or two arms of one; `espbench run` is made up."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from espbench.cli.gate import measuring
from espbench.terms import PAIRED, CaseEntry, CaseIdentity, Finding, Outcome
from support.command_line import in_process
from support.synthetic.gate import PLAN, World, tree_of_one_commit, world_of

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
    spoil: Callable[[Outcome], Outcome | Finding] = lambda outcome: outcome
    asked: int = 0
    pairs: Mapping[str, Any] = field(default_factory=dict)  # of a finding at fixed loads, if there is one

    def check(self, *options: str, base: str = "") -> subprocess.CompletedProcess[str]:
        return in_process(
            "check", self.folder / "plan.yaml", "--against", base or self.base, "--out", self.folder / "runs", *options
        )  # fmt: skip

    def run(self, argv: Sequence[str]) -> tuple[int, str]:
        """Stand in for `espbench run`."""
        assert "--base-loads" not in argv
        self.asked += 1
        run = self.after.run(self.folder / "runs", self.spoil)
        if self.pairs:
            of_change = run.manifest.cases[-1].model_dump(exclude={"stack_kind", "options", "tunnels"})
            finding = Finding(
                **of_change | {"case": f"{of_change['case']}-at", "test": PAIRED}, load_fps=None, quantities=[],
                trials=2, rfc2544=False, **self.pairs,
            )  # fmt: skip
            with run:
                run.save_results([*run.results(), finding])
        return 0, f"{run.path / 'results.csv'}\n"


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


@pytest.mark.parametrize(
    ("status", "encryption", "why"),
    [
        ("VIOLATED", "not proven", "VIOLATED: "),
        ("INVALID", "not proven", "INVALID: "),
        ("OK", "not proven", "encryption not proven"),
    ],
)
def test_pairs_that_leaked_or_were_not_made_are_no_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, encryption: str, why: str
) -> None:
    """The searches of both arms are clean and the same."""
    situation = begun(tmp_path, ARMS, monkeypatch)
    situation.pairs = {"status": status, "encryption": encryption}
    done = situation.check(base="base")
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(rf"not judged: \S+-at: {why}", done.stdout)


def test_tests_that_are_not_gated_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan may have tests whose encryption cannot be proven."""
    situation = begun(tmp_path, f"{REAL}  - latency: {{}}\n", monkeypatch)

    def of_its_test(outcome: Outcome) -> Outcome | Finding:
        if outcome.test != "latency":
            return outcome
        return Finding(
            **outcome.model_dump(include={*CaseIdentity.model_fields}), status="OK", load_fps=None, quantities=[],
            trials=1, rfc2544=False, encryption="not proven",
        )  # fmt: skip

    situation.spoil = of_its_test
    situation.base = situation.after.run(tmp_path / "base", of_its_test).path
    done = situation.check()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note: not gated: latency" in done.stdout


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


def unproven(outcome: Outcome) -> Outcome:
    """Let the first encrypted case have no proof."""
    is_first = (outcome.stack, outcome.frame_size, outcome.repeat) == ("xfrm", 64, 1)
    return outcome.model_copy(update={"encryption": "not proven"}) if is_first else outcome


def invalid(outcome: Outcome) -> Outcome:
    is_first = (outcome.stack, outcome.frame_size, outcome.repeat) == ("xfrm", 64, 1)
    return outcome.model_copy(update={"status": "INVALID"}) if is_first else outcome


@pytest.mark.parametrize(
    ("spoil", "why"),
    [(unproven, "xfrm-aes128-sha1-64-one-way-r1: encryption not proven"), (invalid, ": INVALID: ")],
)
def test_a_base_without_valid_figures_is_refused(
    situation: Situation, spoil: Callable[[Outcome], Outcome], why: str
) -> None:
    """Nothing is measured for it. The new run is as it should be."""
    situation.base = situation.after.run(situation.folder / "bases", spoil).path
    done = situation.check()
    assert (done.returncode, situation.asked) == (2, 0), done.stdout
    assert "not a base" in done.stderr
    assert why in done.stderr


def test_a_damaged_base_is_refused(situation: Situation) -> None:
    log = situation.base / "trials.jsonl"
    log.write_text(log.read_text().replace('"lost":0', '"lost":7', 1))
    done = situation.check()
    assert (done.returncode, situation.asked) == (2, 0), done.stdout
    assert "trials.jsonl: " in done.stderr


@pytest.mark.parametrize(("spoil", "code"), [(unproven, 3), (lambda outcome: outcome, 0)])
def test_a_revision_whose_encryption_is_not_proven_is_no_green(
    situation: Situation, spoil: Callable[[Outcome], Outcome], code: int
) -> None:
    """The base is measured in this check, and the tree as it stands is proven."""
    tree = tree_of_one_commit(situation.folder)
    prefix = situation.folder / "prefix"
    prefix.mkdir()
    plan = situation.folder / "plan.yaml"
    plan.write_text(REAL.replace("[plain, xfrm]", f"[{{stack: strongswan, label: xfrm, prefix: {prefix}}}]"))
    situation.after = replace(world_of(plan), ns_per_instruction=None, throughput=situation.after.throughput)
    situation.spoil = lambda outcome: spoil(outcome) if situation.asked == 1 else outcome
    # The clock of files has ticks of some milliseconds; a file of the same tick counts as older.
    build = f"sleep 0.02; date > {prefix}/built"
    done = situation.check("--tree", str(tree), "--build", build, base="HEAD")
    assert (done.returncode, situation.asked) == (code, 2), done.stdout + done.stderr
    assert bool(re.search(r"not judged: base, \S+-r1: encryption not proven", done.stdout)) == (code == 3)
    assert "note: both builds gave the same: " in done.stdout


def test_a_base_of_other_code_is_foreign(situation: Situation) -> None:
    situation.base = replace(situation.after, code="0123456789abcdef").run(situation.folder / "bases").path
    done = situation.check()
    assert (done.returncode, situation.asked) == (2, 0)
    assert "espbench.code: the base's 0123456789abcdef; now " in done.stderr


def test_another_machine_is_foreign(situation: Situation) -> None:
    situation.after = replace(situation.after, host={"cpu": "another, 2 cores"})
    done = situation.check()
    assert done.returncode == 2
    assert "host.cpu: the base's invented, 2 cores; now another, 2 cores" in done.stderr
    assert situation.check("--allow-different", "host.cpu").returncode == 0


@pytest.mark.parametrize(
    ("was", "now", "key", "word"),
    [
        ({"host": {"machine": "0a"}}, {"host": {"machine": "0b"}}, "host.machine", "machine"),
        ({"tools": {"generator": "native: rx af_packet"}}, {"tools": {"generator": "native: rx af_xdp"}},
         "tools.generator", "generator"),
        ({"tools": {"linux.uml": "6.1"}}, {"tools": {"linux.uml": "6.2"}}, "tools.linux.uml", "linux"),
        ({"host": {"clock source": "tsc"}}, {"host": {"clock source": "hpet"}}, "host.clock source", "clock source"),
    ],
)  # fmt: skip
def test_what_compare_refuses_is_foreign_to_a_check(
    situation: Situation, was: dict[str, Any], now: dict[str, Any], key: str, word: str
) -> None:
    """A machine of the same model, another way to the wire: figures in real time depend on both."""
    world = situation.after
    situation.base = replace(world, **was).run(situation.folder / "base").path
    situation.after = replace(world, **now)
    done = situation.check()
    assert done.returncode == 2
    assert f"{key}: the base's " in done.stderr
    done = situation.check("--allow-different", word)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"note: differs from the base: .*{key.partition('.')[2]}: ", done.stdout)


def test_programs_that_only_read_results_may_differ(situation: Situation) -> None:
    situation.after = replace(situation.after, tools={"python": "3.14", "pandas": "3.0"})
    assert situation.check().returncode == 0


def test_another_version_under_test_is_told_and_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = REAL.replace("[plain, xfrm]", f"[{{stack: strongswan, prefix: {tmp_path}}}]")
    situation = begun(tmp_path, text, monkeypatch)
    situation.after = replace(situation.after, version="5.9.14")
    done = situation.check("--allow-different", "plain: version")  # the version of every stack of this world
    assert done.returncode == 0, done.stdout + done.stderr
    assert "under test: strongswan: version: kernel → 5.9.14" in done.stdout
    assert "note: differs from the base: version of strongswan: " in done.stdout


def test_the_first_repeats_alone_decide_nothing(situation: Situation) -> None:
    done = situation.check("--repeats", "3")
    assert (done.returncode, situation.asked) == (2, 0)
    assert "--repeats 3: not for a plan in real time" in done.stderr


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


@pytest.mark.parametrize(
    ("old", "new", "lacking", "missing"),
    [
        ("[64, 1456]", "[64, 512, 1456]", "no base for 10 of 30 throughputs", "512 B one-way, repeat 1, 0 %"),
        ("repeat: 5", "repeat: 6", "no base for 4 of 24 throughputs", "64 B one-way, repeat 6, 0 %"),
        ("[0]", "[0, 0.001%]", "no base for 20 of 40 throughputs", "64 B one-way, repeat 1, 0.001 %"),
        ("[64, 1456]", "[64]", "10 throughputs that the plan has not", "1456 B one-way, repeat 1, 0 %"),
    ],
)
def test_a_base_of_other_cases_is_refused(
    situation: Situation, old: str, new: str, lacking: str, missing: str
) -> None:
    """Nothing is measured for it: a figure without its counterpart would be left out of the comparison in silence."""
    (situation.folder / "plan.yaml").write_text(REAL.replace(old, new))
    done = situation.check()
    assert (done.returncode, situation.asked) == (2, 0), done.stdout
    assert lacking in done.stderr
    assert missing in done.stderr


def test_a_base_with_more_cases_may_be_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notes contain the warnings of the comparison."""
    situation = begun(
        tmp_path, REAL.replace("tests:", "directions: [one-way, both-ways]\ntests:"), monkeypatch
    )
    plan = situation.folder / "plan.yaml"
    plan.write_text(REAL)
    situation.after = replace(situation.after, listed=world_of(plan).listed)
    assert situation.check().returncode == 2
    done = situation.check("--allow-different", "cases")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note: Not compared: " in done.stdout


def test_cpu_per_frame_of_two_runs_is_not_judged_and_has_no_limit(situation: Situation) -> None:
    """A limit that is not applied would be green without a word."""
    assert "note: CPU per frame is not judged between two runs: " in situation.check().stdout
    done = situation.check("--limit", "instructions=1%")
    assert (done.returncode, situation.asked) == (2, 1)
    assert "--limit instructions: no limit for this check" in done.stderr
    assert "ci/pairs.yaml" in done.stderr


@pytest.mark.parametrize("at_loads", [True, False])
def test_cpu_per_frame_of_two_arms_is_judged_at_fixed_loads_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_loads: bool
) -> None:
    text = ARMS.replace(", at: false", "") if at_loads else ARMS
    situation = begun(tmp_path, text, monkeypatch)
    done = situation.check(base="base")
    assert ("note: CPU per frame is not judged by searches alone: " in done.stdout) == (not at_loads)
    done = situation.check("--limit", "instructions=1%", base="base")
    assert done.returncode == (0 if at_loads else 2), done.stderr


@pytest.mark.parametrize("limit", ["throughput=1000", "throughput=2%|50", "instructions=50"])
def test_a_limit_that_is_a_number_is_refused(situation: Situation, limit: str) -> None:
    """It would count as 0 %."""
    done = situation.check("--limit", limit)
    assert (done.returncode, situation.asked) == (2, 0)
    assert f"--limit {limit}: no limit for a plan in real time" in done.stderr
    assert situation.check("--limit", "throughput=0").returncode == 0
