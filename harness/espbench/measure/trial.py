# SPDX-License-Identifier: Apache-2.0
"""One trial: send, wait for late frames, count, read the CPUs, prove the encryption, and judge the trial.

The record has three separate answers (docs/method.md): did it run, can it be trusted (VALID or INVALID with the
reasons), and what did it lose. The search decides whether it met a goal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from espbench.errors import CannotWrite, EspbenchError
from espbench.generators.base import Offered, OnProgress, RateStep, Stream
from espbench.measure.inputs.actions import Action, performing
from espbench.measure.inputs.setup import Request, Setup, Shape, TrialBroken, Waits, blame
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters
from espbench.measure.record import OfCase, Seen, proof_problems, record
from espbench.measure.validity import host, network_events
from espbench.measure.validity.faults import taken_from_senders
from espbench.platforms.base import NotBack, Side, TrialClock
from espbench.sentences import Code
from espbench.terms import Reason, Trial, problems_recorded

_LEARNING_FRAMES_S = 0.1
_LEARNING_FPS = 100.0
# Counters that do not prove encryption are read again: a gateway that was kept from its CPU may count late.
_READ_AGAIN, _LATE_COUNTERS_S = 2, 0.2


def measure(
    setup: Setup,
    traffic: Traffic,
    request: Request,
    of: OfCase,
    waits: Waits,
    *,
    actions: Sequence[Action] = (),
    on_progress: OnProgress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Trial:
    """Run one trial with its waits and return its record; raises TrialBroken, or NotBack after a power cycle.

    actions are executed on the gateways while frames flow; their results are in `measured` of the record. After an
    action that replaces SAs or restarts a gateway, encryption cannot be proven by counters, and the record says so.

    In virtual time the waits are in virtual time too. The wait before the next trial is left out, because each trial
    begins in the same state.
    """
    try:
        setup.bed.begin_trial(f"{request.load_fps!r} {request.duration_s!r} {request.attempt}")
        if setup.stack is not None:
            setup.stack.rest()
        if not request.shape.cold:
            learn(setup, traffic, waits.learning_s, sleep)
        with network_events.monitor(setup) as monitor:
            before = _before(setup, sleep)
            host_before, cpu_before, waited_before = _look(setup)
            kept_before = setup.bed.kept_waiting_ns()
            with performing(actions, _clock(setup)) as performed:
                offered = setup.generator.offer(
                    shaped(setup.streams(traffic, request.load_fps), request.shape),
                    request.duration_s,
                    waits.residue_s,
                    on_progress=on_progress,
                    noise=request.shape.noise,
                )
            # CPU first: reading the counters costs the gateways some.
            cpu_after, waited_after, kept_after = _cpu(setup), _waited(setup), setup.bed.kept_waiting_ns()
            host_after = host.look()
        after = counters.read(setup.bed, setup.stack)
        upset = request.shape.cold or any(action.upsets for action in actions)
        if setup.encrypts and not upset and not setup.bed.virtual_time:
            after = _settled(setup, offered, before, after, of.fragments, sleep)
        setup.bed.end_trial()
    except (NotBack, CannotWrite):
        raise
    except EspbenchError as error:
        raise TrialBroken(*blame(setup, error)) from error
    if setup.stack is not None and not upset:
        gone = [text for c in (before, after) for text in counters.vanished(c, setup.stack.sas)]
        if gone:
            raise TrialBroken(
                f"the tunnels are not up any more: {'; '.join(dict.fromkeys(gone))}", Code.TUNNELS_GONE
            )
    cpu = {side: _used(cpu_before[side], after_ns) for side, after_ns in cpu_after.items()}
    of_host = host.compare(
        host_before, host_after, gateway_cpus=_gateway_cpus(setup), gateway_ns=_sum(cpu),
        gateways_waited_ns=None if waited_before is None or waited_after is None else waited_after - waited_before,
        kept_ns=_used(kept_before, kept_after),
        sender_cpus=set(setup.bed.placement.cpus["tester tx"]), sender_ns=_sender_ns(setup, offered),
    ) | taken_from_senders(
        offered, setup.bed.placement.cpus["tester tx"], together=_sends_and_receives_together(setup)
    )  # fmt: skip
    trial = record(
        setup,
        traffic,
        request,
        of,
        Seen(
            offered,
            counters.moved(before, after),
            cpu,
            of_host,
            performed,
            upset,
            network_events.heard(monitor),
        ),
    ).model_copy(update={"waits_s": waits.recorded(cold=request.shape.cold)})
    if not setup.bed.virtual_time:
        sleep(waits.settle_s)
    return trial


def learn(setup: Setup, traffic: Traffic, wait_s: float, sleep: Callable[[float], None] = time.sleep) -> None:
    """Send a few learning frames (RFC 2544 23 b), which are not counted, and wait."""
    load = _LEARNING_FPS * traffic.directions
    virtual = setup.bed.virtual_time
    setup.generator.offer(
        setup.streams(traffic, load),
        _LEARNING_FRAMES_S,
        wait_s,
        quiet_s=None if virtual else min(wait_s, 0.05),
    )
    if not virtual:
        sleep(wait_s)


def warm_up(setup: Setup, traffic: Traffic, load_fps: float, duration_s: float) -> None:
    """Send traffic that is not counted, to warm up caches, flows and the CPU's clock. Raises TrialBroken."""
    try:
        setup.generator.offer(setup.streams(traffic, load_fps), duration_s, 1.0, quiet_s=0.1)
    except EspbenchError as error:
        raise TrialBroken(*blame(setup, error)) from error


def broken(request: Request, why: Reason, *, case: str, sequence: int, leak: bool = False) -> Trial:
    """Return the record of a trial that could not be carried through; leak: frames crossed without encryption."""
    return Trial(
        case=case, sequence=sequence, phase=request.phase, attempt=request.attempt,
        intended_fps=round(request.load_fps, 3), offered_fps=0.0, duration_s=0.0,
        intended_duration_s=request.duration_s, tx_frames=0, rx_frames=0, lost=0, duplicated=0,
        reordered=0, corrupted=0, frame_loss_ratio=0.0, validity="INVALID",
        reasons=[why],
        proof={"proven": False, "violated": True, **problems_recorded([why])} if leak else {},
    )  # fmt: skip


def _before(setup: Setup, sleep: Callable[[float], None]) -> counters.Counters:
    """Read the counters before the trial. If encryption must be proven, first wait until no learning frame moves."""
    if setup.encrypts and not setup.bed.virtual_time:
        return counters.read_at_rest(setup.bed, setup.stack, sleep)
    return counters.read(setup.bed, setup.stack)


def _settled(
    setup: Setup,
    offered: Offered,
    before: counters.Counters,
    after: counters.Counters,
    fragments: bool,
    sleep: Callable[[float], None],
) -> counters.Counters:
    """Return the counters after the trial, read again if they do not prove encryption: one may have been late."""
    for _ in range(_READ_AGAIN):
        if not proof_problems(setup, offered, counters.moved(before, after), fragments=fragments)[0]:
            break
        sleep(_LATE_COUNTERS_S)
        after = counters.read(setup.bed, setup.stack)
    return after


def _clock(setup: Setup) -> TrialClock | None:
    """Return the clock of virtual time; None where time is real."""
    return setup.generator if setup.bed.virtual_time and isinstance(setup.generator, TrialClock) else None


def _look(setup: Setup) -> tuple[host.HostSnapshot, dict[Side, int | None], int | None]:
    snapshot = host.look()
    return snapshot, _cpu(setup), _waited(setup)


def _cpu(setup: Setup) -> dict[Side, int | None]:
    return {side: g.cpu_ns() for side, g in setup.bed.gateways.items()}


def _waited(setup: Setup) -> int | None:
    """Return how long all gateways were ready to run but had no CPU, ns; None if it is not known for one."""
    waited = [g.waited_ns() for g in setup.bed.gateways.values()]
    known = [ns for ns in waited if ns is not None]
    return sum(known) if known and len(known) == len(waited) else None


def _used(before_ns: int | None, after_ns: int | None) -> int | None:
    return None if before_ns is None or after_ns is None else after_ns - before_ns


def _sum(cpu: dict[Side, int | None]) -> int | None:
    known = [used for used in cpu.values() if used is not None]
    return sum(known) if len(known) == len(cpu) else None


def _gateway_cpus(setup: Setup) -> set[int]:
    """Return the gateways' CPUs on which the tester does not run."""
    cpus = setup.bed.placement.cpus
    return {c for side in setup.bed.gateways for c in cpus.get(side, [])} - _tester_cpus(setup)


def _sender_ns(setup: Setup, offered: Offered) -> int:
    """Return CPU time of all the generator's threads on the CPUs that send, ns."""
    receiving_ms = offered.receivers_run_ms if _sends_and_receives_together(setup) else 0.0
    return int(1e6 * (offered.senders_run_ms + receiving_ms))


def _sends_and_receives_together(setup: Setup) -> bool:
    cpus = setup.bed.placement.cpus
    return bool(set(cpus["tester tx"]) & set(cpus["tester rx"]))


def _tester_cpus(setup: Setup) -> set[int]:
    cpus = setup.bed.placement.cpus
    return {c for role, used in cpus.items() if role.startswith("tester") for c in used}


def shaped(streams: list[Stream], shape: Shape) -> list[Stream]:
    """Return the streams with the load in this shape."""
    if shape == Shape():
        return streams
    return [
        stream.model_copy(
            update={
                "steps": [
                    RateStep(at_s=at_s, rate_fps=share * (stream.rate_fps or 0.0))
                    for at_s, share in shape.steps
                ],
                "burst_frames": shape.burst_frames,
                "tag_at_s": shape.tag_at_s,
            }
        )
        for stream in streams
    ]
