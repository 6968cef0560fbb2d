# SPDX-License-Identifier: Apache-2.0
"""Comparisons at fixed loads as a run makes them: gateways built, trials filed, an interrupted one resumed."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from espbench.measure import trial, unmeasured
from espbench.measure.inputs.setup import Request, TrialBroken
from espbench.measure.proof.readiness import InClear
from espbench.measure.record import OfCase
from espbench.plan import Case, ResolvedPlan, cases, load_plan
from espbench.procedures.paired_trials import Ask
from espbench.results import RunDirectory
from espbench.runs.paired_run import PairedRun, RunParts, rivals
from espbench.terms import Finding, Trial
from support.plans import plan_text
from support.simulated import pairs as sim
from support.simulated.comparisons import made as outcome
from support.simulated.comparisons import run_of

PLAN = plan_text(
    name="ab",
    stacks="[xfrm, {stack: xfrm, label: other}]",
    repeat="1",
    compare="{by: stack, at: {pairs: 6, rounds: 3}}",
    tests="\n  - throughput: {loss_goals: [0], warm_up: 0}",
)
PAIRS_OF_TRIALS = 3 * (2 * 2 + 7)
SEARCHED = Ask("a", 0, None, Request(100.0, 1.0, "search"))  # type: ignore[arg-type]


class Quiet:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *words, **more: None


class Gateways:
    """Pairs of gateways that are nothing but a count of what stands."""

    def __init__(self) -> None:
        self.standing: list[str] = []
        self.built: list[str] = []
        self.most = 0

    def pairs(self) -> Any:
        return SimpleNamespace(
            set_up=self._set_up,
            traffic=lambda case: None,
            discard=lambda setup: setup.bed.close() if setup else None,
            generator=SimpleNamespace(close=lambda: None),
        )

    def _set_up(self, case: Case) -> Any:
        name = case.stack.shown
        self.built.append(name)
        self.standing.append(name)
        self.most = max(self.most, len(self.standing))
        return SimpleNamespace(bed=SimpleNamespace(close=lambda: self.standing.remove(name)), name=name)


def plan(folder: Path, text: str = PLAN) -> ResolvedPlan:
    file = folder / "plan.yaml"
    file.write_text(text)
    return load_plan(file)


def directory(folder: Path, asked: ResolvedPlan) -> RunDirectory:
    return RunDirectory.create(folder, "ab", run_of([], {"by": "stack"}).manifest, asked.text)


def outcomes(asked: ResolvedPlan) -> list[Any]:
    return [
        outcome(c.stack.shown, c.frame_size, 1, 20_000.0, dut=c.dut, case=c.id)
        for c in cases(asked)
        if c.suite != "none"
    ]


def compared(
    asked: ResolvedPlan,
    run: RunDirectory,
    gateways: Gateways,
    *,
    apart: str = "",
    known: list[Any] | None = None,
) -> list[Finding]:
    parts = RunParts(
        asked.plan,
        run,
        SimpleNamespace(apart=lambda cases: apart),
        gateways.pairs,
        Quiet(),
        maximum_fps=lambda case: 1e6,
        encryption=lambda case, trials: "proven",
        warnings=lambda case: [],
    )
    return PairedRun(parts, rivals(asked, cases(asked)), outcomes(asked) if known is None else known).run()


@pytest.fixture(autouse=True)
def arithmetic(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Trials that cost no time: gateways of 20,000 frames/s; `break` raises instead of the n-th."""
    events: dict[str, Any] = {"break": set(), "count": itertools.count()}
    signature = inspect.signature(trial.measure)

    def measure(setup: Any, traffic: Any, request: Any, of: OfCase, waits: Any, **more: Any) -> Trial:
        signature.bind(setup, traffic, request, of, waits, **more)  # as the real one takes it
        if next(events["count"]) in events["break"]:
            raise TrialBroken("gateway home died")
        ask = Ask(of.case[-1], 0, None, request)  # type: ignore[arg-type]
        made = sim.made(ask, 50.0, lost=request.load_fps > 20_000, sequence=of.sequence)
        return made.model_copy(update={"case": of.case})

    monkeypatch.setattr(trial, "measure", measure)
    return events


def test_every_arm_is_held_against_the_reference_at_every_point(tmp_path: Path) -> None:
    """Two arms at two sizes; the sizes of two arms share their gateways."""
    text = PLAN.replace("label: other}", "label: other}, {stack: xfrm, label: third}").replace(
        "[64]", "[64, 512]"
    )
    asked = plan(tmp_path, text)
    pairs = [(r.a.stack.shown, r.b.stack.shown, r.a.frame_size) for r in rivals(asked, cases(asked))]
    assert pairs == [("xfrm", b, size) for b in ("other", "third") for size in (64, 512)]


def test_gateways_stand_together_and_are_new_in_each_round(tmp_path: Path) -> None:
    asked, gateways = plan(tmp_path), Gateways()
    with directory(tmp_path, asked) as run:
        findings = compared(asked, run, gateways)
        assert run.manifest.compare["together"] is True
        assert len(list(run.trials())) == 2 * PAIRS_OF_TRIALS
    assert [len(f.paired["rows"]) for f in findings] == [PAIRS_OF_TRIALS]
    assert gateways.most == 2
    rounds = [gateways.built[n : n + 2] for n in (0, 2, 4)]
    assert rounds[0] == rounds[1][::-1] == rounds[2], "neither arm is always the first that boots"
    assert sorted(rounds[0]) == ["other", "xfrm"]
    assert gateways.standing == []


def test_without_the_room_one_arms_gateways_follow_the_others(tmp_path: Path) -> None:
    """The manifest says why."""
    asked, gateways = plan(tmp_path), Gateways()
    with directory(tmp_path, asked) as run:
        findings = compared(asked, run, gateways, apart="together they need too much")
        assert run.manifest.compare["together"] is False
        assert run.manifest.compare["apart because"] == "together they need too much"
    assert gateways.most == 1
    assert [len(f.paired["rows"]) for f in findings] == [PAIRS_OF_TRIALS]


@pytest.mark.parametrize("apart", ["", "no room"])
def test_a_resumed_run_finds_what_an_uninterrupted_one_does(
    tmp_path: Path, arithmetic: dict[str, Any], monkeypatch: pytest.MonkeyPatch, apart: str
) -> None:
    asked = plan(tmp_path)
    with directory(tmp_path / "whole", asked) as run:
        whole = compared(asked, run, Gateways(), apart=apart)
    run = directory(tmp_path / "cut", asked)
    append, count = run.append, itertools.count()

    def cut(record: Trial) -> None:
        if next(count) == 31:
            raise KeyboardInterrupt
        append(record)

    monkeypatch.setattr(run, "append", cut)
    with run, pytest.raises(KeyboardInterrupt):
        compared(asked, run, Gateways(), apart=apart)
    with RunDirectory.open(run.path) as again:
        # A resumed run does not decide again whether this machine has room for both arms.
        assert compared(asked, again, Gateways(), apart="") == whole


def interrupted(
    folder: Path, asked: ResolvedPlan, monkeypatch: pytest.MonkeyPatch, after: int = 31
) -> RunDirectory:
    """A run that was killed in its comparison, with a trial of each search."""
    run = directory(folder, asked)
    run.update_manifest(cases=[case.entry() for case in cases(asked)])
    for case in cases(asked):
        run.append(sim.made(SEARCHED, 50.0, lost=False).model_copy(update={"case": case.id}))
    append, count = run.append, itertools.count()

    def cut(record: Trial) -> None:
        if next(count) == after:
            raise KeyboardInterrupt
        append(record)

    with monkeypatch.context() as patched, run:
        patched.setattr(run, "append", cut)
        with pytest.raises(KeyboardInterrupt):
            compared(asked, run, Gateways())
    return RunDirectory.open(run.path)


def lines_of(run: RunDirectory) -> list[bytes]:
    return (run.path / "trials.jsonl").read_bytes().splitlines(keepends=True)


def damage(run: RunDirectory, at: int) -> None:
    """Another number in this line."""
    lines = lines_of(run)
    lines[at] = lines[at].replace(b'"tx_frames":', b'"tx_frames":1')
    (run.path / "trials.jsonl").write_bytes(b"".join(lines))


@pytest.mark.parametrize("damaged", ["-at-a", "-at-b"])
def test_where_a_trial_of_one_arm_is_damaged_both_arms_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    """The rest of the other arm would be taken for trials at loads that it was not made at."""
    asked = plan(tmp_path)
    with directory(tmp_path / "whole", asked) as whole_run:
        whole = compared(asked, whole_run, Gateways())
    run = interrupted(tmp_path / "cut", asked, monkeypatch)
    damage(run, next(n for n, line in enumerate(lines_of(run)) if f'{damaged}"'.encode() in line))
    with RunDirectory.open(run.path) as again:
        again.mend()
        assert not [case for case in again.trial_counts() if "-at-" in case]
        assert compared(asked, again, Gateways()) == whole
        for case in again.trial_counts():
            assert [trial.sequence for trial in again.trials_of(case)] == [*range(again.trial_counts()[case])]


@pytest.mark.parametrize("arm", [0, 1])
def test_where_a_search_is_made_again_its_comparison_is_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arm: int
) -> None:
    """Its loads are shares of what the searches found, which may be something else the next time."""
    asked = plan(tmp_path)
    run = interrupted(tmp_path, asked, monkeypatch)
    damage(run, arm)
    with RunDirectory.open(run.path) as again:
        assert "begun anew" in " ".join(again.mend())
        assert not [case for case in again.trial_counts() if "-at-" in case]


def test_a_dead_gateway_voids_its_pair_and_is_built_again(tmp_path: Path, arithmetic: dict[str, Any]) -> None:
    asked, gateways = plan(tmp_path), Gateways()
    arithmetic["break"] = {5}
    with directory(tmp_path, asked) as run:
        findings = compared(asked, run, gateways)
    assert findings[0].paired["void"] == 1
    assert len(findings[0].paired["rows"]) == PAIRS_OF_TRIALS
    assert len(gateways.built) == 7
    assert gateways.standing == []


def test_a_leak_while_gateways_are_set_up_ends_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No verdict, and no gateways are tried again."""
    asked, gateways = plan(tmp_path), Gateways()

    def leak(case: Case) -> Any:
        gateways.built.append(case.stack.shown)
        raise InClear("cleartext is not blocked: 1 of 50 probe frames arrived without an SA")

    monkeypatch.setattr(gateways, "_set_up", leak)
    with directory(tmp_path, asked) as run:
        (findings,) = compared(asked, run, gateways)
    assert (findings.status, findings.quantities) == ("VIOLATED", [])
    assert "1 of 50 probe frames arrived without an SA" in str(findings.reasons[0])
    assert gateways.built
    assert len(gateways.built) == len(set(gateways.built))


def test_gateways_that_die_again_and_again_end_in_invalid(tmp_path: Path, arithmetic: dict[str, Any]) -> None:
    asked, gateways = plan(tmp_path), Gateways()
    arithmetic["break"] = set(range(10_000))
    with directory(tmp_path, asked) as run:
        findings = compared(asked, run, gateways)
    assert {f.status for f in findings} == {"INVALID"}
    assert "gateway home died" in " ".join(map(str, findings[0].reasons))
    assert len(gateways.built) < 25


def test_arms_without_any_throughput_are_not_compared_at_loads(tmp_path: Path) -> None:
    asked, gateways = plan(tmp_path), Gateways()
    with directory(tmp_path, asked) as run:
        findings = compared(asked, run, gateways, known=[])
    assert {f.status for f in findings} == {"INVALID"}
    assert "not even a lower bound" in findings[0].reasons[0].text
    assert gateways.built == []


def test_a_plan_without_it_has_no_rivals(tmp_path: Path) -> None:
    text = PLAN.replace("{by: stack, at: {pairs: 6, rounds: 3}}", "{by: stack, at: false}").replace(
        "repeat: 1", "repeat: 3"
    )
    asked = plan(tmp_path, text)
    assert rivals(asked, cases(asked)) == []


@pytest.mark.parametrize("leaking", ["xfrm", "other"])
def test_cleartext_in_the_warm_up_accuses_the_arm_that_leaked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaking: str
) -> None:
    """Both arms' gateways are warmed up when the first of them has a trial; the leak is the other's for ever."""
    left = [leaking]

    def warm_up(setup: Any, *_: Any, **__: Any) -> None:
        if setup.name in left:
            left.remove(setup.name)  # once only
            raise InClear("warm-up: 2 frames left home beside its SA")

    monkeypatch.setattr(unmeasured, "warm_up", warm_up)
    asked, gateways = plan(tmp_path, PLAN.replace("warm_up: 0", "warm_up: 1s")), Gateways()
    with directory(tmp_path, asked) as run:
        compared(asked, run, gateways)
        violated = {record.case[-1] for record in run.trials() if record.violated}
    assert violated == {"a" if leaking == "xfrm" else "b"}
    assert gateways.standing == []


@pytest.mark.parametrize("failing", ["xfrm", "other"])
def test_gateways_that_fail_while_they_warm_up_void_a_trial_of_their_own_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """The other arm's trial is made, and the failing arm's next gateways are warmed up as well."""
    left, warm = [failing], []

    def warm_up(setup: Any, *_: Any, **__: Any) -> None:
        if setup.name in left:
            left.remove(setup.name)  # once only
            raise TrialBroken("gateway home died")
        warm.append(setup.name)

    monkeypatch.setattr(unmeasured, "warm_up", warm_up)
    asked, gateways = plan(tmp_path, PLAN.replace("warm_up: 0", "warm_up: 1s")), Gateways()
    with directory(tmp_path, asked) as run:
        compared(asked, run, gateways)
        void = [record.case[-1] for record in run.trials() if record.validity == "INVALID"]
    assert void == ["a" if failing == "xfrm" else "b"]
    assert sorted(warm) == ["other"] * 3 + ["xfrm"] * 3
    assert len(gateways.built) == 7
    assert gateways.standing == []
