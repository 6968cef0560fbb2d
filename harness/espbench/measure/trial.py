# SPDX-License-Identifier: Apache-2.0
"""One trial: send, wait for late frames, count, read the CPUs, prove the encryption, and judge the trial.

The record has three separate answers (docs/method.md): did it run, can it be trusted (VALID or INVALID with the
reasons), and what did it lose. The search decides whether it met a goal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from espbench.errors import CannotWrite, EspbenchError
from espbench.generators.base import Offered, OnProgress, RateStep, Stream
from espbench.measure import looks
from espbench.measure.inputs.actions import Action, Performed, performing
from espbench.measure.inputs.setup import Request, Setup, Shape, TrialBroken, Waits, blame
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, encryption
from espbench.measure.proof.readiness import InClear
from espbench.measure.record import OfCase, Seen, record
from espbench.measure.unmeasured import learn
from espbench.measure.validity import daemons, network_events
from espbench.platforms.base import NotBack
from espbench.sentences import Code
from espbench.terms import Reason, Trial, problems_recorded

# The sender need not catch up after pauses that lower the load by no more than this share of the resolution,
# because a search does not distinguish such loads. Catching up, at 1.1 times the rate, takes ten times as
# long as the pause. A sender that pauses often would hardly ever offer the intended rate.
_LEEWAY_OF_RESOLUTION = 0.5
_MOST_LEEWAY = 0.05


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
    """Run one trial with its waits (RFC 2544 23) and return its record.

    Raise TrialBroken if the trial could not be completed, NotBack if a gateway does not come back after a power
    cycle, InClear if learning frames crossed without encryption, and CannotWrite if the disk refuses a file.

    actions are executed on the gateways while frames flow; the record's `measured` has their results. After an action
    that replaces SAs or restarts a gateway, counters cannot prove encryption, and the record says so.

    In virtual time the waits are in virtual time too. The wait before the next trial is left out, because each trial
    begins in the same state.
    """
    upset = request.shape.cold or any(action.upsets for action in actions)
    try:
        chance = f"{request.load_fps!r} {request.duration_s!r} {request.attempt}"
        setup.bed.begin_trial(chance)
        if setup.stack is not None:
            setup.stack.rest()
        if not request.shape.cold:
            learn(setup, traffic, waits.learning_s, fragments=of.fragments, sleep=sleep)
            if not setup.bed.virtual_time:
                # The errors of links begin anew: those of learning frames are not the trial's.
                setup.bed.begin_trial(chance)
        streams = shaped(setup.streams(traffic, request.load_fps), request.shape)
        streams = with_leeway(streams, leeway(request, of.resolution))
        if setup.encrypts and (late_s := setup.bed.counters_late_s - waits.learning_s) > 0:
            sleep(late_s)  # else learning frames could be counted in the trial, as frames beside the SAs
        sent = _send(setup, streams, request, of.case, waits.residue_s, actions, on_progress, sleep)
        with _leaks_first(setup, sent.offered, fragments=of.fragments):
            after = _after(setup, sent, sleep, fragments=of.fragments, upset=upset)
            setup.bed.end_trial()
            died = [] if upset else daemons.dead(setup)
    except (NotBack, CannotWrite, InClear):
        raise
    except EspbenchError as error:
        raise TrialBroken(*blame(setup, error)) from error
    if not upset:
        with _leaks_first(setup, sent.offered, fragments=of.fragments):
            _require_tunnels(setup, sent.before, after)
    if died:
        delta = counters.moved(sent.before, after)
        in_doubt = counters.rekeyed(delta) or counters.backwards(delta)
        with _leaks_first(setup, sent.offered, None if in_doubt else delta, fragments=of.fragments):
            raise TrialBroken("; ".join(died), Code.DAEMON_DIED)
    seen = _seen(sent, request, after, network_events.other_speeds(setup), upset=upset)
    trial = record(setup, traffic, request, of, seen)
    setup.usual_speed.add(trial.host)
    if not setup.bed.virtual_time:
        sleep(waits.settle_s)
    return trial.model_copy(update={"waits_s": waits.recorded(cold=request.shape.cold)})


@contextlib.contextmanager
def _leaks_first(
    setup: Setup, offered: Offered, delta: counters.Counters | None = None, *, fragments: bool
) -> Iterator[None]:
    """Let a trial fail in this context; but if frames crossed in clear before, raise InClear instead.

    Cleartext ends the case for ever, whatever else went wrong. delta: the changes of the counters; None: they are not
    known, and only frames that the tester itself received in clear count.
    """
    try:
        yield
    except EspbenchError as error:
        leaks = (
            encryption.leaks(
                setup,
                offered,
                delta or {},
                fragments=fragments,
                tester_in_doubt=encryption.tester_in_doubt(offered),
                gateways_in_doubt=delta is None,
            )
            if setup.encrypts
            else []
        )
        if leaks:
            raise InClear("; ".join(map(str, leaks))) from error
        raise


@dataclass(frozen=True)
class _Sent:
    """The state of a trial once its frames were sent: the counters from before, and what was recorded meanwhile.

    heard: decodes the events of links and SAs. Decoding takes time, so the counters are read first.
    """

    before: counters.Counters
    offered: Offered
    performed: list[Performed]
    watched: looks.Looks
    last: looks.Look
    heard: Callable[[], network_events.NetworkEvents]


def _send(
    setup: Setup,
    streams: list[Stream],
    request: Request,
    case: str,
    residue_s: float,
    actions: Sequence[Action],
    on_progress: OnProgress | None,
    sleep: Callable[[float], None],
) -> _Sent:
    """Offer the load and wait for late frames. Meanwhile execute the actions, and watch links, SAs and host."""
    with network_events.monitor(setup) as monitor:
        before = _before(setup, sleep)
        off_and_on = any(action.breaks_links for action in actions)
        watched = looks.Looks(setup, on_progress, in_between=not (setup.bed.virtual_time or off_and_on))
        with setup.bed.sampling(case), performing(actions, setup.trial_clock) as performed:
            offered = setup.generator.offer(
                streams,
                request.duration_s,
                residue_s,
                on_progress=watched.hear,
                noise=request.shape.noise,
            )
        last = watched.last()
    return _Sent(before, offered, performed, watched, last, partial(network_events.heard, monitor))


def _after(
    setup: Setup, sent: _Sent, sleep: Callable[[float], None], *, fragments: bool, upset: bool
) -> counters.Counters:
    """Return the counters after the trial. If they do not prove encryption, read them again: a gateway may have
    counted late.
    """
    after = counters.read(setup.bed, setup.stack)
    if setup.encrypts and not upset and not setup.bed.virtual_time:
        unproven = partial(encryption.problems, setup, sent.offered, fragments=fragments)
        return counters.read_again(setup.bed, setup.stack, sent.before, after, unproven, sleep)
    return after


def _require_tunnels(setup: Setup, before: counters.Counters, after: counters.Counters) -> None:
    """Raise TrialBroken if SAs are missing before the trial or after it."""
    if setup.stack is None:
        return
    gone = [text for c in (before, after) for text in counters.vanished(c, setup.stack.sas)]
    if gone:
        raise TrialBroken(
            f"the tunnels are not up any more: {'; '.join(dict.fromkeys(gone))}", Code.TUNNELS_GONE
        )


def _seen(
    sent: _Sent, request: Request, after: counters.Counters, speeds: list[Reason], *, upset: bool
) -> Seen:
    """Return the readings of the trial: how counters, CPU times, links and SAs changed from before to after.

    speeds: of the tester's ports, if they changed since the run began.
    """
    return Seen(
        sent.offered,
        counters.moved(sent.before, after),
        looks.used(sent.watched.before.cpu, sent.last.cpu),
        sent.watched.compared(sent.last, sent.offered, paired=request.paired),
        sent.performed,
        upset,
        sent.heard(),
        speeds,
    )


def broken(request: Request, why: Reason, *, case: str, sequence: int, leak: bool = False) -> Trial:
    """Return the record of a trial that could not be completed; leak: frames crossed without encryption."""
    return Trial(
        case=case, sequence=sequence, phase=request.phase, attempt=request.attempt,
        intended_fps=round(request.load_fps, 3), offered_fps=0.0, duration_s=0.0,
        intended_duration_s=request.duration_s, tx_frames=0, rx_frames=0, lost=0, duplicated=0,
        reordered=0, corrupted=0, frame_loss_ratio=0.0, validity="INVALID",
        reasons=[why],
        proof={"proven": False, "violated": True, **problems_recorded([why])} if leak else {},
    )  # fmt: skip


def _before(setup: Setup, sleep: Callable[[float], None]) -> counters.Counters:
    """Return the counters before the trial. If encryption must be proven, first wait until no learning frame is on
    its way.
    """
    if setup.encrypts and not setup.bed.virtual_time:
        return counters.read_at_rest(setup.bed, setup.stack, sleep)
    return counters.read(setup.bed, setup.stack)


def shaped(streams: list[Stream], shape: Shape) -> list[Stream]:
    """Return the streams with the steps, burst and tagged frame of this shape."""
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


def leeway(request: Request, resolution: float) -> float:
    """Return the leeway of the streams: the share of the trial's duration for which the sender need not catch up
    after pauses.

    It is 0 if exactly the intended load must be offered, or if the load changes during the trial.
    """
    if not request.counts_as_offered or request.shape != Shape():
        return 0.0
    return min(_LEEWAY_OF_RESOLUTION * resolution, _MOST_LEEWAY)


def with_leeway(streams: list[Stream], share: float) -> list[Stream]:
    """Return the streams with this leeway."""
    return [stream.model_copy(update={"leeway": share}) for stream in streams] if share else streams
