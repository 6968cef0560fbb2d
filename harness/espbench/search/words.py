# SPDX-License-Identifier: Apache-2.0
"""Puts the answer for one loss goal into one plain sentence."""

from __future__ import annotations

from espbench.search.evidence import Evidence
from espbench.search.goals import Judgement, Observation, frames_to_see, frames_to_steer, judge
from espbench.sentences import Code
from espbench.terms import Reason, Statement, Status

DIFFERENT_RATES = 1.5  # times the lowest rate: the least range of rates for the words "whatever the rate"
ALIKE = 3.0  # loss ratios within this factor count as the same, because they rest on a handful of frames


def answer(
    evidence: Evidence, status: Status, reason: Reason | None, throughput: float | None, *, at_maximum: bool
) -> Statement:
    """Return the sentence for the report; `reason` says why status is not OK."""
    goal = evidence.goal
    if throughput is not None and status == "LOWER_BOUND":
        return Statement.of(Code.PASSES_AT_LEAST, goal=goal, fps=throughput, why=reason)
    if throughput is not None:
        return Statement.of(Code.PASSES, goal=goal, fps=throughput, at_maximum=at_maximum)
    failing = _every_rate(evidence) if status in ("BELOW_MINIMUM", "UNRESOLVABLE") else ""
    if failing:
        return Statement.of(Code.FAILS_AT_EVERY_RATE, goal=goal, failing=failing, why=reason)
    return Statement.of(Code.NO_RESULT, goal=goal, why=reason)


def _every_rate(evidence: Evidence) -> str:
    """Return `5 of 5 trials of at least 200,000 frames lost …`; empty if a trial with enough frames passed.

    For a goal above zero, enough is 1/goal frames in each direction; a trial with that many frames either meets or
    misses the goal. For zero loss, enough is more frames than any trial without loss had, provided that no such trial
    was large enough to show the smallest loss seen.
    """
    valid = [entry.seen for entry in evidence.valid]
    if evidence.goal > 0:
        enough = frames_to_steer(evidence.goal)
        large = [seen for seen in valid if seen.frames_per_direction >= enough]
    else:
        clean = max((seen.frames for seen in valid if judge(seen, 0.0) is not Judgement.MISSED), default=0)
        faint = evidence.faint_loss()
        if clean and (faint is None or clean >= frames_to_see(faint)):
            return ""
        enough = _two_digits_up(clean)
        large = [seen for seen in valid if seen.frames >= enough]
    missed = [seen for seen in large if judge(seen, evidence.goal) is not Judgement.MET]
    if not missed or len(missed) < len(large):
        return ""
    count = f"{len(missed)} of {len(large)} trials"
    if enough > 1:
        count += f" of at least {enough:,} frames"
    return f"{count} {_lost(missed)}"


def _lost(missed: list[Observation]) -> str:
    """Return how much these trials lost, and whether the rate made a difference."""
    lossy = sorted((seen for seen in missed if seen.lost_frames > 0), key=lambda seen: seen.loss_ratio)
    if not lossy:
        return "were stored in a queue, not forwarded"
    alike = [seen for seen in lossy if seen.loss_ratio <= ALIKE * lossy[0].loss_ratio]
    loads = [seen.load_fps for seen in alike]
    if max(loads) >= DIFFERENT_RATES * min(loads):
        about = _share(sum(seen.lost_frames for seen in alike) / sum(seen.frames for seen in alike))
        some = "" if len(alike) == len(missed) else f"frames, {len(alike)} of them "
        return f"lost {some}about {about}, whatever the rate"
    least, most = _share(lossy[0].loss_ratio), _share(lossy[-1].loss_ratio)
    return f"lost {least}" if least == most else f"lost {least} to {most}"


def _share(ratio: float) -> str:
    """Return `1 frame in 200,000`, or a percentage where that is easier to read."""
    if ratio >= 0.01:
        return f"{ratio * 100:.0f} % of the frames"
    return f"1 frame in {float(f'{1 / ratio:.2g}'):,.0f}"


def _two_digits_up(frames: int) -> int:
    """Return the next number above `frames` with two significant digits."""
    unit = int("1" + "0" * max(len(str(frames)) - 2, 0))
    return (frames // unit + 1) * unit
