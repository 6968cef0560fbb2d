# SPDX-License-Identifier: Apache-2.0
"""Makes records of trials whose senders pause or are too slow, by espbench's code, for a DUT of known throughput."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from espbench.generators.base import Generator, Offered, PortCounts, StreamCounts
from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof.counters import Counters, GatewayCounters
from espbench.measure.record import OfCase, Seen, record
from espbench.plan import Case
from espbench.platforms import placement
from espbench.platforms.base import LinkCounters, PortName, Testbed
from espbench.procedures.limits import Limits
from espbench.procedures.rfc2544.throughput import ThroughputCase
from espbench.stacks.base import SaCounters, Stack
from espbench.terms import Outcome, Trial
from support.generators.streams import counts

CATCH_UP = 1.1  # traffic/src/send/pace.rs
PORTS: tuple[PortName, ...] = ("west", "east")

Senders = Callable[[Request, int], Offered]


class Bed(Testbed):
    """A test bed without ports, because no frames are sent."""

    def close(self) -> None: ...


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a stream: from begin to end (s), its rate, frames/s, and the share that the DUT loses (0 to 1)."""

    begin_s: float
    end_s: float
    fps: float
    lost: float = 0.0


def stream(number: int, intended: int, phases: list[Phase], **changes: Any) -> StreamCounts:
    """Return the counts of a stream that left in these phases; the losses of a phase are spread over it."""
    sent = round(sum((p.end_s - p.begin_s) * p.fps for p in phases))
    episodes = [
        {
            "from_ns": round(1e9 * p.begin_s),
            "to_ns": round(1e9 * p.end_s),
            "frames": round(p.lost * p.fps * (p.end_s - p.begin_s)),
        }
        for p in phases
        if p.lost
    ]
    lost = sum(e["frames"] for e in episodes)
    usual: dict[str, Any] = {
        "id": number, "intended_frames": intended, "unsent": max(0, intended - sent),
        "duration_s": phases[-1].end_s, "latency_us": None, "loss_episodes": episodes,
        "departure_fps": sent / (phases[-1].end_s - phases[0].begin_s),
    }  # fmt: skip
    return counts(sent, sent - lost, source=PORTS[number], **usual | changes)


def offered(request: Request, streams: list[StreamCounts], **changes: Any) -> Offered:
    """Return a generator's report of a trial with these streams."""
    took_s = max(s.duration_s or 0.0 for s in streams)
    return Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=round(1e9 * took_s), duration_s=took_s, intended_duration_s=request.duration_s,
        streams=streams, ports=[PortCounts(name=name, rx_overrun=0, foreign=0) for name in PORTS],
    ).model_copy(update=changes)  # fmt: skip


def steady(request: Request, truth_fps: float) -> Offered:
    """Return the report of a trial in one direction that was sent as intended."""
    lost = max(0.0, 1 - truth_fps / request.load_fps)
    phase = Phase(0.0, request.duration_s, request.load_fps, lost)
    return offered(request, [stream(0, round(request.load_fps * request.duration_s), [phase])])


def paused_near_the_end(request: Request, truth_fps: float, **changes: Any) -> Offered:
    """Return the report of a trial whose sender paused for 150 ms, 50 ms before its end, and then caught up."""
    pause_s, left_s, load = 0.150, 0.050, request.load_fps
    begin_s = request.duration_s - left_s
    end_s = begin_s + pause_s + left_s / CATCH_UP
    phases = [
        Phase(0.0, begin_s, load, max(0.0, 1 - truth_fps / load)),
        Phase(begin_s + pause_s, end_s, CATCH_UP * load, max(0.0, 1 - truth_fps / (CATCH_UP * load))),
    ]
    stall = {"at_ns": round(1e9 * begin_s), "ms": 1e3 * pause_s, "until_ns": round(1e9 * end_s)}
    one = stream(0, round(load * request.duration_s), phases)
    one = StreamCounts.model_validate(one.model_dump(by_alias=True) | {"tx_stalls": [stall]} | changes)
    return offered(request, [one])


def unequal(request: Request, truth_fps: float, east_fps: float) -> Offered:
    """Return the report of a trial in both directions, whose sender in the east reaches at most east_fps."""
    each, length_s = request.load_fps / 2, request.duration_s
    east = min(each, east_fps)
    lost = max(0.0, 1 - truth_fps / (each + east))  # while both send
    whole = round(each * length_s)
    phases = [Phase(0.0, length_s, east, lost)]
    if east < each:
        phases.append(Phase(length_s, length_s * each / east, east))
    streams = [stream(0, whole, [Phase(0.0, length_s, each, lost)]), stream(1, whole, phases)]
    return offered(request, streams)


def held(request: Request, east_fps: float) -> Offered:
    """Return the report of a trial in both directions that lost nothing, but whose sender in the east reached at most
    east_fps and gave up at one and a half times the trial's length.
    """
    each, length_s = request.load_fps / 2, request.duration_s
    whole, east = round(each * length_s), min(each, east_fps)
    took_s = min(1.5 * length_s + 0.5, length_s * each / east)
    return offered(
        request,
        [
            stream(0, whole, [Phase(0.0, length_s, each)]),
            stream(1, whole, [Phase(0.0, took_s, east)]),
        ],
    )


def trial(case: Case, sequence: int, request: Request, made: Offered) -> Trial:
    """Return the record of a trial, with gateways that count nothing."""
    nothing = GatewayCounters(SaCounters(), LinkCounters(0, 0, 0, 0, 0, 0), LinkCounters(0, 0, 0, 0, 0, 0))
    counters: Counters = {"home": nothing, "office": nothing}
    bed = Bed("netns", "", {}, {}, placement.choose(), {})
    setup = Setup(bed, cast(Generator, None), cast(Stack, SimpleNamespace(encrypts=False)), {})
    of = OfCase(case.id, sequence, 0.01)
    traffic = Traffic(((512, 1),), 4, case.direction)
    return record(setup, traffic, request, of, Seen(made, counters, {}, {}))


def outcome(case: Case, limits: Limits, senders: Senders) -> tuple[Outcome, list[Trial]]:
    """Search a case's throughput; return the answer for its first goal, and the trials."""
    running = ThroughputCase(case, limits, [512])
    while (wanted := running.next()) is not None:
        assert len(running.trials) < 200, "the search does not end"
        number = len(running.trials)
        running.add(trial(case, number, wanted, senders(wanted, number)))
    return running.outcomes("dut", "baseline")[0], running.trials
