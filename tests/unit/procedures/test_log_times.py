# SPDX-License-Identifier: Apache-2.0
"""Set-up and rekey rates come from times in a daemon's log: neither a clock step nor a starved host may make one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.measure.validity import host
from espbench.measure.validity.host import CpuTimes, HostSnapshot
from espbench.plan.keys.ipsec_tests import Capacity, RekeyRate, SetUpRate
from espbench.procedures.ipsec import capacity, rekey_rate, set_up_rate
from espbench.procedures.ipsec.watching import backwards, watched
from espbench.sentences import Code
from espbench.stacks.daemons.sa_events import SaEvent, Span
from espbench.terms import Finding, Reason
from support.simulated.ike_pair import ExactDaemon, Pair, answered, made, values

TESTS = [
    SetUpRate(tunnels=100, retries=0, public_key=False),
    RekeyRate.model_validate({"tunnels": 10, "lifetime": "10s", "lifetimes": 2, "retries": 0}),
]


@pytest.fixture(autouse=True)
def carried(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tunnels carry; real gateways test this."""
    for module in (set_up_rate, rekey_rate, capacity):
        monkeypatch.setattr(
            module, "show_all_carry", lambda *_: {"kind": "shown", "proven": True, "problems": []}
        )


def looks(*, step_ms: float = 0.0, stolen: float = 0.0) -> Iterator[HostSnapshot]:
    """Yield readings of a host, one a second, between which its clock steps and a share of CPU 3 is stolen."""
    for second in count():
        ns = second * 10**9
        cpus = {3: CpuTimes(int((1 - stolen) * ns), 0, int(stolen * ns))}
        yield HostSnapshot(ns, int(second * step_ms * 1e6), cpus)


def measured(monkeypatch: pytest.MonkeyPatch, settings: Any, pair: Pair, **of_host: float) -> Finding:
    """Return the finding of a test on such a host."""
    readings = looks(**of_host)
    monkeypatch.setattr(host, "look", lambda: next(readings))
    return answered(made(settings), pair)


def codes(finding: Finding) -> set[str]:
    return {reason.code for reason in finding.reasons}


def step_back(daemon: ExactDaemon, at: int) -> None:
    """Let the daemon's log be 2 s behind from this event on."""
    listed = daemon.events

    def events(after: int = 0) -> list[SaEvent]:
        found = listed(after)
        return [replace(e, at_s=e.at_s - 2.0) if i >= at else e for i, e in enumerate(found)]

    cast(Any, daemon).events = events


@pytest.mark.parametrize("settings", TESTS, ids=["set-ups", "rekeys"])
def test_a_quiet_host_lets_the_rates_stand(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    finding = measured(monkeypatch, settings, Pair(), step_ms=4.0, stolen=0.04)
    assert (finding.status, codes(finding)) == ("OK", set())


@pytest.mark.parametrize("step_ms", [-2000.0, 6.0, 3_600_000.0])
@pytest.mark.parametrize("settings", TESTS, ids=["set-ups", "rekeys"])
def test_a_step_of_this_machines_clock_voids_the_trial(
    monkeypatch: pytest.MonkeyPatch, settings: Any, step_ms: float
) -> None:
    finding = measured(monkeypatch, settings, Pair(), step_ms=step_ms)
    assert (finding.status, codes(finding)) == ("INVALID", {Code.CLOCK_STEPPED})


@pytest.mark.parametrize("settings", TESTS, ids=["set-ups", "rekeys"])
def test_a_starved_host_voids_the_trial(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    finding = measured(monkeypatch, settings, Pair(), stolen=0.5)
    assert (finding.status, codes(finding)) == ("INVALID", {Code.HOST_STARVATION})
    assert all(reason.of_host for reason in finding.reasons)


def test_a_void_trial_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is disturbed in the first of two trials; each trial takes four readings."""
    readings = [*(look for _, look in zip(range(4), looks(stolen=0.5), strict=False))]
    readings += [look for _, look in zip(range(4), looks(), strict=False)]
    monkeypatch.setattr(host, "look", lambda: readings.pop(0))
    finding = answered(made(SetUpRate(tunnels=100, retries=1, public_key=False)), Pair())
    assert (finding.status, finding.trials, values(finding)["tunnel set-up rate"]) == ("OK", 2, 50.0)


@pytest.mark.parametrize(("settings", "event"), [(TESTS[0], 151), (TESTS[1], 31)], ids=["set-ups", "rekeys"])
def test_a_negotiation_that_took_less_than_no_time_voids_the_trial(
    monkeypatch: pytest.MonkeyPatch, settings: Any, event: int
) -> None:
    """The clock of a remote box cannot be seen, but its log can. 100 set-ups of 20 ms took 0 s by it."""
    pair = Pair()
    step_back(pair.daemons["home"], event)
    finding = measured(monkeypatch, settings, pair)
    assert finding.status == "INVALID"
    assert Code.ENDED_BEFORE_BEGUN in codes(finding)
    assert finding.quantities == []


@pytest.mark.parametrize(
    ("room", "stolen", "status"),
    [(43, 0.5, "INVALID"), (43, 0.0, "OK"), (1000, 0.5, "OK")],
    ids=["refused while starved", "refused", "starved, but all carried"],
)
def test_a_step_of_capacity_that_a_starved_host_may_have_refused_voids_the_trial(
    monkeypatch: pytest.MonkeyPatch, room: int, stolen: float, status: str
) -> None:
    """Each of 60 tunnels that carries shows it, whatever the host did."""
    pair = Pair()
    pair.daemons["home"].room = room
    finding = measured(monkeypatch, Capacity(limit=60, step=20, retries=0), pair, stolen=stolen)
    assert (finding.status, codes(finding)) == (
        status,
        {Code.HOST_STARVATION} if status == "INVALID" else set(),
    )


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6))))
def test_only_times_below_zero_are_impossible(times: Sequence[tuple[float, float]]) -> None:
    """A log of whole milliseconds has negotiations of 0 s."""
    n = sum(done < begun for begun, done in times)
    reasons = backwards(Span(*each) for each in times)
    assert [reason.values for reason in reasons] == ([{"n": n}] if n else [])


def test_virtual_time_has_no_host() -> None:
    """No gateway is asked for its CPU time either, which would take some of its virtual time."""
    pair = Pair()
    reasons: list[Reason] = []
    bed = cast(Any, pair.maker.setup.bed)
    bed.virtual_time, bed.gateways, bed.kept_waiting_ns = True, {}, pytest.fail
    with watched(pair.maker.setup, reasons):
        pass
    assert reasons == []
