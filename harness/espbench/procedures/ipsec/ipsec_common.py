# SPDX-License-Identifier: Apache-2.0
"""Has the common parts of the IPsec tests: the pair's IKE stack, restarted for a test, and the trials' records."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from espbench.errors import CannotWrite, EspbenchError, Interrupted, MachineLacks, UsageError
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, blame
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import readiness
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import NotBack
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import TrialMaker
from espbench.procedures.series import Series
from espbench.sentences import Code
from espbench.stacks.base import split
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.stacks.daemons.ike import IkeStack
from espbench.terms import ARRIVED_AT_THE_END, DirectionReading, Reason, Trial, loaded_directions

# The daemons log times in whole milliseconds, so a set-up or a rekey can seem to take no time, s.
SHORTEST_S = 1e-3
_UPSET = "SAs come and go"
# Frames that are lost because an outage begins were sent at most this long before, s; or an interval, if it is longer.
_UNDER_WAY_S = 0.01


def ike_of(setup: Setup) -> IkeStack:
    """Return the pair's IKE stack. Raise EspbenchError if espbench does not drive the gateways' IKE daemons."""
    if not isinstance(setup.stack, IkeStack):
        raise EspbenchError("expected gateways whose IKE daemons espbench drives")
    return setup.stack


class IpsecSeries(Series):
    """Base of series whose trials drive daemons and gateways themselves, not only through the trial maker."""

    def measure(self, request: Request, maker: TrialMaker) -> Trial:
        """Make the trial with `made`. An error of a gateway or daemon makes the trial void (TrialBroken), but does
        not end the run.
        """
        try:
            with maker.setup.bed.as_one_trial(len(self.trials)):
                return self.made(request, maker)
        except (UsageError, MachineLacks, CannotWrite, Interrupted, NotBack, TrialBroken, readiness.NotReady):
            raise
        except NegotiationFailed as failure:
            # The failure is not permanent, whatever its message says: with the plan's options these daemons
            # agree.
            raise NegotiationFailed(str(failure)) from failure
        except EspbenchError as error:
            raise TrialBroken(*blame(maker.setup, error)) from error

    @abstractmethod
    def made(self, request: Request, maker: TrialMaker) -> Trial:
        """Make the trial and return its record."""


@contextmanager
def restarted(stack: IkeStack, tunnels: int = 0, **options: Any) -> Iterator[None]:
    """Restart both daemons with these options and number of tunnels (0: as before); no tunnel is up.

    Afterwards the stack is restored, with its tunnels up. After an error it is not: the error ends the pair.
    """
    had, tunnel = stack.options, stack.tunnel
    other = replace(tunnel, pairs=split(tunnel.west, tunnel.east, tunnels)) if tunnels else tunnel
    stack.reconfigure(replace(had, **options), other)
    yield
    stack.restore(had, tunnel)


def show_all_carry(setup: Setup, case: Case, tunnels: int) -> dict[str, Any]:
    """Send a frame through each of the first `tunnels` tunnels, both ways; return the `proof` of a record without
    frames.

    Raise NotReady or InClear, as readiness.carried does.
    """
    stack = ike_of(setup)
    probe = Traffic(
        frames=(min(case.sizes)[:2],),
        ip_version=case.ip_version,
        direction="both-ways",
        tunnels=tunnels,
        tunnel_bits=stack.tunnel.bits if len(stack.tunnel.pairs) > 1 else 0,
    )
    arrived, sent = readiness.carried(setup, probe)
    return {
        "kind": f"{arrived} of {sent} frames arrived through {tunnels} tunnels, counted by both gateways' SAs",
        "proven": True,
        "problems": [],
    }


def record(
    case: Case,
    request: Request,
    sequence: int,
    measured: dict[str, Any],
    *,
    reasons: Sequence[Reason] = (),
    proof: dict[str, Any] | None = None,
) -> Trial:
    """Return the record of a trial whose figures do not come from the tester's frames; INVALID if there are reasons."""
    return Trial(
        case=case.id, sequence=sequence, phase=request.phase, attempt=request.attempt,
        intended_fps=request.load_fps, offered_fps=0.0, duration_s=0.0,
        intended_duration_s=request.duration_s, tx_frames=0, rx_frames=0, lost=0, duplicated=0,
        reordered=0, corrupted=0, frame_loss_ratio=0.0, validity="INVALID" if reasons else "VALID",
        reasons=list(reasons), measured=measured, proof=proof or {},
    )  # fmt: skip


def upset(act: Callable[[], dict[str, Any]]) -> list[Action]:
    """Return an action that marks a trial in which the daemons themselves replace SAs. When the sending begins, `act`
    is called; it must leave the gateways alone. A replacement of SAs is no outage: frames need not be lost in it.
    """
    return [Action(_UPSET, 0.0, act, interrupts=False)]


def upset_late_s(trial: Trial) -> float:
    """Return how long after the first frame the action of `upset` was executed, s; negative if it was before."""
    return float(next(a["began_s"] for a in trial.measured["actions"] if a["name"] == _UPSET))


def per_direction_load(case: Case, fps: float, limits: Limits) -> float:
    """Return the load in sum over the directions for a rate of each direction, limited to the maximum; frames/s."""
    return min(fps * loaded_directions(case.direction), limits.maximum_fps)


def outage_s(reading: DirectionReading, tunnels: int = 1) -> float:
    """Return for how long nothing arrived, s, without the interval between two frames; 0 if every frame arrived.

    A damaged frame counts as arrived. The outage is the longest time without an arrival (RFC 6201's time-stamp
    method), but no longer than from the first lost frame to the last, because a host that stands still delays
    arrivals without losing frames. With several tunnels, frames arrive as soon as one of them is back, so the outage
    is the time from the first lost frame to the last.
    """
    all_came = reading.first_lost_s is None and reading.lost <= (reading.corrupted or 0)
    if all_came or reading.longest_gap_s is None:
        return 0.0
    began, ended = reading.longest_gap_s
    interval_s = _interval_s(reading)
    without_arrivals = max(0.0, ended - began - interval_s)
    if reading.first_lost_s is None or reading.last_lost_s is None:
        return without_arrivals
    with_losses = reading.last_lost_s - reading.first_lost_s + interval_s
    return with_losses if tunnels > 1 else min(without_arrivals, with_losses)


def never_back(trial: Trial, tunnels: int) -> bool:
    """Return whether a direction, or one of its tunnels, was still interrupted when the trial ended: frames were lost
    at its end, and more than half of one tunnel's frames did not arrive then.

    Records of earlier versions do not say how many arrived; there any loss at the end counts.
    """
    arrived = trial.measured.get(ARRIVED_AT_THE_END, {})
    enough = 1 - 0.5 / tunnels
    return any((share := arrived.get(way)) is None or share < enough for way in _lost_at_the_end(trial))


def stray_losses(trial: Trial, tunnels: int) -> list[Reason]:
    """Return why the time of an outage cannot be taken from a trial, because frames were lost beside it: at the end,
    when traffic flowed again, or, if there are several tunnels, before the outage began.

    The outage of several tunnels is the time from the first lost frame to the last. A frame that was under way when
    the outage began was sent before.
    """
    reasons = []
    if not never_back(trial, tunnels):
        last = [trial.per_direction[way].last_lost_s or 0.0 for way in _lost_at_the_end(trial)]
        reasons = [Reason.of(Code.LOST_AT_THE_END, at_s=at_s) for at_s in last]
    began_s = min((float(action["began_s"]) for action in trial.measured["actions"]), default=0.0)
    if tunnels > 1:
        reasons += [
            Reason.of(Code.LOST_BEFORE_OUTAGE, at_s=d.first_lost_s, began_s=began_s)
            for d in trial.per_direction.values()
            if d.first_lost_s is not None and d.first_lost_s < began_s - max(_UNDER_WAY_S, _interval_s(d))
        ]
    return reasons


def _lost_at_the_end(trial: Trial) -> list[str]:
    """Return the directions that lost frames when the trial ended: in its last 2 %, or its last frame."""
    return [
        way
        for way, d in trial.per_direction.items()
        if d.last_lost_s is not None and d.last_lost_s > _end_s(trial, d)
    ]


def _end_s(trial: Trial, reading: DirectionReading) -> float:
    """Return the beginning of the end of a trial, s: its last 2 %, or half an interval before its last frame, if that
    is earlier.
    """
    return min(0.98 * trial.intended_duration_s, trial.intended_duration_s - 1.5 * _interval_s(reading))


def _interval_s(reading: DirectionReading) -> float:
    """Return the time between two frames of a direction, s."""
    return 1 / reading.intended_fps if reading.intended_fps else 0.0
