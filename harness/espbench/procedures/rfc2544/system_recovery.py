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
from espbench.procedures.at_throughput import load_note, load_of
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
        self._throughput, self._no_load = load_of(case, known, case.settings)
        maximum = known.limits.maximum_fps
        self.load_fps = min(OVERLOAD * (self._throughput or 0.0), maximum)
        super().__init__(case, known, trials)

    @property
    def warm_up_fps(self) -> float:
        return REDUCED * self.load_fps or self.known.limits.minimum_fps

    def unfit(self) -> Reason | None:
        return self._no_load if self._throughput is None else None

    @property
    def is_fast(self) -> bool:
        """True if the throughput is the highest load, so that no load is an overload."""
        return self._throughput is not None and self.load_fps <= self._throughput

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
            return {
                "status": "OK",
                "words": Statement.of(Code.NOT_OVERLOADED, fps=self.load_fps),
                "load_fps": self.load_fps,
            }
        times = [self._recovery_s(trial) for trial in self.answers]
        lossless = sum(not trial.lost for trial in self.answers)
        never = [s for s in times if s > (1 - _AT_THE_END) * self.settings.recovery]
        loads = Statement.of(
            Code.LOAD_FELL,
            fps=self.load_fps,
            pct=100 * self.load_fps / (self._throughput or 1),
            reduced_fps=REDUCED * self.load_fps,
        )
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
                figure(Key.THROUGHPUT, self._throughput),
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

    def _recovery_s(self, trial: Trial) -> float:
        """Return the time from the reduction of the load to the last lost frame of either direction, s; 0 without
        such a loss.
        """
        return max(map(self._of_direction_s, trial.per_direction.values()), default=0.0)

    def _of_direction_s(self, direction: DirectionReading) -> float:
        return max(0.0, (direction.last_lost_s or 0.0) - self.settings.overload)

    def deviations(self) -> list[Deviation]:
        s = self.settings
        below = self._throughput is not None and self.load_fps < 0.999 * OVERLOAD * self._throughput
        return [
            *shorter(Code.SHORT_OVERLOAD, "26.5", s.overload, _OVERLOAD_S),
            *([Deviation.from_clause(Code.WEAK_OVERLOAD, "26.5")] if below else []),
            *([Deviation.from_clause(Code.LOAD_OF_PLAN_FROM, "26.5")] if s.load is not None else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]
