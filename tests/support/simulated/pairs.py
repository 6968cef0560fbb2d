# SPDX-License-Identifier: Apache-2.0
"""Simulates comparisons at fixed loads of two arms, on a host whose speed changes."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from espbench.comparison.deciding.paired_ratios import judge
from espbench.comparison.sorting.model import FixedLoadVerdict
from espbench.measure.inputs.usual_speed import UsualSpeed
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.procedures.paired_trials import ARMS, Arm, Ask, PairedLoads
from espbench.sentences import Code
from espbench.terms import (
    FULL_GATEWAY_SPEED,
    GATEWAY_SPEED,
    LEAST_GATEWAY_SPEED,
    Finding,
    GatewayReading,
    Reason,
    Trial,
)

IDENTITY: Mapping[str, Any] = {
    "case": "0001-at", "dut": "simulated", "stack": "b", "suite": "aes128gcm16", "ip_version": 4,
    "frame_size": 64, "direction": "one-way", "repeat": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Host:
    """The host on which two arms are measured; boot, slow, fast and search are relative standard deviations.

    boot: between sets of gateways. slow: of the host's speed, which is correlated over `stay` trials. fast: between
    trials. drift: by how much the host is slower at the end than at the beginning. void: the share of trials that are
    recognised as disturbed. hit: the share of trials that are disturbed, but not recognised: a quarter more CPU per
    frame, and lost frames. search: of the throughputs that the searches give. neighbour: the largest share of the CPUs'
    speed that a neighbour takes; it comes and goes every few trials, and its share is another in each trial.
    """

    boot: float = 0.004
    slow: float = 0.02
    fast: float = 0.01
    stay: float = 20.0
    drift: float = 0.05
    void: float = 0.05
    hit: float = 0.02
    search: float = 0.08
    neighbour: float = 0.0


QUIET = Host(boot=0.002, slow=0.005, fast=0.004, drift=0.01, void=0.0, hit=0.0, search=0.02)
SHARED = Host()
BUSY = Host(boot=0.008, slow=0.05, fast=0.03, drift=0.15, void=0.2, hit=0.08, search=0.2)
# Like a machine of 30 November 2026, whose CPUs had 33 to 100 % of their full speed. At half of it a frame cost 1.3
# times as much.
NEIGHBOUR = Host(
    boot=0.004, slow=0.005, fast=0.015, drift=0.01, void=0.01, hit=0.01, search=0.2, neighbour=0.6
)
COSTS_BY_SPEED = 0.4  # log of the CPU time of a frame ÷ -log of the speed
STAYS = 3.0  # trials, of a neighbour
_FULL_PER_MS = 100.0


class Bed:
    """Two arms of known cost on a host. cost: B's CPU per frame as a multiple of A's.

    Each arm's throughput is inverse to its cost. alone: each trial needs CPUs of the usual speed, as was the rule
    before decision 0066.
    """

    def __init__(
        self, host: Host, cost: float, chance: random.Random, trials: int, *, alone: bool = False
    ) -> None:
        self.host, self.chance = host, chance
        self._cost: dict[Arm, float] = {"a": 0.0, "b": math.log(cost)}
        self._boots: dict[tuple[Arm, int], float] = {}
        self._slow = host.slow * chance.gauss(0, 1)
        self._keep = math.exp(-1 / host.stay)
        self._trials, self._made = trials, 0
        self._alone = alone
        self._usual = UsualSpeed()
        self._neighbour_is_there = chance.random() < 0.5

    def bounds(self) -> dict[Arm, float]:
        """Return the throughputs that searches would give."""
        return {
            arm: 20_000 * math.exp(-self._cost[arm] + self.host.search * self.chance.gauss(0, 1))
            for arm in ARMS
        }

    def trial(self, ask: Ask, sequence: int = 0) -> Trial:
        """Return the record of one trial; the host's speed changes with it."""
        h, chance = self.host, self.chance
        self._made += 1
        self._slow = self._keep * self._slow + math.sqrt(1 - self._keep**2) * h.slow * chance.gauss(0, 1)
        boot = self._boots.setdefault((ask.arm, ask.round), h.boot * chance.gauss(0, 1))
        us = self._cost[ask.arm] + boot + self._slow + h.drift * self._made / self._trials
        us += h.fast * chance.gauss(0, 1)
        speed = self._speed()
        us -= COSTS_BY_SPEED * math.log(speed)
        judged_alone = self._alone or not ask.request.paired
        least_pct = self._usual.least_pct(_FULL_PER_MS) if judged_alone else None
        record = {
            GATEWAY_SPEED: 100 * speed,
            FULL_GATEWAY_SPEED: _FULL_PER_MS,
            LEAST_GATEWAY_SPEED: least_pct,
        }
        self._usual.add(record)
        hit = chance.random() < h.hit
        lost = hit or ask.request.load_fps * math.exp(us) > 20_000
        return made(
            ask,
            50 * math.exp(us) * (1.25 if hit else 1),
            lost=lost,
            valid=chance.random() >= h.void and (least_pct is None or 100 * speed >= least_pct),
            sequence=sequence,
            host=record,
        )

    def _speed(self) -> float:
        """Return the speed of the CPUs in this trial, as a share of their full speed."""
        if self.chance.random() < 1 / STAYS:
            self._neighbour_is_there = self.chance.random() < 0.5
        taken = self.host.neighbour * self.chance.random() if self._neighbour_is_there else 0.0
        return 1 - taken


def made(
    ask: Ask,
    us: float,
    *,
    lost: bool,
    valid: bool = True,
    sequence: int = 0,
    host: Mapping[str, Any] = MappingProxyType({}),
) -> Trial:
    """Return an invented trial's record; us: CPU per frame of both gateways together; lost: 1 % of the frames; host:
    what the record says of it.
    """
    frames = max(100, int(ask.request.load_fps * ask.request.duration_s))
    missing = frames // 100 if lost else 0
    return Trial(
        case=f"simulated-{ask.arm}", sequence=sequence, phase="measure", attempt=ask.request.attempt,
        intended_fps=round(ask.request.load_fps, 3), offered_fps=round(ask.request.load_fps, 3),
        duration_s=ask.request.duration_s, intended_duration_s=ask.request.duration_s, tx_frames=frames,
        rx_frames=frames - missing, lost=missing, duplicated=0, reordered=0, corrupted=0,
        frame_loss_ratio=missing / frames, validity="VALID" if valid else "INVALID",
        reasons=[] if valid else [Reason.of(Code.HOST_STARVATION, starved_pct=9.0, stolen_pct=0.0)],
        gateways={side: GatewayReading(cpu_us_per_frame=us / 2) for side in ("home", "office")},
        host=dict(host),
    )  # fmt: skip


def measured(
    host: Host,
    cost: float,
    chance: random.Random,
    settings: FixedLoads | None = None,
    *,
    together: bool = True,
    alone: bool = False,
) -> PairedLoads:
    """Make all trials of one point, and return its procedure."""
    asked = settings or FixedLoads()
    bed = Bed(host, cost, chance, trials=asked.rounds * 60, alone=alone)
    running = PairedLoads(
        asked,
        bed.bounds(),
        maximum_fps=1e6,
        goal=0.0,
        retries=3,
        seed=str(chance.random()),
        together=together,
    )
    while (ask := running.next()) is not None:
        running.add(bed.trial(ask))
    return running


def compared(
    host: Host,
    cost: float,
    chance: random.Random,
    settings: FixedLoads | None = None,
    *,
    sizes: Sequence[int] = (64, 512, 1424),
    together: bool = True,
    alone: bool = False,
) -> list[FixedLoadVerdict]:
    """Return the verdicts of one whole comparison, one for each frame size."""
    findings: list[Finding] = []
    for size in sizes:
        running = measured(host, cost, chance, settings, together=together, alone=alone)
        identity = {**IDENTITY, "frame_size": size}
        findings.append(running.finding(identity, {"a": "a", "b": "b"}, "proven", []))
    return judge(findings, "stack")
