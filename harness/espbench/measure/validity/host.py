# SPDX-License-Identifier: Apache-2.0
"""The host during a trial: foreign load on the CPUs, time stolen by the hypervisor, and waits for a CPU."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# A thread that wakes on an idle CPU waits for the kernel to switch to it, which nobody takes from it. Measured on a
# virtual machine with nobody else in it: 2.3 to 2.8 µs for each such turn, of which 0.5 to 1 µs were espbench's watcher
# and the kernel's own threads.
_SWITCH_NS = 1_500
# No more than this share of the time is taken for such waits: turns that begin on a busy CPU are counted as well.
_MOST_SWITCHES = 0.03


@dataclass(frozen=True)
class CpuTimes:
    """The times of one CPU since boot, ns: idle, executing tasks, stolen by the hypervisor.

    task_ns is sampled at each tick, and wrong by some percent in a short trial; idle_ns is measured.
    """

    idle_ns: int
    task_ns: int
    steal_ns: int


@dataclass(frozen=True)
class HostSnapshot:
    """The state of the host at one moment."""

    at_ns: int
    realtime_offset_ns: int
    cpus: dict[int, CpuTimes]


@dataclass(frozen=True)
class Kept:
    """The time for which others kept all gateways from a CPU, ns.

    If they have several CPUs, it is the mean over these, weighted by the time in which each was not idle (psi.c).

    turns: how often the gateways' threads were given a CPU in that time; None: not known.
    """

    ns: int
    turns: int | None = None

    def starved_ns(self, elapsed_ns: int, idle_ns: Sequence[int]) -> float:
        """Return the time without the switches to threads that woke on an idle CPU, ns.

        idle_ns: the time in which each of the gateways' CPUs was idle. About the same share of the turns began then.
        """
        idle = [min(1.0, max(0.0, ns / elapsed_ns)) for ns in idle_ns]
        # The waits of each CPU have the same weight as in `ns`. `turns` is a sum over the CPUs.
        weight = sum(1 - share for share in idle)
        idle_share = sum(share * (1 - share) for share in idle) / weight if weight else 0.0
        switches_ns = _SWITCH_NS * idle_share * max(0, self.turns or 0) / len(idle)
        return max(0.0, self.ns - min(switches_ns, _MOST_SWITCHES * elapsed_ns))


def look() -> HostSnapshot:
    """Return the state of the host now; takes well under a millisecond."""
    now = time.monotonic_ns()
    return HostSnapshot(now, time.time_ns() - now, cpu_times())


def cpu_times(stat: str | None = None) -> dict[int, CpuTimes]:
    """Return the times of each CPU from /proc/stat, or from its text `stat` (resolution: one clock tick, 10 ms)."""
    text = stat if stat is not None else Path("/proc/stat").read_text()
    times = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, idle, iowait, _irq, _softirq, steal = (int(f) for f in fields[:8])
            times[int(name[3:])] = CpuTimes(
                (idle + iowait) * _TICK_NS, (user + nice + system) * _TICK_NS, steal * _TICK_NS
            )
    return times


def compare(
    before: HostSnapshot,
    after: HostSnapshot,
    *,
    gateway_cpus: set[int],
    gateway_ns: int | None,
    gateways_waited_ns: int | None,
    kept: Kept | None = None,
    sender_cpus: set[int],
    sender_ns: int,
) -> dict[str, Any]:
    """Return what the host did between two snapshots; shares are of the elapsed time of the CPUs concerned.

    gateway_ns and sender_ns are the CPU times of gateways and senders, including receivers on the same CPUs.

    * foreign_pct: CPU time on the gateways' CPUs that belongs to neither gateway nor tester. None if the tester runs
      there too and cannot be distinguished, or if gateway_ns is not known.
    * gateways_waited_pct: how long the gateways were ready to run but had no CPU; None where unknown.
    * starved_pct: CPU time that others certainly took from the gateways: no more than the others used, and no more
      than the gateways waited. If `kept` is known, it is Kept.starved_ns. kept_pct: the same with all switches.
    * steal_pct: time stolen by the hypervisor, of the CPUs of gateways and sender alone.
    * tick_pct: the possible error of any share from /proc/stat, which counts in ticks.
    * sender_foreign_pct: time of other tasks on the CPUs that send; not of interrupts, in which a DUT may run.
    * busy_pct: of each CPU of the host, the time in which it was neither idle nor stolen.
    """
    elapsed = max(1, after.at_ns - before.at_ns)
    every = [c for c in after.cpus if c in before.cpus]
    steal = {c: after.cpus[c].steal_ns - before.cpus[c].steal_ns for c in every}
    idle = {c: after.cpus[c].idle_ns - before.cpus[c].idle_ns for c in every}
    busy = {c: max(0, elapsed - idle[c] - steal[c]) for c in every}
    used = gateway_cpus | sender_cpus
    watched = [c for c in gateway_cpus if c in busy]
    tasks = {c: after.cpus[c].task_ns - before.cpus[c].task_ns for c in busy}
    sending = [c for c in sender_cpus if c in tasks]
    sender_foreign = max(0, sum(tasks[c] for c in sending) - sender_ns) / (elapsed * max(1, len(sending)))
    foreign = None
    if watched and gateway_ns is not None:
        foreign = max(0, sum(busy[c] for c in watched) - gateway_ns) / (elapsed * len(watched))
    waited = None
    if watched and gateways_waited_ns is not None:
        waited = gateways_waited_ns / (elapsed * len(watched))
    tick = _TICK_NS / elapsed
    starved = None
    if kept is not None and watched:
        starved = kept.starved_ns(elapsed, [idle[c] for c in watched]) / elapsed
    elif foreign is not None:
        starved = min(max(0.0, foreign - tick), 1.0 if waited is None else waited)
    return {
        "start_ns": before.at_ns,
        "elapsed_s": round(elapsed / 1e9, 6),
        "tick_pct": round(100 * tick, 3),
        "steal_pct": {str(c): round(100 * s / elapsed, 3) for c, s in steal.items() if c in used},
        "busy_pct": {str(c): round(100 * b / elapsed, 2) for c, b in busy.items()},
        "foreign_pct": None if foreign is None else round(100 * foreign, 2),
        "gateways_waited_pct": None if waited is None else round(100 * waited, 2),
        "kept_pct": None if kept is None else round(100 * kept.ns / elapsed, 2),
        "starved_pct": None if starved is None else round(100 * starved, 2),
        "sender_foreign_pct": round(100 * sender_foreign, 2),
        "clock_step_ms": round((after.realtime_offset_ns - before.realtime_offset_ns) / 1e6, 3),
    }
