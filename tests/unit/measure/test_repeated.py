# SPDX-License-Identifier: Apache-2.0
"""A trial that would be the same to the last instruction is executed once, and has a record each time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from espbench.generators.base import Noise
from espbench.measure import trial
from espbench.measure.inputs.setup import Request, Shape
from espbench.measure.record import OfCase
from espbench.measure.repeated import Repeated
from espbench.sentences import Code
from espbench.terms import SAME_AS_TRIAL, SAME_EACH_TIME, Reason, Trial

SEARCH, FINAL = Request(1000.0, 0.05, "search"), Request(1000.0, 0.35, "final")


def measured(
    asked: list[Request], *, same: bool = True, profiled: bool = False, cases: str = ""
) -> tuple[list[Trial], list[int]]:
    """Return the records, and which trials were executed. cases: a letter for the case of each; empty: of one case."""
    bed, repeated, executed = (
        cast(Any, SimpleNamespace(same_each_time=same, profiled=profiled)),
        Repeated(),
        list[int](),
    )

    def one(number: int, request: Request) -> Trial:
        case = cases[number] if cases else "a"

        def make() -> Trial:
            executed.append(number)
            return trial.broken(request, Reason.of(Code.OF_CASE, text="x"), case=case, sequence=number)

        return repeated.record(bed, request, OfCase(case, number, 0.01), make)

    return [one(number, request) for number, request in enumerate(asked)], executed


def test_the_same_request_is_executed_once() -> None:
    records, executed = measured([SEARCH, FINAL, FINAL, SEARCH, FINAL])
    assert executed == [0, 1]
    assert [record.sequence for record in records] == [0, 1, 2, 3, 4]
    assert [record.host.get(SAME_AS_TRIAL) for record in records] == [None, None, 1, 0, 1]
    figures = [record.model_dump(exclude={"sequence", "host"}) for record in records]
    assert figures[1] == figures[2] == figures[4] != figures[0] == figures[3]


def test_whatever_differs_in_a_request_is_executed() -> None:
    others = [
        Request(1000.1, 0.35, "final"), Request(1000.0, 0.36, "final"), Request(1000.0, 0.35, "search"),
        Request(1000.0, 0.35, "final", attempt=1), Request(1000.0, 0.35, "final", shape=Shape(cold=True)),
        Request(1000.0, 0.35, "final", shape=Shape(burst_frames=5)), Request(1000.0, 0.35, "final", bus=True),
    ]  # fmt: skip
    _, executed = measured([FINAL, *others])
    assert executed == [*range(len(others) + 1)]


def test_each_says_that_it_would_be_the_same_again() -> None:
    """A profile counts what each trial executes, so all are executed there; the figures are those of a run without."""
    for profiled, expected in ((False, [0]), (True, [0, 1, 2])):
        records, executed = measured([FINAL] * 3, profiled=profiled)
        assert executed == expected
        assert all(record.host[SAME_EACH_TIME] for record in records)


def test_a_case_has_nothing_of_another() -> None:
    _, executed = measured([FINAL] * 4, cases="abba")
    assert executed == [0, 1, 3]


def test_where_each_trial_is_another_all_are_executed() -> None:
    """Real time is such a case, and a test whose trials meet the gateways' timers at different moments."""
    _, executed = measured([FINAL] * 3, same=False)
    assert executed == [0, 1, 2]


def test_a_trial_with_noise_is_executed() -> None:
    mac = "02:00:00:00:00:01"
    noise = Noise(id=1, from_="west", rate_fps=1.0, src_mac=mac, dst_mac=mac, packets=["AAAA"])
    _, executed = measured([Request(1.0, 1.0, "measure", shape=Shape(noise=(noise,)))] * 2)
    assert executed == [0, 1]
