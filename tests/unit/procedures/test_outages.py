# SPDX-License-Identifier: Apache-2.0
"""Failover and reset, on gateways whose outages are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.measure.inputs.setup import Request
from espbench.plan.keys.ipsec_tests import (
    Failover,
    Reset,
)
from espbench.procedures.ipsec.ipsec_common import outage_s
from espbench.procedures.procedure import Procedure
from espbench.terms import ARRIVED_AT_THE_END
from support.simulated.ike_pair import (
    Pair,
    answered,
    made,
    trial_of,
    values,
)


@pytest.mark.parametrize(
    "settings", [Failover(repeats=2), Reset(repeats=2), Reset(what="sa-flush", repeats=2)]
)
def test_an_outage_is_between_the_last_arrival_before_and_the_first_after(settings: Any) -> None:
    """7.5 s at 1,000 frames/s, of which a millisecond is between any two frames."""
    pair = Pair(lambda r: trial_of(r, 7499, longest_gap_s=(3.0, 10.5), first_lost_s=3.0, last_lost_s=10.5))
    finding = answered(made(settings), pair)
    assert finding.quantities[0].value == 7.499
    assert finding.quantities[0].n == 2
    assert values(finding)["frames lost"] == 7499.0


@pytest.mark.parametrize("settings", [Failover(repeats=1), Reset(repeats=1)])
def test_an_outage_of_several_tunnels_ends_when_all_are_back(settings: Any) -> None:
    """The first of 8 tunnels is back after 2 s, the last after 7 s; the load is 1,000 frames/s."""
    pair = Pair(lambda r: trial_of(r, 3000, longest_gap_s=(3.0, 5.0), first_lost_s=3.001, last_lost_s=9.999))
    finding = answered(of_tunnels(settings, 8), pair)
    assert finding.quantities[0].value == pytest.approx(6.999)
    assert finding.words.startswith("Traffic flowed again through all 8 tunnels 6.999 s after ")


def of_tunnels(settings: Any, n: int) -> Procedure:
    """Return the procedure of a test through n tunnels."""
    procedure = made(settings)
    stack = procedure.case.stack.model_copy(update={"tunnels": n})
    cast(Any, procedure).case = replace(procedure.case, stack=stack)
    return procedure


@pytest.mark.parametrize(("tunnels", "status"), [(1, "OK"), (2, "INVALID")])
def test_a_frame_that_was_lost_before_the_outage_lengthens_no_time(tunnels: int, status: str) -> None:
    """An outage from 3 s to 5 s; one frame was lost at 0.1 s."""
    pair = Pair(lambda r: trial_of(r, 2000, longest_gap_s=(2.999, 5.0), first_lost_s=0.1, last_lost_s=4.999))
    finding = answered(of_tunnels(Failover(repeats=1, retries=0), tunnels), pair)
    assert finding.status == status
    if status == "OK":
        assert finding.quantities[0].value == pytest.approx(2.0)
    else:
        assert [*map(str, finding.reasons)] == [
            "a frame was lost 0.100 s after the first, before the outage (3.000 s); with several tunnels, the time "
            "to the last lost frame would be too long"
        ]


def test_a_frame_that_was_under_way_when_the_outage_began_is_lost_in_it() -> None:
    """At 100 frames/s there are 10 ms between two frames, and what was sent 9 ms before had not arrived yet."""
    pair = Pair(lambda r: trial_of(r, 200, longest_gap_s=(2.981, 5.0), first_lost_s=2.991, last_lost_s=4.99))
    finding = answered(of_tunnels(Failover.model_validate({"load": "100fps", "repeats": 1}), 2), pair)
    assert finding.status == "OK"
    assert finding.quantities[0].value == pytest.approx(2.009)


@pytest.mark.parametrize(
    ("tunnels", "arrived", "status"),
    [
        (1, 0.0, "UNRESOLVABLE"),
        (1, 0.2, "UNRESOLVABLE"),  # it was back just before the end
        (1, 0.999, "INVALID"),
        (8, 0.999, "INVALID"),
        (8, 0.875, "UNRESOLVABLE"),  # one of eight tunnels was not back
        (1, None, "UNRESOLVABLE"),  # as in records of earlier versions
    ],
)
def test_a_stray_loss_at_the_end_is_not_an_outage_that_never_ended(
    tunnels: int, arrived: float | None, status: str
) -> None:
    """The last lost frame was sent 10 ms before the end of the trial."""
    reading = {"longest_gap_s": (2.999, 5.0), "first_lost_s": 3.0, "last_lost_s": 29.99}
    shares = {} if arrived is None else {ARRIVED_AT_THE_END: {"west-east": arrived}}
    pair = Pair(lambda r: trial_of(r, 2001, **reading).model_copy(update={"measured": shares}))
    finding = answered(of_tunnels(Failover(repeats=1, retries=0), tunnels), pair)
    assert finding.status == status
    if status == "INVALID":
        assert "at the end of the trial, although traffic flowed again" in finding.reasons[0].text
    else:
        assert "frames were still lost 27 s after Office's IPsec was killed" in finding.words


@given(
    gap=st.tuples(st.floats(0, 5), st.floats(5, 10)),
    lost=st.tuples(st.floats(0, 5), st.floats(5, 10)),
    tunnels=st.integers(1, 1000),
)
def test_all_tunnels_are_never_back_before_the_first(
    gap: tuple[float, float], lost: tuple[float, float], tunnels: int
) -> None:
    trial = trial_of(
        Request(1000.0, 10.0, "measure"), 25, longest_gap_s=gap, first_lost_s=lost[0], last_lost_s=lost[1]
    )
    (reading,) = trial.per_direction.values()
    assert outage_s(reading, tunnels) >= outage_s(reading)
    assert outage_s(reading, tunnels) <= lost[1] - lost[0] + 0.001


@pytest.mark.parametrize(
    ("gap", "lost", "truth"),
    [((5.0, 5.2), (3.0, 3.024), 0.025), ((3.0, 3.5), (0.1, 3.499), 0.499), ((3.0, 3.5), (None, None), 0.499)],
    ids=["the host stood still elsewhere", "a frame was lost elsewhere", "only arrivals are known"],
)
def test_an_outage_is_neither_a_stall_of_the_host_nor_a_stray_loss(
    gap: tuple[float, float], lost: tuple[float | None, float | None], truth: float
) -> None:
    """The load is 1,000 frames/s."""
    trial = trial_of(
        Request(1000.0, 10.0, "measure"), 25, longest_gap_s=gap, first_lost_s=lost[0], last_lost_s=lost[1]
    )
    assert outage_s(trial.per_direction["west-east"]) == pytest.approx(truth)


@pytest.mark.parametrize("settings", [Failover(repeats=1, retries=0), Reset(repeats=1, retries=0)])
@pytest.mark.parametrize(
    "reading",
    [
        {"longest_gap_s": (3.0, 3.001)},
        {"first_lost_s": 3.0, "last_lost_s": 10.5},
    ],
    ids=["it is not known which frames were lost", "the times of arrivals are not known"],
)
def test_an_outage_whose_losses_have_no_times_is_no_outage_of_0_s(
    settings: Any, reading: dict[str, Any]
) -> None:
    pair = Pair(lambda r: trial_of(r, 7499, **reading))
    finding = answered(made(settings), pair)
    assert (finding.status, finding.quantities) == ("INVALID", [])
    assert [*map(str, finding.reasons)] == ["it is not known when 7,499 frames were lost"]


def test_frames_that_arrived_damaged_are_no_outage() -> None:
    pair = Pair(lambda r: trial_of(r, 20, corrupted=20))
    finding = answered(made(Reset(repeats=1)), pair)
    assert (finding.status, finding.quantities[0].value) == ("OK", 0.0)


def test_a_failover_kills_office_without_a_word() -> None:
    pair = Pair(lambda r: trial_of(r, 1, longest_gap_s=(3.0, 4.0), last_lost_s=3.0))
    answered(made(Failover(repeats=1)), pair)
    # Each time it is given its connections: the standby, too.
    assert pair.daemons["office"].begun == ["start", "load"] * 3
    # Anew for the test, dead in it, anew after it: never with a farewell.
    assert pair.daemons["office"].stopped == [True, True, True]


def test_what_never_recovers_is_unresolvable_and_what_was_not_missed_invalid() -> None:
    lost = Pair(lambda r: trial_of(r, 26_000, longest_gap_s=(3.0, 4.0), last_lost_s=29.99))
    finding = answered(made(Reset(repeats=1)), lost)
    assert finding.status == "UNRESOLVABLE"
    assert "lengthen trial" in finding.reasons[0].text
    unharmed = answered(made(Reset(repeats=1, retries=0)), Pair(trial_of))
    assert (unharmed.status, [*map(str, unharmed.reasons)]) == (
        "INVALID",
        ["no frame was lost, so there is no outage to measure"],
    )


def test_frames_so_few_that_none_is_near_the_end_do_not_hide_an_outage() -> None:
    """A frame a second: those of 4.0 s to 39.0 s are lost, and the trial ends at 40 s. The longest gap is before."""
    pair = Pair(lambda r: trial_of(r, 36, longest_gap_s=(2.0, 3.0001), first_lost_s=4.0, last_lost_s=39.0))
    settings = {"load": "1fps", "trial": "40s", "repeats": 1}
    for finding in (
        answered(made(test.model_validate(settings)), pair)
        for test in (cast(type[Any], Failover), cast(type[Any], Reset))
    ):
        assert (finding.status, finding.quantities) == ("UNRESOLVABLE", [])


@pytest.mark.parametrize(("size", "said"), [(64, []), (256, ["26.6: not at the minimum frame size"])])
def test_a_reset_names_the_clauses_that_it_does_not_keep(size: int, said: list[str]) -> None:
    """26.6 asks for the throughput of the smallest frames; 9.1 and 23 hold for it, too."""
    pair = Pair(lambda r: trial_of(r, 7499, longest_gap_s=(3.0, 10.5), first_lost_s=3.0, last_lost_s=10.5))
    settings = {"load": "10fps", "trial": "30s", "repeats": 1, "settle": 0, "learning": 0}
    finding = answered(made(Reset.model_validate(settings), frame_size=size), pair)
    assert (finding.status, finding.rfc2544) == ("OK", False)
    assert [*map(str, finding.rfc2544_deviations)] == [
        "26.6: at a load that the plan sets, not at the throughput",
        *said,
        "9.1: fewer than five of the standard frame sizes",
        "23 b: 0 s after learning frames instead of 2 s",
        "23 e: 0 s before the next trial instead of 5 s",
    ]


def test_power_is_refused_where_nobody_can_switch_it() -> None:
    finding = answered(made(Reset(what="power", repeats=1, retries=0)), Pair(trial_of))
    assert finding.status == "INVALID"
    assert "cannot switch gateways of platform netns off and on; use dut: uml" in finding.reasons[0].text


@pytest.mark.parametrize("anew", [False, True])
def test_what_espbench_brings_to_a_box_again_is_a_deviation(
    anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest has its files at once; to a box the daemon is brought, which the time includes."""
    pair = Pair(lambda r: trial_of(r, 1, longest_gap_s=(3.0, 4.0), last_lost_s=3.0))
    bed = cast(Any, pair.maker.setup.bed)
    report = {"off_s": 0.1, "boot_s": 2.0} | ({"brought_anew": True} if anew else {})
    bed.no_power_switch, bed.power_cycle = (lambda side: ""), (lambda side, guard: report)
    monkeypatch.setattr(pair.stack, "revive", lambda side: None)
    finding = answered(made(Reset(what="power", repeats=1)), pair)
    assert finding.status == "OK"
    assert any("brings its agent and the daemon" in text.text for text in finding.rfc2544_deviations) == anew


def test_a_box_without_a_switch_says_what_it_lacks() -> None:
    pair = Pair(trial_of)
    bed = cast(Any, pair.maker.setup.bed)
    bed.no_power_switch, bed.power_cycle = (lambda side: f"{side} has no power switch"), str
    finding = answered(made(Reset(what="power", gateway="office", repeats=1, retries=0)), pair)
    assert (finding.status, [r.text for r in finding.reasons]) == ("INVALID", ["office has no power switch"])
