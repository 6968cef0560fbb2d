# SPDX-License-Identifier: Apache-2.0
"""The frame loss rate test (RFC 2544 26.3): from the maximum rate down, until two rates in a row have no loss.

Its points are also the curve of forwarded against offered load, which shows whether a DUT collapses under overload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request
from espbench.plan.keys.rfc2544_tests import FrameLoss
from espbench.plan.resolved.cases import Case
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.procedure import Known
from espbench.procedures.series import Series
from espbench.procedures.summaries import forwarding_fps, loss_by_direction
from espbench.quantities import Key, figure, key_of_way
from espbench.sentences import Code
from espbench.terms import Deviation, Remark, Statement, Trial

_TRIAL_S, _STEP = 60.0, 0.1


class FrameLossCase(Series):
    """Makes one trial at each rate. If one could not be measured, the curve has a gap, and the test has no answer."""

    gaps_allowed = True

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, FrameLoss)
        self.settings = case.settings
        super().__init__(case, known, trials)

    def _load(self, number: int) -> float:
        """Return the rate with this number (0: the maximum), frames/s."""
        return (1 - number * self.settings.step) * self.known.limits.maximum_fps

    @property
    def _rates(self) -> int:
        return int(round(1 / self.settings.step, 6) + 0.999)

    def wanted(self) -> Request | None:
        last_two = self.answers[-2:]
        if len(last_two) == 2 and all(t.validity == "VALID" and not t.lost for t in last_two):
            return None
        if len(self.answers) >= self._rates:
            return None
        return Request(self._load(len(self.answers)), self.settings.trial, "measure")

    def expected_trials(self) -> int:
        return self._rates

    def answer(self) -> dict[str, Any]:
        curve = [_point(trial, self.known.limits.line_rate_fps) for trial in self.answers]
        gaps = [trial for trial in self.answers if trial.validity == "INVALID"]
        if gaps:
            rates = [trial.intended_fps for trial in gaps]
            return {
                "status": "INVALID",
                "words": Statement.of(Code.CURVE_HAS_GAPS, gaps=len(gaps), rates=len(self.answers), at=rates),
                "reasons": [*dict.fromkeys(reason for trial in gaps for reason in trial.reasons)],
                "curve": curve,
            }
        valid = self.answers
        highest = valid[0]
        forwarding = [forwarding_fps(trial) for trial in valid]
        lossless = next((t.offered_fps for t in valid if not t.lost), None)
        kept = [t.offered_fps for t in valid if not t.lost and not t.sustained]
        below = Statement.of(Code.SOME_LOST_AT_ALL)
        if lossless is not None:
            below = Statement.of(Code.NONE_LOST_AT, fps=lossless)
        words = Statement.of(
            Code.LOST_OF_HIGHEST, pct=100 * highest.frame_loss_ratio, fps=highest.offered_fps, below=below
        )
        return {
            "status": "OK",
            "words": words,
            "load_fps": highest.offered_fps,
            "curve": curve,
            "warnings": [Remark.of(Code.STORED_AT_LOAD, fps=fps) for fps in kept],
            "quantities": [
                figure(Key.LOSS_AT_HIGHEST, round(100 * highest.frame_loss_ratio, 6)),
                figure(Key.LOSSLESS_LOAD, lossless),
                figure(Key.MOST_FORWARDED, round(max(forwarding), 3)),
                figure(Key.FORWARDED_AT_HIGHEST, round(forwarding[0], 3)),
            ],
        }

    def deviations(self) -> list[Deviation]:
        s, limits = self.settings, self.known.limits
        below = not limits.is_line_rate(limits.maximum_fps)
        step = (
            [Deviation.from_clause(Code.COARSE_STEPS, "26.3", wanted=100 * _STEP, got=100 * s.step)]
            if s.step > _STEP
            else []
        )
        return [
            *shorter(Code.SHORT_TRIALS, "24", shortest(self.answers, s.trial), _TRIAL_S),
            *step,
            *([Deviation.from_clause(Code.MAXIMUM_DOWN, "26.3")] if below else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]


def _point(trial: Trial, line_rate_fps: float) -> dict[str, Any]:
    """Return one row of the curve; an INVALID trial's row has no figures. line_rate_fps is 0 if it is not known."""
    valid = trial.validity == "VALID"
    home, office = (trial.gateways.get(side) for side in ("home", "office"))
    return {
        "intended_fps": trial.intended_fps,
        "intended_pct_of_line_rate": round(100 * trial.intended_fps / line_rate_fps, 4)
        if line_rate_fps
        else None,
        "offered_fps": trial.offered_fps if valid else None,
        "forwarding_fps": round(forwarding_fps(trial), 3) if valid else None,
        "frame_loss_pct": round(100 * trial.frame_loss_ratio, 6) if valid else None,
        "tx_frames": trial.tx_frames,
        "rx_frames": trial.rx_frames,
        **{key_of_way("frame_loss_pct", way): loss for way, loss in loss_by_direction(trial).items()},
        "cpu_home_pct": home.cpu_pct if home and valid else None,
        "cpu_office_pct": office.cpu_pct if office and valid else None,
        "validity": trial.validity,
        "trial": trial.sequence,
    }
