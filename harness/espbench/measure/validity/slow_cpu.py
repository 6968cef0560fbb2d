# SPDX-License-Identifier: Apache-2.0
"""Says how fast the gateways' CPUs were in a trial, whether they were too slow for it, and which part of its losses
came while they were slow (decision 0058).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from espbench.generators.base import CpuSpeed, Offered
from espbench.measure.inputs.setup import Setup
from espbench.measure.validity import stalls
from espbench.sentences import Code
from espbench.terms import (
    FULL_GATEWAY_SPEED,
    GATEWAY_SPEED,
    LEAST_GATEWAY_SPEED,
    LOST_WHILE_SLOW,
    SLOW_TIME,
    Reason,
)
from espbench.this_machine import cpu_clock

# The speed is measured every 10 ms, and a queue that filled meanwhile loses frames for some time after.
_AROUND_NS = 10_000_000
# The generator looks for slow times in this part of a trial (traffic/src/host/cpu_speed.rs).
_LOOKED_AT_S = 1000.0


def recorded(setup: Setup, offered: Offered, *, paired: bool = False) -> dict[str, Any]:
    """Return the entries of the record `host`: the speed of each CPU, that of the gateways' CPUs together in % of
    their full speed in the run, that full speed, the least speed of a trial that counts (None if it is paired: then the
    speed of its partner decides, see procedures/paired_trials.py), the share of the sending time in which they were
    slow, %, and the share of the lost frames that were lost in this time, % (of those whose times are known; None
    without any).

    All but the first are None if the gateways do not run on this machine's CPUs, if the generator measures no speed, or
    if the clock of these CPUs follows their load: at a low load they are then slow without any neighbour.
    """
    setup.usual_speed.see({cpu: speed.fastest_per_ms for cpu, speed in offered.cpu_speed.items()})
    of_gateways = _of_gateways(setup, offered)
    means = {cpu: speed.mean_per_ms for cpu, speed in of_gateways.items()}
    pct = setup.usual_speed.pct(means) if means else None
    full_per_ms = setup.usual_speed.full_per_ms(means)
    usual_pct = None if full_per_ms is None or paired else setup.usual_speed.least_pct(full_per_ms)
    spans = _slow_spans(of_gateways.values())
    end_ns = offered.start_ns + int(min(offered.duration_s, _LOOKED_AT_S) * 1e9)
    known = sum(episode.frames for stream in offered.streams for episode in stream.loss_episodes)
    while_slow = sum(stalls.lost_within(stream, spans) for stream in offered.streams)
    return {
        "cpu_speed": {
            cpu: speed.model_dump(exclude={"slow_times"}) for cpu, speed in offered.cpu_speed.items()
        },
        GATEWAY_SPEED: pct,
        FULL_GATEWAY_SPEED: None if full_per_ms is None else round(full_per_ms, 3),
        LEAST_GATEWAY_SPEED: usual_pct,
        SLOW_TIME: None if pct is None else round(100 * stalls.covered(spans, offered.start_ns, end_ns), 1),
        LOST_WHILE_SLOW: None if pct is None or not known else round(100 * while_slow / known, 1),
    }


def slowness(host_record: dict[str, Any]) -> list[Reason]:
    """Return a reason if the gateways' CPUs were slower than in most trials of the run."""
    pct, least_pct = host_record.get(GATEWAY_SPEED), host_record.get(LEAST_GATEWAY_SPEED)
    if pct is None or least_pct is None or pct >= least_pct:
        return []
    return [Reason.of(Code.HOST_SLOW, pct=pct, least_pct=least_pct)]


def _of_gateways(setup: Setup, offered: Offered) -> dict[str, CpuSpeed]:
    cpus = {cpu for side in setup.bed.gateways for cpu in setup.bed.placement.cpus.get(side, [])}
    speeds = {cpu: speed for cpu, speed in offered.cpu_speed.items() if int(cpu) in cpus}
    return {} if cpu_clock.follows_load(cpus) else speeds


def _slow_spans(speeds: Iterable[CpuSpeed]) -> list[tuple[int, int]]:
    """Return the times in which one of these CPUs was slow, merged and rising, with some time around each; ns."""
    times = (time for speed in speeds for time in speed.slow_times)
    return stalls.merged((time.from_ns - _AROUND_NS, time.to_ns + _AROUND_NS) for time in times)
