# SPDX-License-Identifier: Apache-2.0
"""Chooses the CPUs of tester and gateways, once per run, from the CPUs that this process may use."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from espbench.errors import UsageError
from espbench.platforms.base import Placement
from espbench.this_machine import cpu_clock
from espbench.this_machine.cpu_clock import CPUS

# Tester and gateways have a higher priority than other processes, but the same as each other: if one of them had a
# real-time priority, it could starve the other on a shared CPU.
NICE = -20
_Placed = tuple[list[int], int, list[int]]  # the CPUs of senders, of the receiver, and those for gateways
POLICY = f"SCHED_OTHER, nice {NICE} where allowed, pinned; stall watchers SCHED_FIFO 1"


def pin_controller(placement: Placement) -> None:
    """Keep this process off the gateways' CPUs: its load there would look like the DUT's load."""
    os.sched_setaffinity(0, placement.cpus["controller"])


def choose(
    *, gateways: int = 2, senders: int = 1, allowed: set[int] | None = None, folder: Path = CPUS
) -> Placement:
    """Return the placement: the senders get the first CPUs; each other role gets a core of its own if there are enough.

    A core's other hardware thread would make a gateway slower without taking CPU time from it. So no gateway shares a
    core with the tester, unless there is only one core. Two gateways share one only as the same CPU, taking turns, if
    there are too few cores. The tester also uses the other threads of its own cores.

    allowed: the CPUs to choose from; None: those of this process. folder: of the CPUs in sysfs. Raise UsageError if the
    CPUs are too few for the senders.
    """
    cpus = sorted(allowed if allowed is not None else os.sched_getaffinity(0))
    most = max(1, len(cpus) - min(1, gateways))
    if senders > most:
        raise UsageError(
            f"generator: native: senders: expected at most {most}, got {senders}: "
            f"there are {len(cpus)} CPUs here, and the gateways need one"
        )
    cores = cores_of(cpus, folder)
    tx, rx, rest = _by_core(cores, gateways, senders) or _by_cpu(_firsts_first(cores), gateways, senders)
    placed = {"tester tx": tx, "tester rx": [rx], "controller": [rx]}
    if gateways:
        placed["home"] = [rest[0]]
        if gateways > 1:
            placed["office"] = [rest[1 % len(rest)]]
    return Placement(cpus=placed, policy=POLICY, shared=_warnings(placed, cores, folder))


def cores_of(cpus: Iterable[int], folder: Path = CPUS) -> list[list[int]]:
    """Return the CPUs, which are hardware threads, by their cores; a CPU of which nothing is known is a core."""
    cores: dict[str, list[int]] = {}
    for cpu in sorted(cpus):
        siblings = str(cpu)
        with contextlib.suppress(OSError):
            siblings = (folder / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
        cores.setdefault(siblings, []).append(cpu)
    return list(cores.values())


def _by_core(cores: Sequence[list[int]], gateways: int, senders: int) -> _Placed | None:
    """Return CPUs of which no gateway shares a core with the tester, for as many gateways as possible; else None."""
    for apart in range(min(gateways, len(cores) - 1), 0, -1):
        testers = min(senders + 1, len(cores) - apart)
        threads = _firsts_first(cores[:testers])
        if len(threads) >= senders:
            rx = threads[senders] if len(threads) > senders else threads[0]
            return threads[:senders], rx, [core[0] for core in cores[testers : testers + apart]]
    return None


def _by_cpu(cpus: Sequence[int], gateways: int, senders: int) -> _Placed:
    """Return CPUs for a single core, or for a tester without gateways."""
    tx, after = [*cpus[:senders]], cpus[senders:]
    rx = after[0] if len(after) >= 1 + gateways else tx[0]
    return tx, rx, [c for c in cpus if c not in {*tx, rx}] or tx[:1]


def _firsts_first(cores: Sequence[list[int]]) -> list[int]:
    """Return the first CPU of each core, then their other ones."""
    return [core[0] for core in cores] + [cpu for core in cores for cpu in core[1:]]


def _warnings(placed: dict[str, list[int]], cores: Sequence[list[int]], folder: Path) -> list[str]:
    """Say which roles share a CPU or a core, and whether the clock of the gateways' CPUs changes."""
    said = []
    tx, rx = placed["tester tx"], placed["tester rx"][0]
    sides = [side for side in ("home", "office") if side in placed]
    of_gateways = {cpu for side in sides for cpu in placed[side]}
    they = "gateways" if len(sides) > 1 else "gateway"
    if placed.get("home") == placed.get("office", []):
        cpu = placed["home"][0]
        said.append(
            f"Home and Office share CPU {cpu}: every figure of the pair is that of two gateways on one core"
        )
    if together := {*tx, rx} & of_gateways:
        cpu = min(together)
        said.append(f"the tester and the {they} share CPU {cpu}: figures are lower bounds at best")
    elif any({*core} & {*tx, rx} and {*core} & of_gateways for core in cores):
        said.append(f"the tester and the {they} share a core: figures are lower bounds at best")
    if rx in tx:
        said.append(f"the tester sends and receives on one CPU ({rx})")
    if governor := cpu_clock.follows_load(of_gateways, folder):
        said.append(
            f"the clock of gateways' CPUs follows their load (governor {governor}); at low loads a frame takes more "
            "CPU time, and espbench cannot say whether another program slowed the CPUs; for a constant clock: "
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
        )
    return said
