# SPDX-License-Identifier: Apache-2.0
"""Reads the state of the host and the gateways' CPU times around a trial, and returns what the host did while frames
were sent.

Starvation and steal count only while frames are sent. After the last frame the DUT's queues can only get shorter. A
host that keeps the DUT from its CPU then makes frames late, and the trial waits for late frames. Frames are lost only
if the DUT gets next to no CPU during the whole wait, so the wait for the residue has a limit of its own
(validity/faults.py). The time before the first frame does not count, because a generator may need a minute of it to
encrypt frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from espbench.errors import EspbenchError
from espbench.generators.base import Offered, OnProgress
from espbench.measure.inputs.setup import Setup
from espbench.measure.validity import host, slow_cpu
from espbench.measure.validity.faults import taken_from_senders
from espbench.platforms.base import Side

_OF_RESIDUE = ("elapsed_s", "tick_pct", "starved_pct", "steal_pct")


@dataclass(frozen=True)
class Look:
    """One reading: the host, the CPU time of each gateway, how long all gateways waited for a CPU or were kept from
    one, ns, and how often they were given one.
    """

    host: host.HostSnapshot
    cpu: dict[Side, int | None]
    waited_ns: int | None
    kept_ns: int | None
    turns: int | None = None


def look(setup: Setup) -> Look:
    """Return a reading of this moment. The gateways' CPU times come first: reading the counters costs them some CPU
    time.
    """
    cpu, waited, kept = _cpu(setup), _waited(setup), setup.bed.kept_waiting_ns()
    return Look(host.look(), cpu, waited, kept, setup.bed.turns())


class Looks:
    """The readings of one trial: before it, when its first and its last frame are sent, and after it."""

    def __init__(self, setup: Setup, on_progress: OnProgress | None, *, in_between: bool) -> None:
        """Take the first reading.

        in_between: gateways may be read while frames are sent. This is not possible in virtual time, or if an action
        replaces them.
        """
        self._setup = setup
        self._in_between = in_between
        self._on_progress = on_progress
        self.before = self._began = look(setup)
        self._ended: Look | None = None
        self._failed: EspbenchError | None = None

    def hear(self, event: dict[str, Any]) -> None:
        """Handle a progress event of the generator. Without the key `sending`, the generator does not say when it
        sends.
        """
        sending = event.get("sending")
        if self._in_between:
            try:
                if sending and event["elapsed_s"] <= 0:
                    self._began = self._look_again()
                if sending is False and self._ended is None:
                    self._ended = self._look_again()
            except EspbenchError as error:
                # The generator has not answered yet; `last` raises this error afterwards.
                self._failed = self._failed or error
            except OSError:
                pass  # the check after the trial reports a gateway that died
        if self._on_progress:
            self._on_progress(event)

    def last(self) -> Look:
        """Return the reading after the trial. EspbenchError: a gateway's CPU time could not be read, now or during
        the trial.
        """
        if self._failed is not None:
            raise self._failed
        return look(self._setup)

    def _look_again(self) -> Look:
        """Return a reading while frames are sent. Gateways that do not run on this machine's CPUs are left out."""
        return look(self._setup) if _gateway_cpus(self._setup) else Look(host.look(), {}, None, None)

    def compared(self, after: Look, offered: Offered, *, paired: bool = False) -> dict[str, Any]:
        """Return the record `host`: what the host did while frames were sent, or in the whole trial if that time is
        not known. paired: whether CPUs were too slow is decided by the trial's partner.

        The clock and foreign load on the senders' CPUs are compared over the whole trial, as are the generator's own
        times.
        """
        ended = self._ended or after
        sending = self._compare(self._began, ended, offered)
        residue = self._compare(ended, after, offered)
        whole = self._compare(self.before, after, offered)
        return (
            sending
            | {"residue": {key: residue[key] for key in _OF_RESIDUE} if self._ended else None}
            | {key: whole[key] for key in ("sender_foreign_pct", "clock_step_ms")}
            | slow_cpu.recorded(self._setup, offered, paired=paired)
            | taken_from_senders(
                offered,
                self._setup.bed.placement.cpus["tester tx"],
                together=_sends_and_receives_together(self._setup),
            )
        )

    def _compare(self, first: Look, last: Look, offered: Offered) -> dict[str, Any]:
        senders = set(self._setup.bed.placement.cpus["tester tx"])
        return _compared(self._setup, first, last, senders, _sender_ns(self._setup, offered))


def without_frames(setup: Setup, before: Look, after: Look) -> dict[str, Any]:
    """Return the record of what the host did between two readings in which the tester sent nothing."""
    return _compared(setup, before, after, set(), 0)


def _compared(setup: Setup, first: Look, last: Look, sender_cpus: set[int], sender_ns: int) -> dict[str, Any]:
    kept_ns = _moved(first.kept_ns, last.kept_ns)
    return host.compare(
        first.host,
        last.host,
        gateway_cpus=_gateway_cpus(setup),
        gateway_ns=_sum(used(first.cpu, last.cpu)),
        gateways_waited_ns=_moved(first.waited_ns, last.waited_ns),
        kept=None if kept_ns is None else host.Kept(kept_ns, _moved(first.turns, last.turns)),
        sender_cpus=sender_cpus,
        sender_ns=sender_ns,
    )


def used(before: dict[Side, int | None], after: dict[Side, int | None]) -> dict[Side, int | None]:
    """Return the CPU time that each gateway used from one reading to another, ns; None if not known."""
    return {side: _moved(before.get(side), after_ns) for side, after_ns in after.items()}


def _cpu(setup: Setup) -> dict[Side, int | None]:
    return {side: g.cpu_ns() for side, g in setup.bed.gateways.items()}


def _waited(setup: Setup) -> int | None:
    """Return how long all gateways were ready to run but had no CPU, ns; None if it is not known for one."""
    waited = [g.waited_ns() for g in setup.bed.gateways.values()]
    known = [ns for ns in waited if ns is not None]
    return sum(known) if known and len(known) == len(waited) else None


def _moved(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _sum(cpu: dict[Side, int | None]) -> int | None:
    known = [used for used in cpu.values() if used is not None]
    return sum(known) if len(known) == len(cpu) else None


def _gateway_cpus(setup: Setup) -> set[int]:
    """Return the gateways' CPUs on which the tester does not run."""
    cpus = setup.bed.placement.cpus
    return {c for side in setup.bed.gateways for c in cpus.get(side, [])} - _tester_cpus(setup)


def _sender_ns(setup: Setup, offered: Offered) -> int:
    """Return the CPU time of all the generator's threads on the CPUs that send, ns."""
    receiving_ms = offered.receivers_run_ms if _sends_and_receives_together(setup) else 0.0
    return int(1e6 * (offered.senders_run_ms + receiving_ms))


def _sends_and_receives_together(setup: Setup) -> bool:
    cpus = setup.bed.placement.cpus
    return bool(set(cpus["tester tx"]) & set(cpus["tester rx"]))


def _tester_cpus(setup: Setup) -> set[int]:
    cpus = setup.bed.placement.cpus
    return {c for role, used in cpus.items() if role.startswith("tester") for c in used}
