# SPDX-License-Identifier: Apache-2.0
"""Simulates trials of DUTs of known loss on a host with independent noise, by arithmetic, without a clock.

The noise disturbs gateways (starvation, steal, stalls, slow CPUs) or senders. After a sender's pause, the schedule is
delayed as far as the trial's leeway lasts; the rest of the pause is caught up at 1.1 times the rate, as long as the
trial lasts. A slow sender takes longer. So the load changes within a trial, as in a real one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from espbench.generators.base import LossEpisode, Offered, PortCounts, Slice, Stall, longest_s
from espbench.measure.inputs.setup import Request
from espbench.measure.validity.host import Kept
from support.generators.streams import counts

# The rate is that of traffic/src/send/pace.rs, the length of the lists that of traffic/src/count/tx_stalls.rs and of
# traffic/src/trial/losses.rs.
CATCH_UP = 1.1
LISTED = 1000
# The number of frames of one direction that are stored while the DUT's CPU stands still; others are lost.
RING = 512
# More losses than this are spread evenly over the time in which they can happen; fewer have their own times.
_FEW = 50
_SLICES, _STEPS = 20, 10
_DUTS_CPU = 1
_SECOND_NS = 1_000_000_000
NOT_KEPT = Kept(0)
BUSY_FPS = 80_000.0  # at this load the gateways' CPUs are never idle
# This is the least speed of a run whose usual speed is 100 % (measure/inputs/usual_speed.py).
LEAST_SPEED_PCT = 93.0


class Lost(NamedTuple):
    """Losses of a stream: the frames and their time, and the number of episodes that the generator makes of them."""

    episode: LossEpisode
    episodes: int

    def until(self, end_ns: float) -> float:
        """Return the share of these losses that happened until then."""
        from_ns, to_ns = self.episode.from_ns, self.episode.to_ns
        if self.episodes == 1:
            return float(from_ns <= end_ns)
        return min(1.0, max(0.0, (end_ns - from_ns) / (to_ns - from_ns)))


class Span(NamedTuple):
    """A span of time: its start after the start of the trial, s, and its length, s."""

    at_s: float
    length_s: float


@dataclass(frozen=True)
class Dut:
    """A DUT of known truth.

    loss: the loss ratio at a load in frames/s, the sum of both directions. stores_above: the DUT loses nothing, but
    frames above this load (frames/s) wait in a queue. together: this many frames are lost at once. sharp: chance does
    not change its figure.
    """

    loss: Callable[[float], float]
    stores_above: float = math.inf
    together: int = 1
    sharp: bool = False


@dataclass(frozen=True)
class Disturbance:
    """The noise of one trial.

    starved_pct, steal_pct: of the gateways' CPUs. kept: how long, in a second, the gateways waited for a CPU, and how
    often they were given one; the rest without the switches is starvation too. stalls: when the DUT's CPU stood still.
    pauses: when a sender stood still. pace: the share of its rate that this sender reaches. sender: the number of its
    stream. speed: of the gateways' CPUs, as a share of the usual one.
    """

    starved_pct: float = 0.0
    steal_pct: float = 0.0
    kept: Kept = NOT_KEPT
    stalls: tuple[Span, ...] = ()
    pauses: tuple[Span, ...] = ()
    pace: float = 1.0
    sender: int = 0
    speed: float = 1.0

    def host_record(self, duration_s: float, load_fps: float) -> dict[str, object]:
        """Return the entries of the host record that follow from the noise in a trial at this load, frames/s."""
        # So a gateway is idle the longer, the lower the load is: fewer trials that pass than trials that miss are void.
        idle = max(0.0, 1 - load_fps / BUSY_FPS)
        starved = self.kept.starved_ns(_SECOND_NS, [round(idle * _SECOND_NS)]) / _SECOND_NS
        waited_s = sum(p.length_s for p in self.pauses) + duration_s * (1 / self.pace - 1)
        return {
            "starved_pct": self.starved_pct + 100 * starved,
            "steal_pct": {"0": self.steal_pct},
            "sender_foreign_pct": 100 * waited_s / duration_s,
            "gateway_speed_pct": 100 * self.speed,
            "gateway_speed_least_pct": LEAST_SPEED_PCT,
        }


QUIET = Disturbance()


def starvation(chance: random.Random, _duration_s: float) -> Disturbance:
    """Return noise in which others use the gateways' CPUs, more than a trial tolerates."""
    return Disturbance(starved_pct=chance.uniform(5.5, 30))


def switches(chance: random.Random, _duration_s: float) -> Disturbance:
    """Return noise in which the gateways waited for a CPU, but partly for switches to threads that woke on an idle one.

    What is left is near the limit of a trial, so that it depends on the load whether the trial is void.
    """
    return Disturbance(kept=Kept(round(chance.uniform(0.05, 0.09) * _SECOND_NS), turns=30_000))


def steal(chance: random.Random, _duration_s: float) -> Disturbance:
    """Return noise in which a hypervisor takes the CPUs, at times less than a trial tolerates."""
    return Disturbance(steal_pct=chance.uniform(1, 15))


def stalls(chance: random.Random, duration_s: float) -> Disturbance:
    """Return noise in which the DUT's CPU stands still for up to 15 % of the trial, 1 to 50 ms each time."""
    left_s = duration_s * chance.uniform(0.0025, 0.15)
    spans = []
    while left_s > 0:
        length_s = min(left_s, chance.uniform(0.001, 0.05))
        left_s -= length_s
        spans.append(Span(chance.uniform(0, duration_s - length_s), length_s))
    return Disturbance(stalls=tuple(sorted(spans)))


def pauses(chance: random.Random, duration_s: float) -> Disturbance:
    """Return noise in which a sender pauses one to four times for 5 to 150 ms; near the end it cannot catch up."""
    spans = [
        Span(chance.uniform(0, duration_s), chance.uniform(0.005, 0.15)) for _ in range(chance.randint(1, 4))
    ]
    return Disturbance(pauses=tuple(sorted(spans)), sender=chance.randrange(2))


def many_pauses(chance: random.Random, duration_s: float) -> Disturbance:
    """Return noise in which a sender pauses for 0.6 to 2 ms, 2.5 to 12 times a second.

    In a long trial these are more pauses than its list holds. The sender catches up after each pause before the next
    one; otherwise they would count as one.
    """
    every_s = chance.uniform(0.08, 0.4)
    spans = [
        Span((number + chance.uniform(0, 0.5)) * every_s, chance.uniform(0.0006, 0.002))
        for number in range(int(duration_s / every_s))
    ]
    return Disturbance(pauses=tuple(spans), sender=chance.randrange(2))


def shortfall(chance: random.Random, _duration_s: float) -> Disturbance:
    """Return noise in which a sender reaches only 75 to 99.5 % of its rate."""
    return Disturbance(pace=chance.uniform(0.75, 0.995), sender=chance.randrange(2))


def slow_cpus(chance: random.Random, _duration_s: float) -> Disturbance:
    """Return noise in which a neighbour on the same core makes the gateways slower, by more than a trial tolerates.

    Less than that cannot be distinguished from the usual differences between trials.
    """
    return Disturbance(speed=chance.uniform(0.6, 0.01 * LEAST_SPEED_PCT))


Kind = Callable[[random.Random, float], Disturbance]


class Part(NamedTuple):
    """A span of time in which a sender's rate is steady. from_s, to_s: from the start. share: of its intended rate."""

    from_s: float
    to_s: float
    share: float


@dataclass(frozen=True)
class Sending:
    """A sender's rate over time, and the pauses that it lists."""

    parts: list[Part]
    stalls: list[Stall]

    @property
    def end_s(self) -> float:
        return self.parts[-1].to_s

    def share_at(self, at_s: float) -> float:
        """Return the sender's rate at a time, as a share of its intended rate."""
        return next((part.share for part in self.parts if part.from_s <= at_s < part.to_s), 0.0)


def sending(
    duration_s: float, pauses: Sequence[Span] = (), pace: float = 1.0, leeway_s: float = 0.0
) -> Sending:
    """Return the rate over time of a sender with a schedule of duration_s that pauses and then catches up.

    Pauses may delay the schedule by leeway_s in all. A stall lasts until the sender has caught up; pauses meanwhile
    belong to it.
    """
    parts: list[Part] = []
    listed: list[Stall] = []
    now_s, late_s, left_s = 0.0, 0.0, duration_s
    begun_s = paused_s = 0.0

    for pause in (*pauses, Span(math.inf, 0.0)):
        while left_s > 1e-12 and now_s < pause.at_s:
            share = CATCH_UP if late_s > 0 else pace
            until_s = min(pause.at_s, now_s + left_s / share)
            if late_s > 0:
                until_s = min(until_s, now_s + late_s / (CATCH_UP - 1))
            parts.append(Part(now_s, until_s, share))
            left_s -= share * (until_s - now_s)
            if late_s > 0:
                late_s = max(0.0, late_s - (CATCH_UP - 1) * (until_s - now_s))
            is_made_good = share == CATCH_UP and late_s < 1e-9
            now_s = until_s
            if is_made_good:
                late_s = 0.0
                listed.append(_stall(begun_s, paused_s, now_s))
        if left_s <= 1e-12:
            break
        if late_s <= 0.0:
            begun_s, paused_s = now_s, 0.0
        granted_s = min(pause.length_s, leeway_s)
        leeway_s -= granted_s
        late_s += pause.length_s - granted_s
        paused_s += pause.length_s
        now_s += pause.length_s
        if late_s <= 0.0:
            listed.append(_stall(begun_s, paused_s, now_s))
    if late_s > 0:
        listed.append(_stall(begun_s, paused_s, now_s))
    return Sending(parts, listed)


def _stall(begun_s: float, paused_s: float, until_s: float) -> Stall:
    return Stall(at_ns=int(begun_s * 1e9), ms=paused_s * 1e3, cpu=0, until_ns=int(until_s * 1e9))


def poisson(chance: random.Random, mean: float) -> int:
    """Return a Poisson-distributed number; for a large mean by the normal approximation."""
    if mean > 500:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    count, waited = 0, chance.expovariate(1)
    while waited < mean:
        count, waited = count + 1, waited + chance.expovariate(1)
    return count


def offer(
    asked: Request,
    dut: Dut,
    noise: Disturbance,
    chance: random.Random,
    directions: int = 1,
    leeway: float = 0.0,
) -> Offered:
    """Return the generator's counts of a trial. chance: for the DUT's losses only. leeway: see Stream.leeway."""
    rate = asked.load_fps / directions
    frames = round(rate * asked.duration_s)
    concerned = noise.sender % directions
    senders = [
        sending(asked.duration_s, noise.pauses, noise.pace, leeway * asked.duration_s)
        if n == concerned
        else sending(asked.duration_s)
        for n in range(directions)
    ]
    took_s = max(sender.end_s for sender in senders)
    assert took_s <= longest_s(asked.duration_s)
    slices, waiting = _queued(asked, dut, noise, senders)
    streams = []
    for n, (sender, losses) in enumerate(
        zip(senders, _losses(rate, dut, noise, senders, chance), strict=True)
    ):
        lost = min(frames, sum(each.episode.frames for each in losses))
        episodes = _listed(losses)
        streams.append(
            counts(
                frames, frames - lost, source="west" if n == 0 else "east", id=n, duration_s=sender.end_s,
                departure_fps=frames / sender.end_s, rx_after_stop=waiting // directions, slices=slices,
                loss_episodes=episodes,
                loss_episodes_more=max(0, sum(each.episodes for each in losses) - LISTED),
                tx_stalls=sender.stalls[:LISTED],
                tx_stalls_more=max(0, len(sender.stalls) - LISTED),
            )
        )  # fmt: skip
    still_ms = 1e3 * sum(span.length_s for span in noise.stalls)
    return Offered(
        stalls_watched=True,
        start_ns=0, last_tx_ns=int(took_s * 1e9), duration_s=took_s, intended_duration_s=asked.duration_s,
        streams=streams, ports=[PortCounts(name=name, rx_overrun=0, foreign=0) for name in ("west", "east")],
        host_stalls=[
            Stall(at_ns=int(span.at_s * 1e9), ms=span.length_s * 1e3, cpu=_DUTS_CPU)
            for span in noise.stalls[:LISTED]
        ],
        host_stalls_more=max(0, len(noise.stalls) - LISTED),
        host_stall_ms_total={str(_DUTS_CPU): still_ms} if noise.stalls else {},
    )  # fmt: skip


def _losses(
    rate: float, dut: Dut, noise: Disturbance, senders: Sequence[Sending], chance: random.Random
) -> list[list[Lost]]:
    """Return each stream's losses: those of the DUT at each moment's load, and those of a full ring in a stall."""
    of_each: list[list[Lost]] = [[] for _ in senders]
    edges = sorted({edge for s in senders for part in s.parts for edge in (part.from_s, part.to_s)})
    # Edges and parts are both in the order of time, so one index for each sender moves forward.
    places = [0] * len(senders)
    for from_s, to_s in pairwise(edges):
        shares = []
        for n, sender in enumerate(senders):
            while places[n] < len(sender.parts) - 1 and sender.parts[places[n]].to_s <= from_s:
                places[n] += 1
            part = sender.parts[places[n]]
            shares.append(part.share if part.from_s <= from_s < part.to_s else 0.0)
        ratio = dut.loss(sum(shares) * rate / noise.speed)
        for own, share in zip(of_each, shares, strict=True):
            losses = poisson(chance, ratio * share * rate * (to_s - from_s) / dut.together)
            own.extend(_episodes(from_s, to_s, losses, chance, dut.together))
    if dut.stores_above == math.inf:
        for span in noise.stalls:
            for own, sender in zip(of_each, senders, strict=True):
                beyond = round(sender.share_at(span.at_s) * rate * span.length_s) - RING
                if beyond > 0:
                    ends = int(span.at_s * 1e9), int((span.at_s + span.length_s) * 1e9)
                    own.append(Lost(LossEpisode(from_ns=ends[0], to_ns=ends[1], frames=beyond), 1))
    return of_each


def _episodes(
    from_s: float, to_s: float, losses: int, chance: random.Random, together: int = 1
) -> list[Lost]:
    if losses > _FEW:
        spread = LossEpisode(from_ns=int(from_s * 1e9), to_ns=int(to_s * 1e9), frames=losses * together)
        return [Lost(spread, losses)]
    times = sorted(int(chance.uniform(from_s, to_s) * 1e9) for _ in range(losses))
    return [Lost(LossEpisode(from_ns=at, to_ns=at, frames=together), 1) for at in times]


def _listed(losses: Sequence[Lost]) -> list[LossEpisode]:
    """Return the losses that the generator lists: those until its list is full."""
    losses = sorted(losses, key=lambda each: each.episode.from_ns)
    if sum(each.episodes for each in losses) <= LISTED:
        return [each.episode for each in losses]
    full_ns, later_ns = 0.0, float(max(each.episode.to_ns for each in losses))
    for _ in range(40):
        middle = (full_ns + later_ns) / 2
        if sum(each.episodes * each.until(middle) for each in losses) <= LISTED:
            full_ns = middle
        else:
            later_ns = middle
    parts = [(each.episode, each.until(full_ns)) for each in losses]
    return [
        one.model_copy(
            update={
                "frames": round(share * one.frames),
                "to_ns": one.to_ns if share == 1.0 else int(one.from_ns + share * (one.to_ns - one.from_ns)),
            }
        )
        for one, share in parts
        if round(share * one.frames)
    ]


def _queued(
    asked: Request, dut: Dut, noise: Disturbance, senders: Sequence[Sending]
) -> tuple[list[Slice], int]:
    """Return the lowest latency in each slice of the trial, and the number of frames that wait at its end."""
    if dut.stores_above == math.inf:
        return [], 0
    rate, took_s = asked.load_fps / len(senders), max(sender.end_s for sender in senders)
    step_s = took_s / (_SLICES * _STEPS)
    still = sorted((span.at_s, span.at_s + span.length_s) for span in noise.stalls)
    waiting, slices = 0.0, []
    for number in range(_SLICES):
        least = math.inf
        for step in range(_STEPS):
            from_s = (number * _STEPS + step) * step_s
            arrived = sum(sender.share_at(from_s) for sender in senders) * rate * step_s
            stood_s = sum(max(0.0, min(to, from_s + step_s) - max(at, from_s)) for at, to in still)
            forwarded = dut.stores_above * noise.speed * max(0.0, step_s - stood_s)
            waiting = max(0.0, waiting + arrived - forwarded)
            least = min(least, waiting)
        latency_us = 20 + 1e6 * least / dut.stores_above
        slices.append(
            Slice(t_s=number * took_s / _SLICES, rx_frames=1, min_us=latency_us, mean_us=latency_us)
        )
    return slices, int(waiting)
