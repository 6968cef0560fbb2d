# SPDX-License-Identifier: Apache-2.0
"""Lost means one thing, whoever counted: sent and not received intact (RFC 2544 10, 26.3)."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.generators.base import Generator, Offered, PortCounts, Stream, StreamCounts
from espbench.generators.trex_account import Account, stream_counts
from espbench.generators.trex_ports import Counters
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters
from espbench.measure.record import OfCase, Seen, record
from espbench.platforms import placement
from espbench.platforms.base import LinkCounters, Testbed
from espbench.procedures.ipsec.ipsec_common import outage_s
from espbench.sentences import Place
from espbench.stacks.base import SaCounters
from espbench.terms import DirectionReading, Trial
from espbench_scapy.judging import SequenceCount
from support.generators.streams import counts

# Each frame sent came, or came with a copy, or came damaged (with or without a readable number, alone or
# beside an intact copy), or never came.
FATES = ("intact", "twice", "damaged", "illegible", "damaged and intact", "gone")
Fates = st.lists(st.sampled_from(FATES), min_size=1, max_size=40)


class Bed(Testbed):
    """No ports: nothing is sent here."""

    def close(self) -> None: ...


def trial_of(
    streams: list[StreamCounts], *, virtual_time: bool, delta: counters.Counters | None = None
) -> Trial:
    """The record of a trial in which the generator counted this."""
    bed = Bed("netns", "", {}, {}, placement.choose(), {}, virtual_time=virtual_time)
    setup = Setup(bed, cast(Generator, None), None, {})
    offered = Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=10**9, duration_s=1.0, intended_duration_s=1.0, streams=streams,
        ports=[PortCounts(name=name, rx_overrun=0, foreign=0) for name in ("west", "east")],
    )  # fmt: skip
    return record(
        setup,
        Traffic(((64, 1),), 4, "one-way"),
        Request(100.0, 1.0, "final"),
        OfCase("c", 0, 0.01),
        Seen(offered, delta or {}, {}, {}),
    )


def native(fates: list[str]) -> StreamCounts:
    """Count frames of these fates as espbench-traffic reports them, in real and in virtual time."""
    tx, came = len(fates), [fate for fate in fates if fate != "gone"]
    rx = sum("intact" in fate or fate == "twice" for fate in fates)
    damaged = sum("damaged" in f or f == "illegible" for f in fates)
    return counts(tx, rx, lost=tx - len(came), corrupted=damaged, latency_us=None)


def scapy(fates: list[str]) -> StreamCounts:
    """Count frames of these fates as the Scapy generator does."""
    count = SequenceCount()
    for number, fate in enumerate(fates):
        if "damaged" in fate or fate == "illegible":
            count.damaged(None if fate == "illegible" else number)
        if "intact" in fate or fate == "twice":
            count.intact(number)
        if fate == "twice":
            count.intact(number)
    return counts(
        len(fates), count.received, lost=count.lost(len(fates)), corrupted=count.corrupted, latency_us=None
    )


def trex(fates: list[str]) -> StreamCounts:
    """Count frames of these fates as TRex's ports do, which see no damage."""
    came = sum(fate != "gone" for fate in fates)
    stream = Stream.model_construct(id=0, from_="west", to="east")
    accounts = {
        "west": Account.of(Counters(len(fates), 0, 0, 0), None),
        "east": Account.of(Counters(0, came, 0, 0), None),
    }
    return stream_counts(stream, len(fates), accounts)  # type: ignore[arg-type]


@pytest.mark.parametrize("virtual_time", [False, True], ids=["real time", "e500"])
@pytest.mark.parametrize("count", [native, scapy, trex])
@settings(deadline=None)
@given(there=Fates, back=Fates)
def test_what_was_sent_was_received_or_lost(
    count: Any, virtual_time: bool, there: list[str], back: list[str]
) -> None:
    """Trial and directions add up, and the share is of what was sent; damaged frames are among the lost."""
    other_way = count(back).model_copy(update={"from_": "east", "to": "west"})
    trial = trial_of([count(there), other_way], virtual_time=virtual_time)
    parts: list[Trial | DirectionReading] = [trial, *trial.per_direction.values()]
    for part in parts:
        assert part.lost + part.rx_frames == part.tx_frames
        assert part.lost >= 0
    assert trial.lost == sum(d.lost for d in trial.per_direction.values())
    assert trial.frame_loss_ratio == trial.lost / trial.tx_frames
    if count is not trex:
        intact = sum("intact" in fate or fate == "twice" for fate in (*there, *back))
        assert trial.rx_frames == intact


@settings(deadline=None)
@given(fates=Fates, queue=st.integers(0, 5))
def test_the_places_of_loss_add_up_to_the_lost_damaged_ones_included(fates: list[str], queue: int) -> None:
    """Frames that came damaged have a place of their own."""
    stream = native([*fates, *["gone"] * queue])
    passed, link = stream.tx_frames - queue, LinkCounters
    sas = SaCounters(encrypted=passed, decrypted=passed)
    delta: Any = {
        "home": counters.GatewayCounters(
            sas, link(stream.tx_frames, 0, 0, 0, 0, 0), link(0, passed, 0, 0, 0, 0)
        ),
        "office": counters.GatewayCounters(sas, link(0, passed, 0, 0, 0, 0), link(passed, 0, 0, 0, 0, 0)),
    }
    trial = trial_of([stream], virtual_time=False, delta=delta)
    damaged = sum(fate in ("damaged", "illegible") for fate in fates)
    assert sum(trial.loss_at.values()) == trial.lost
    assert trial.loss_at.get(Place.DAMAGED, 0) == damaged


def test_a_record_that_left_damaged_frames_out_is_read_with_them() -> None:
    """Earlier versions did not count damaged frames as lost."""
    written = json.loads(
        trial_of([native(["intact", "damaged", "gone"])], virtual_time=True).model_dump_json()
    )
    assert written["lost"] == 2
    old = written | {"lost": 1}
    old["per_direction"]["west-east"]["lost"] = 1
    trial = Trial.model_validate_json(json.dumps(old))
    assert (trial.lost, trial.per_direction["west-east"].lost) == (2, 2)


def test_a_damaged_frame_alone_is_no_outage() -> None:
    """Nothing was away; the longest time between two arrivals is the host's."""
    trial = trial_of([native(["intact", "damaged", "intact"])], virtual_time=True)
    reading = trial.per_direction["west-east"].model_copy(update={"longest_gap_s": (0.2, 0.7)})
    assert outage_s(reading) == 0.0
