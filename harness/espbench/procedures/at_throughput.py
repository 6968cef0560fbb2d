# SPDX-License-Identifier: Apache-2.0
"""Tests at the throughput, which was measured earlier in the same run for the same case, or is named by the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from espbench.plan.keys.rfc2544_tests import AtThroughput
from espbench.plan.resolved.cases import Case
from espbench.procedures.procedure import Known
from espbench.procedures.series import Series
from espbench.sentences import Code
from espbench.terms import Deviation, Outcome, Reason, Remark, Trial, loaded_directions

# A throughput of at least this share of the highest rate that the links carry is that rate: no DUT forwards more.
_LINE_RATE = 0.995


class AtThroughputSeries(Series):
    """Base of series whose trials all have the load `load_fps`, frames/s over all directions; None if it is not
    known.
    """

    def __init__(
        self, case: Case, settings: AtThroughput, known: Known, trials: Sequence[Trial] = ()
    ) -> None:
        self.load_fps, self._no_load = load_of(case, known, settings)
        super().__init__(case, known, trials)

    @property
    def warm_up_fps(self) -> float:
        return self.load_fps or self.known.limits.minimum_fps

    def unfit(self) -> Reason | None:
        return self._no_load


def throughput_of(known: Known, goal: float) -> tuple[float | None, Reason | None]:
    """Return the throughput for this loss goal, frames/s in sum over the directions; or the reason why there is none.

    If it is only a lower bound (`is_bound`), `bound_note` has a warning.
    """
    outcome: Outcome | None = known.throughput.get(goal)
    if outcome is None:
        return None, Reason.of(Code.NO_THROUGHPUT, goal=goal)
    if outcome.throughput_fps is None:
        return None, Reason.of(Code.THROUGHPUT_IS, goal=goal, status=outcome.status)
    return outcome.throughput_fps, None


def is_bound(known: Known, goal: float) -> bool:
    """Return whether the throughput for this loss goal is only a lower bound: a limit of the tester or of the search,
    or a load above which nothing could be judged.

    What the links carry is no such limit, because no DUT forwards more.
    """
    outcome = known.throughput.get(goal)
    if outcome is None or outcome.throughput_fps is None:
        return False
    limits = known.limits
    most_fps = min(limits.line_rate_fps or math.inf, limits.carried_fps)
    if outcome.throughput_fps >= _LINE_RATE * most_fps:
        return False
    return outcome.is_lower_bound


def bound_note(known: Known, goal: float, code: Code = Code.AT_BOUND) -> list[Remark]:
    """Return the warning for figures that depend on a throughput, if that throughput is only a bound; else nothing."""
    if not is_bound(known, goal):
        return []
    return [Remark.of(code, fps=known.throughput[goal].throughput_fps, goal=goal)]


def throughput_deviations(known: Known, goal: float, clause: str) -> list[Deviation]:
    """Return why a test that needs the throughput does not keep this clause: the throughput for this loss goal allows
    loss, is only a lower bound, or does not keep RFC 2544 itself. Without a throughput, return nothing.
    """
    outcome = known.throughput.get(goal)
    if outcome is None or outcome.throughput_fps is None:
        return []
    deviations = [Deviation.from_clause(Code.FROM_LOSSY, clause, goal=goal)] if goal else []
    if is_bound(known, goal):
        deviations.append(Deviation.from_clause(Code.FROM_BOUND, clause))
    elif outcome.rfc2544_deviations:
        deviations.append(Deviation.from_clause(Code.FROM_OTHER, clause))
    return deviations


def load_note(known: Known, settings: AtThroughput) -> list[Remark]:
    """Return the warning of `bound_note` for a test at the throughput; nothing if the plan names the load."""
    return [] if settings.load is not None else bound_note(known, settings.loss_goal)


def load_of(case: Case, known: Known, settings: AtThroughput) -> tuple[float | None, Reason | None]:
    """Return the load of a test at the throughput, frames/s over all directions; or the reason why there is none."""
    if settings.load is None:
        return throughput_of(known, settings.loss_goal)
    each = settings.load.to_fps(case.mean_frame_size, known.limits.line_rate_bps)
    return each * loaded_directions(case.direction), None
