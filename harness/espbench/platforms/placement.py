# SPDX-License-Identifier: Apache-2.0
"""Chooses the CPUs of tester and gateways, once per run, from the CPUs that this process may use."""

from __future__ import annotations

import os

from espbench.errors import UsageError
from espbench.platforms.base import Placement
from espbench.this_machine import cpu_clock

# Tester and gateways have a higher priority than other processes, but the same as each other: if one of them had a
# real-time priority, it could starve the other on a shared CPU.
NICE = -20
POLICY = f"SCHED_OTHER, nice {NICE} where allowed, pinned; stall watchers SCHED_FIFO 1"


def pin_controller(placement: Placement) -> None:
    """Keep this process off the gateways' CPUs: its load there would look like the DUT's load."""
    os.sched_setaffinity(0, placement.cpus["controller"])


def choose(*, gateways: int = 2, senders: int = 1, allowed: set[int] | None = None) -> Placement:
    """Return the placement: the senders get the first CPUs; each other role gets its own CPU if there are enough.

    allowed: the CPUs to choose from; None: those of this process. Raise UsageError if they are too few for the senders.
    """
    cpus = sorted(allowed if allowed is not None else os.sched_getaffinity(0))
    n = len(cpus)
    most = max(1, n - min(1, gateways))
    if senders > most:
        raise UsageError(
            f"generator: native: senders: expected at most {most}, got {senders}: "
            f"there are {n} CPUs here, and the gateways need one"
        )
    tx, after = cpus[:senders], cpus[senders:]
    rx = after[0] if len(after) >= 1 + gateways else tx[0]
    placed = {"tester tx": tx, "tester rx": [rx], "controller": [rx]}
    shared = []
    if gateways:
        rest = [c for c in cpus if c not in {*tx, rx}] or tx[:1]
        placed["home"] = [rest[0]]
        if gateways > 1:
            placed["office"] = [rest[1 % len(rest)]]
        if placed["home"] == placed.get("office"):
            shared.append(
                f"Home and Office share CPU {rest[0]}: every figure of the pair is that of two gateways on one core"
            )
        if tx[0] in rest:
            they = "gateways share" if gateways > 1 else "gateway share"
            shared.append(f"the tester and the {they} CPU {tx[0]}: figures are lower bounds at best")
    if rx in tx:
        shared.append(f"the tester sends and receives on one CPU ({rx})")
    here = {cpu for role in ("home", "office") for cpu in placed.get(role, [])}
    if governor := cpu_clock.follows_load(here):
        shared.append(
            f"the clock of gateways' CPUs follows their load (governor {governor}); at low loads a frame takes more "
            "CPU time, and espbench cannot say whether another program slowed the CPUs; for a constant clock: "
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
        )
    return Placement(cpus=placed, policy=POLICY, shared=shared)
