# SPDX-License-Identifier: Apache-2.0
"""Says how fast the gateways' CPUs were in a trial, and whether they were too slow for it (decision 0058)."""

from __future__ import annotations

from typing import Any

from espbench.generators.base import Offered
from espbench.measure.inputs.setup import Setup
from espbench.sentences import Code
from espbench.terms import GATEWAY_SPEED, Reason
from espbench.this_machine import cpu_clock

_LEAST = "gateway_speed_least_pct"


def recorded(setup: Setup, offered: Offered) -> dict[str, Any]:
    """Return the entries of the record `host`: the speed of each CPU, that of the gateways' CPUs together in % of
    their full speed, and the least speed of a trial that counts.

    The last two are None if the gateways do not run on this machine's CPUs, if the generator measures no speed, or if
    the clock of these CPUs follows their load: at a low load they are then slow without any neighbour.
    """
    pct = _gateways_pct(setup, offered)
    return {
        "cpu_speed": {cpu: speed.model_dump() for cpu, speed in offered.cpu_speed.items()},
        GATEWAY_SPEED: pct,
        _LEAST: None if pct is None else setup.usual_speed.least_pct,
    }


def slowness(host_record: dict[str, Any]) -> list[Reason]:
    """Return a reason if the gateways' CPUs were slower than in most trials of the run."""
    pct, least_pct = host_record.get(GATEWAY_SPEED), host_record.get(_LEAST)
    if pct is None or least_pct is None or pct >= least_pct:
        return []
    return [Reason.of(Code.HOST_SLOW, pct=pct, least_pct=least_pct)]


def _gateways_pct(setup: Setup, offered: Offered) -> float | None:
    cpus = {cpu for side in setup.bed.gateways for cpu in setup.bed.placement.cpus.get(side, [])}
    speeds = [speed for cpu, speed in offered.cpu_speed.items() if int(cpu) in cpus]
    if not speeds or cpu_clock.follows_load(cpus):
        return None
    return round(100 * sum(s.mean_per_ms / s.fastest_per_ms for s in speeds) / len(speeds), 1)
