# SPDX-License-Identifier: Apache-2.0
"""The system recovery test (RFC 2544 26.5): an overload, then half of it; the time until the last frame is lost.

The overload is 110 % of the throughput, or the maximum if that is lower. Times are those at which frames were sent.
The generator itself reduces the load, so that time is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request, Shape
from espbench.plan.keys.rfc2544_tests import SystemRecovery
from espbench.plan.resolved.cases import Case
from espbench.procedures.at_throughput import is_bound, load_note, load_of, throughput_deviations
from espbench.procedures.clauses import common, shorter
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.series import Series, noted, times_unknown
from espbench.procedures.summaries import by_direction, quantity
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.terms import Deviation, DirectionReading, Reason, Remark, Statement, Trial

OVERLOAD, REDUCED = 1.1, 0.5
_OVERLOAD_S = 60.0
# A DUT that still loses frames in this last share of the time under the reduced load has not recovered.
_AT_THE_END = 0.02


class SystemRecoveryCase(Series):
    """Makes `repeats` trials, all alike."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, SystemRecovery)
        self.settings = case.settings
        self._from_fps, self._no_load = load_of(case, known, case.settings)
        maximum = known.limits.maximum_fps
        self.load_fps = min(OVERLOAD * (self._from_fps or 0.0), maximum)
        super().__init__(case, known, trials)

    @property
    def warm_up_fps(self) -> float:
        return REDUCED * self.load_fps or self.known.limits.minimum_fps

    def unfit(self) -> Reason | None:
        return self._no_load if self._from_fps is None else None

    @property
    def is_fast(self) -> bool:
        """True if the throughput, or the plan's load, is the highest load, so that no load is an overload."""
        return self._from_fps is not None and self.load_fps <= self._from_fps

    def wanted(self) -> Request | None:
        if self.is_fast or len(self.answers) == self.settings.repeats:
            return None
        s = self.settings
        return Request(
            self.load_fps, s.overload + s.recovery, "measure", shape=Shape(steps=((s.overload, REDUCED),))
        )

    def measure(self, request: Request, maker: TrialMaker) -> Trial:
        trial = super().measure(request, maker)
        return noted(trial, {}, times_unknown(trial))

    def expected_trials(self) -> int:
        return 0 if self.is_fast else self.settings.repeats

    def answer(self) -> dict[str, Any]:
        if self.is_fast:
            code = Code.NOT_OVERLOADED if self.settings.load is None else Code.NOT_OVERLOADED_BY_PLAN
            return {
                "status": "OK",
                "words": Statement.of(code, fps=self.load_fps),
                "load_fps": self.load_fps,
            }
        times = [self._recovery_s(trial) for trial in self.answers]
        lossless = sum(not trial.lost for trial in self.answers)
        never = [s for s in times if s > (1 - _AT_THE_END) * self.settings.recovery]
        loads = self._loads()
        if never:
            return {
                "status": "UNRESOLVABLE",
                "words": Statement.of(
                    Code.STILL_LOSING,
                    never=len(never),
                    trials=len(times),
                    after_s=self.settings.recovery,
                    loads=loads,
                ),
                "reasons": [Reason.of(Code.NOT_RECOVERED, key="recovery")],
                "load_fps": self.load_fps,
            }
        recovery = quantity(Key.RECOVERY_TIME, times, digits=6)
        if lossless == len(times):
            words = Statement.of(Code.NOTHING_TO_RECOVER, loads=loads)
        else:
            words = Statement.of(Code.RECOVERED, s=recovery.value, n=recovery.n, loads=loads)
        lost = [trial.frame_loss_ratio for trial in self.answers]
        return {
            "status": "OK",
            "words": words,
            "load_fps": self.load_fps,
            "quantities": [
                recovery,
                *by_direction(Key.RECOVERY_TIME, self.answers, self._of_direction_s, digits=6),
                quantity(Key.LOSS_OVER_TRIAL, [100 * ratio for ratio in lost], digits=6),
                *([figure(Key.THROUGHPUT, self._from_fps)] if self.settings.load is None else []),
                figure(Key.OVERLOAD, round(self.load_fps, 3)),
                figure(Key.REDUCED_LOAD, round(REDUCED * self.load_fps, 3)),
            ],
            "warnings": [
                *load_note(self.known, self.settings),
                *(
                    [Remark.of(Code.LOSSLESS_OVERLOADS, lossless=lossless, trials=len(times))]
                    if lossless
                    else []
                ),
            ],
        }

    def _loads(self) -> Statement:
        """Return from which load to which one it fell, for the answer."""
        code = Code.LOAD_FELL_FROM_BOUND if is_bound(self.known, self.settings.loss_goal) else Code.LOAD_FELL
        if self.settings.load is not None:
            code = Code.LOAD_FELL_OF_PLAN
        pct = 100 * self.load_fps / (self._from_fps or 1)
        return Statement.of(code, fps=self.load_fps, pct=pct, reduced_fps=REDUCED * self.load_fps)

    def _recovery_s(self, trial: Trial) -> float:
        """Return the time from the reduction of the load to the last lost frame of either direction, s; 0 without
        such a loss.
        """
        return max(map(self._of_direction_s, trial.per_direction.values()), default=0.0)

    def _of_direction_s(self, direction: DirectionReading) -> float:
        return max(0.0, (direction.last_lost_s or 0.0) - self.settings.overload)

    def deviations(self) -> list[Deviation]:
        s = self.settings
        below = self._from_fps is not None and self.load_fps < 0.999 * OVERLOAD * self._from_fps
        of_load = [Deviation.from_clause(Code.LOAD_OF_PLAN_FROM, "26.5")]
        if s.load is None:
            weak = [Deviation.from_clause(Code.WEAK_OVERLOAD, "26.5")] if below else []
            of_load = [*weak, *throughput_deviations(self.known, s.loss_goal, "26.5")]
        return [
            *shorter(Code.SHORT_OVERLOAD, "26.5", s.overload, _OVERLOAD_S),
            *of_load,
            *common(s, self.known.frame_sizes, self.trials),
        ]
