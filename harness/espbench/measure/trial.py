# SPDX-License-Identifier: Apache-2.0
"""One trial: send, wait for late frames, count, read the CPUs, prove the encryption, and judge the trial.

The record has three separate answers (docs/method.md): did it run, can it be trusted (VALID or INVALID with the
reasons), and what did it lose. The search decides whether it met a goal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

from espbench.errors import CannotWrite, EspbenchError
from espbench.generators.base import OnProgress, RateStep, Stream
from espbench.measure import looks
from espbench.measure.inputs.actions import Action, performing
from espbench.measure.inputs.setup import Request, Setup, Shape, TrialBroken, Waits, blame
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, encryption
from espbench.measure.proof.readiness import InClear
from espbench.measure.record import OfCase, Seen, record
from espbench.measure.unmeasured import learn
from espbench.measure.validity import network_events
from espbench.platforms.base import NotBack, TrialClock
from espbench.sentences import Code
from espbench.terms import Reason, Trial, problems_recorded


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

    InClear if learning frames crossed without encryption.

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
            learn(setup, traffic, waits.learning_s, fragments=of.fragments, sleep=sleep)
        with network_events.monitor(setup) as monitor:
            before = _before(setup, sleep)
            off_and_on = any(action.breaks_links for action in actions)
            in_between = not (setup.bed.virtual_time or off_and_on)
            watched = looks.Looks(setup, on_progress, in_between=in_between)
            with performing(actions, _clock(setup)) as performed:
                offered = setup.generator.offer(
                    shaped(setup.streams(traffic, request.load_fps), request.shape),
                    request.duration_s,
                    waits.residue_s,
                    on_progress=watched.hear,
                    noise=request.shape.noise,
                )
            last = watched.last()
        after = counters.read(setup.bed, setup.stack)
        upset = request.shape.cold or any(action.upsets for action in actions)
        if setup.encrypts and not upset and not setup.bed.virtual_time:
            unproven = partial(encryption.problems, setup, offered, fragments=of.fragments)
            after = counters.read_again(setup.bed, setup.stack, before, after, unproven, sleep)
        setup.bed.end_trial()
    except (NotBack, CannotWrite, InClear):
        raise
    except EspbenchError as error:
        raise TrialBroken(*blame(setup, error)) from error
    if setup.stack is not None and not upset:
        gone = [text for c in (before, after) for text in counters.vanished(c, setup.stack.sas)]
        if gone:
            raise TrialBroken(
                f"the tunnels are not up any more: {'; '.join(dict.fromkeys(gone))}", Code.TUNNELS_GONE
            )
    cpu = looks.used(watched.before.cpu, last.cpu)
    of_host = watched.compared(last, offered)
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


def _clock(setup: Setup) -> TrialClock | None:
    """Return the clock of virtual time; None where time is real."""
    return setup.generator if setup.bed.virtual_time and isinstance(setup.generator, TrialClock) else None


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
