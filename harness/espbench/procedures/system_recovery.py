# SPDX-License-Identifier: Apache-2.0
"""The system recovery test (RFC 2544 26.5): overload, then half of it; the time until the last frame is lost.

The overload is 110 % of the throughput, or the maximum if that is lower. Times are those at which frames were sent:
the reduction of the load is the generator's own, so it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.bench import Request, Shape
from espbench.plan.cases import Case
from espbench.plan.rfc2544_tests import SystemRecovery
from espbench.procedures.at_throughput import load_note, load_of
from espbench.procedures.clauses import common, shorter
from espbench.procedures.procedure import Known
from espbench.procedures.quantities import by_direction, quantity
from espbench.procedures.series import Series
from espbench.terms import DirectionReading, Quantity, Trial

OVERLOAD, REDUCED = 1.1, 0.5
_OVERLOAD_S = 60.0
# Who still loses frames so close to the end has not recovered, as a share of the time under the reduced load.
_AT_THE_END = 0.02


class SystemRecoveryCase(Series):
    """As many trials as the plan wants, all alike."""

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

    def unfit(self) -> str:
        return self._no_load if self._throughput is None else ""

    @property
    def is_fast(self) -> bool:
        """Whether its throughput is the highest load there is, so that nothing overloads it."""
        return self._throughput is not None and self.load_fps <= self._throughput

    def wanted(self) -> Request | None:
        if self.is_fast or len(self.answers) == self.settings.repeats:
            return None
        s = self.settings
        return Request(
            self.load_fps, s.overload + s.recovery, "measure", shape=Shape(steps=((s.overload, REDUCED),))
        )

    def expected_trials(self) -> int:
        return 0 if self.is_fast else self.settings.repeats

    def answer(self) -> dict[str, Any]:
        if self.is_fast:
            return {
                "status": "OK",
                "words": "Not overloaded: its throughput is the highest load there is, "
                f"{self.load_fps:,.0f} frames/s, so there is nothing to recover from.",
                "load_fps": self.load_fps,
            }
        times = [self._recovery_s(trial) for trial in self.answers]
        lossless = sum(not trial.lost for trial in self.answers)
        never = [s for s in times if s > (1 - _AT_THE_END) * self.settings.recovery]
        loads = (
            f"from {self.load_fps:,.0f} frames/s ({100 * self.load_fps / (self._throughput or 1):.4g} % of its "
            f"throughput) to {REDUCED * self.load_fps:,.0f}"
        )
        if never:
            return {
                "status": "UNRESOLVABLE",
                "words": f"UNRESOLVABLE: in {len(never)} of {len(times)} trials frames were still lost "
                f"{self.settings.recovery:g} s after the load fell {loads}.",
                "reasons": ["it had not recovered when the trial ended: lengthen recovery"],
                "load_fps": self.load_fps,
            }
        found = quantity("system recovery time", "s", times, digits=6)
        if lossless == len(times):
            words = f"The overload lost no frame, so there was nothing to recover from ({loads})."
        else:
            words = f"It recovered {found.value:.4g} s (mean of {found.n}) after the load fell {loads}."
        lost = [trial.frame_loss_ratio for trial in self.answers]
        return {
            "status": "OK",
            "words": words,
            "load_fps": self.load_fps,
            "quantities": [
                found,
                *by_direction("system recovery time", "s", self.answers, self._of_direction_s, digits=6),
                quantity("frame loss over the trial", "%", [100 * ratio for ratio in lost], digits=6),
                Quantity(name="throughput", unit="frames/s", value=self._throughput),
                Quantity(name="overload", unit="frames/s", value=round(self.load_fps, 3)),
                Quantity(name="reduced load", unit="frames/s", value=round(REDUCED * self.load_fps, 3)),
            ],
            "warnings": [
                *load_note(self.known, self.settings),
                *([f"{lossless} of {len(times)} overloads lost no frame"] if lossless else []),
            ],
        }

    def _recovery_s(self, trial: Trial) -> float:
        """From the fall of the load to the last lost frame of either direction; 0 if none was lost after it."""
        return max(map(self._of_direction_s, trial.per_direction.values()), default=0.0)

    def _of_direction_s(self, direction: DirectionReading) -> float:
        return max(0.0, (direction.last_lost_s or 0.0) - self.settings.overload)

    def deviations(self) -> list[str]:
        s = self.settings
        below = self._throughput is not None and self.load_fps < 0.999 * OVERLOAD * self._throughput
        return [
            *shorter("26.5", "an overload of", s.overload, _OVERLOAD_S),
            *(["26.5: the overload is below 110 % of the throughput"] if below else []),
            *(["26.5: from a load of the plan's, not from the throughput"] if s.load is not None else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]
