# SPDX-License-Identifier: Apache-2.0
"""Gateways that die are built anew, but not for ever; what leaks while it is set up is not: the case is VIOLATED."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.measure.inputs.setup import Request, TrialBroken
from espbench.measure.proof.readiness import InClear
from espbench.platforms.base import NotBack
from espbench.procedures.limits import Limits
from espbench.procedures.rfc2544.throughput import ThroughputCase
from espbench.runs.one_case import MAXIMUM_REBUILDS, OneCase, encryption_of
from espbench.terms import Trial
from support.simulated.throughput import MAXIMUM, case


class Loads:
    """A procedure that wants each of these loads, one after the other; gateways die at those above `dies_above`."""

    warm_up_fps = 1.0

    def __init__(self, loads: list[float], dies_above: float) -> None:
        self.case = SimpleNamespace(
            id="c", pair="p", settings=SimpleNamespace(warm_up=0, learning=0, residue=0, settle=0)
        )
        self.trials: list[Any] = []
        self.measured: list[float] = []
        self._loads = loads
        self._dies_above = dies_above

    def next(self) -> Request | None:
        done = len(self.trials)
        return Request(self._loads[done], 1.0, "final") if done < len(self._loads) else None

    def measure(self, request: Request, maker: object) -> Any:
        self.measured.append(request.load_fps)
        if request.load_fps > self._dies_above:
            raise TrialBroken(f"gateway office died at {request.load_fps}")
        return SimpleNamespace(load_fps=request.load_fps, disturbed=False, validity="OK")

    def add(self, record: Trial) -> None:
        self.trials.append(record)

    def brackets(self) -> list[Any]:
        return []

    def remaining_s(self, *, waits: bool = True) -> float:
        return 0.0


class Counted:
    """Set-ups that can always be made, and are counted."""

    def __init__(self) -> None:
        self.made = 0

    def set_up(self, case: object) -> object:
        self.made += 1
        return self

    def discard(self, pair: object) -> None:
        pass

    def traffic(self, case: object) -> None:
        return None


def measure(procedure: Loads, setups: Counted) -> None:
    observer = SimpleNamespace(trial_started=lambda *_: None, trial_done=lambda *_: None)
    one = OneCase(cast(Any, setups), lambda _: None, cast(Any, observer), virtual_time=False)
    one.measure(cast(Any, procedure), None, lambda _: None)


def run(loads: list[float], dies_above: float) -> tuple[Loads, int]:
    procedure, setups = Loads(loads, dies_above), Counted()
    measure(procedure, setups)
    assert len(procedure.trials) == len(loads)
    return procedure, setups.made


def test_a_load_that_kills_the_gateways_is_given_up_and_lower_ones_are_measured() -> None:
    procedure, made = run([9, 9, 9, 9, 9, 5, 5], dies_above=8)
    assert procedure.measured == [9] * (MAXIMUM_REBUILDS + 1) + [5, 5]
    assert [trial.validity for trial in procedure.trials] == ["INVALID"] * 5 + ["OK"] * 2
    assert "gateway office died at 9" in str(procedure.trials[4].reasons[0])
    assert made == MAXIMUM_REBUILDS + 2


def test_gateways_that_die_at_every_load_are_given_up() -> None:
    procedure, _ = run([9, 9, 9, 9, 5, 5, 3, 3], dies_above=0)
    assert procedure.measured == [9] * (MAXIMUM_REBUILDS + 1) + [5]
    assert {trial.validity for trial in procedure.trials} == {"INVALID"}


@pytest.mark.parametrize("loads", [[5, 9, 5, 9, 5], [9, 5, 5]])
def test_dying_now_and_then_costs_those_trials_alone(loads: list[float]) -> None:
    procedure, _ = run(loads, dies_above=8)
    assert procedure.measured == loads
    assert [trial.validity == "OK" for trial in procedure.trials] == [load < 8 for load in loads]


class Gone(Loads):
    """A procedure that switches a box off, which does not come back."""

    def measure(self, request: Request, maker: object) -> Any:
        raise NotBack("home was switched off and on, and was not back within 5 s")


def test_a_box_that_does_not_come_back_is_not_set_up_again() -> None:
    """Its message ends the run; the trial leaves no record, so a resumed run makes it again."""
    procedure, setups = Gone([5, 5], dies_above=8), Counted()
    with pytest.raises(NotBack, match="was not back within 5 s"):
        measure(procedure, setups)
    assert (setups.made, procedure.trials) == (1, [])


class Leaking(Counted):
    """Set-ups of which the first lets frames cross in clear; the next ones would not."""

    def set_up(self, case: object) -> object:
        super().set_up(case)
        if self.made == 1:
            raise InClear("capture of the middle link: 1 of 50 frames crossed in clear")
        return self


@pytest.mark.parametrize("virtual_time", [False, True])
def test_a_leak_while_the_tunnel_is_set_up_is_for_ever(tmp_path: Path, *, virtual_time: bool) -> None:
    """The case ends as VIOLATED, no other pair is built for it, and a replay of its records says the same."""
    measured, bounds, setups = case(tmp_path), Limits(1000.0, MAXIMUM, MAXIMUM, None), Leaking()
    observer = SimpleNamespace(trial_started=lambda *_: None, trial_done=lambda *_: None)
    running = ThroughputCase(measured, bounds, [512])
    one = OneCase(cast(Any, setups), lambda _: None, cast(Any, observer), virtual_time=virtual_time)
    assert one.measure(running, None, lambda _: None) is None
    assert setups.made == 1
    for search in (running, ThroughputCase(measured, bounds, [512], running.trials)):
        assert search.next() is None
        (outcome,) = search.outcomes("dut", "not proven")
        assert (outcome.status, outcome.throughput_fps) == ("VIOLATED", None)
        assert [*map(str, outcome.reasons)] == ["capture of the middle link: 1 of 50 frames crossed in clear"]
    assert encryption_of(measured, running.trials, external=True) == "not proven"
