# SPDX-License-Identifier: Apache-2.0
"""One case at the loads of a base, as `espbench check` measures it in virtual time: no search, one trial for each
load.

There, each trial begins in the same state. So a trial at a load that the base's search tried is the same trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from espbench.measure.inputs.setup import Request
from espbench.plan.keys.model import Throughput
from espbench.plan.resolved.cases import Case
from espbench.procedures.procedure import CaseFacts, Known
from espbench.procedures.series import Series
from espbench.quantities import Key, figure
from espbench.search.loads import Loads
from espbench.sentences import Code
from espbench.terms import AT_BASE_LOADS, BaseLoad, Deviation, Finding, Outcome, Statement, Trial

_ROUNDED = 0.001  # records hold rates to a thousandth of a frame/s


class BaseLoadsCase(Series):
    """Makes a trial at each load. If that misses its loss goal, it makes one at the floor, which decides whether the
    check fails. A floor that is not lower needs no trial: it would be the same one.
    """

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Throughput)
        limits = known.limits
        self._row = Loads(limits.minimum_fps, limits.maximum_fps, case.settings.resolution)
        super().__init__(case, known, trials)

    def wanted(self) -> Request | None:
        answers = iter(self.answers)
        for base in self.known.base_loads:
            trial = next(answers, None)
            if trial is None:
                return Request(self._exactly(base.load_fps), base.duration_s, "measure")
            if _needs_floor(base, trial) and next(answers, None) is None:
                return Request(base.floor_fps, base.duration_s, "measure")
        return None

    def answer(self) -> dict[str, Any]:
        measured = list(self._found())
        missed = sum(not trial.meets(base.goal) for base, trial in measured)
        words = Statement.of(Code.AT_BASE_LOADS, loads=len(measured), missed=missed)
        quantities = []
        for base, trial in measured:
            part = f"{base.goal:g}"
            quantities.append(
                figure(Key.LOSS_AT_BASE_LOAD, 100 * trial.frame_loss_ratio, part=part, fps=base.load_fps)
            )
            quantities += [
                figure(
                    Key.CPU_AT_BASE_LOAD,
                    reading.cpu_us_per_frame,
                    part=f"{side}/{part}",
                    side=side,
                    fps=base.load_fps,
                )
                for side, reading in trial.gateways.items()
            ]
        load = max(base.load_fps for base, _ in measured)
        return {"status": "OK", "words": words, "load_fps": load, "quantities": quantities}

    def results(self, facts: CaseFacts) -> list[Outcome | Finding]:
        return [finding.model_copy(update={"test": AT_BASE_LOADS}) for finding in super().results(facts)]

    def expected_trials(self) -> int:
        return len(self.known.base_loads)

    def deviations(self) -> list[Deviation]:
        return []

    def _found(self) -> Iterator[tuple[BaseLoad, Trial]]:
        """Yield each load with its trial; trials at a floor are left out."""
        answers = iter(self.answers)
        for base in self.known.base_loads:
            trial = next(answers)
            if _needs_floor(base, trial):
                next(answers)
            yield base, trial

    def _exactly(self, fps: float) -> float:
        """Return the search's load that is recorded as `fps`. A trial at another load would differ in the last
        instruction.
        """
        tried = self._row.up(fps - _ROUNDED)
        return tried if abs(tried - fps) < _ROUNDED else fps


def _needs_floor(base: BaseLoad, trial: Trial) -> bool:
    return base.floor_fps < base.load_fps and not trial.meets(base.goal)
