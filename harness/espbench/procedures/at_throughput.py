# SPDX-License-Identifier: Apache-2.0
"""A test at the throughput: found earlier in the same run at the same point, or named by the plan."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.plan.keys.rfc2544_tests import AtThroughput
from espbench.plan.resolved.cases import Case
from espbench.procedures.procedure import Known
from espbench.procedures.series import Series
from espbench.sentences import Code
from espbench.terms import Outcome, Reason, Remark, Trial, loaded_directions


class AtThroughputSeries(Series):
    """Base of series whose trials all have this load, frames/s over all directions; None where there is none."""

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
    """Return the throughput at this loss goal, fps in sum over the directions; or why there is none.

    Of a LOWER_BOUND it is the bound: `bound_note`.
    """
    outcome: Outcome | None = known.throughput.get(goal)
    if outcome is None:
        return None, Reason.of(Code.NO_THROUGHPUT, goal=goal)
    if outcome.throughput_fps is None:
        return None, Reason.of(Code.THROUGHPUT_IS, goal=goal, status=outcome.status)
    return outcome.throughput_fps, None


def bound_note(known: Known, goal: float, code: Code = Code.AT_BOUND) -> list[Remark]:
    """Return the warning of figures that depend on a throughput, if that throughput is only a bound."""
    outcome = known.throughput.get(goal)
    if outcome is None or outcome.status != "LOWER_BOUND":
        return []
    return [Remark.of(code, fps=outcome.throughput_fps, goal=goal)]


def load_note(known: Known, settings: AtThroughput) -> list[Remark]:
    """Return the remark of `bound_note` for such a test; nothing if the plan names the load."""
    return [] if settings.load is not None else bound_note(known, settings.loss_goal)


def load_of(case: Case, known: Known, settings: AtThroughput) -> tuple[float | None, Reason | None]:
    """Return the load of such a test, as `throughput_of`."""
    if settings.load is None:
        return throughput_of(known, settings.loss_goal)
    each = settings.load.to_fps(case.mean_frame_size, known.limits.line_rate_bps)
    return each * loaded_directions(case.direction), None
