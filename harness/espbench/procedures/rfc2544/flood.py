# SPDX-License-Identifier: Apache-2.0
"""Measures the forwarding rate under a flood, at the highest load: it shows whether overload lowers the throughput."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request
from espbench.plan.keys.rfc2544_tests import Flood
from espbench.plan.resolved.cases import Case
from espbench.procedures.at_throughput import bound_note, is_bound, throughput_of
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.procedure import Known
from espbench.procedures.series import Series
from espbench.procedures.summaries import by_direction, forwarding_fps, forwarding_of_fps
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.terms import Deviation, Reason, Remark, Statement, Trial, layer2_mbps

_TRIAL_S = 60.0
# If the throughput is the line rate, it equals the load except for a small part that the tester did not
# offer.
_A_FLOOD = 0.99


class FloodCase(Series):
    """Makes one trial at the highest load."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Flood)
        self.settings = case.settings
        super().__init__(case, known, trials)

    def wanted(self) -> Request | None:
        if self.answers:
            return None
        return Request(self.known.limits.maximum_fps, self.settings.trial, "measure")

    def expected_trials(self) -> int:
        return 1

    def answer(self) -> dict[str, Any]:
        (trial,) = self.answers
        forwarding = forwarding_fps(trial)
        throughput, why = throughput_of(self.known, self.settings.loss_goal)
        if throughput and trial.intended_fps < _A_FLOOD * throughput:
            why = Reason.of(Code.NO_FLOOD, fps=throughput)
        ratio = forwarding / throughput if throughput and not why else None
        # A throughput that may be higher bounds the ratio only from above.
        at_most = is_bound(self.known, self.settings.loss_goal)
        beside = Statement.of(Code.NOTHING_BESIDE, why=why)
        if ratio is not None:
            code = Code.AT_MOST_TIMES_THROUGHPUT if at_most else Code.TIMES_THROUGHPUT
            beside = Statement.of(code, ratio=ratio)
        words = Statement.of(
            Code.FORWARDED_OF, fps=trial.offered_fps, forwarded_fps=forwarding, beside=beside
        )
        mbps = layer2_mbps(forwarding, self.case.mean_frame_size)
        return {
            "status": "OK",
            "words": words,
            "load_fps": trial.offered_fps,
            "quantities": [
                figure(Key.FLOOD_FORWARDING, round(forwarding, 3)),
                figure(Key.FLOOD_MBPS, round(mbps, 4)),
                figure(Key.OF_THROUGHPUT, None if ratio is None or at_most else round(ratio, 4)),
                figure(Key.THROUGHPUT, throughput),
                figure(Key.FRAME_LOSS, round(100 * trial.frame_loss_ratio, 6)),
                *by_direction(Key.FORWARDING, [trial], lambda d: forwarding_of_fps(trial, d)),
            ],
            "warnings": bound_note(self.known, self.settings.loss_goal)
            if ratio is not None
            else [Remark.of(Code.NO_RATIO, why=why)],
        }

    def deviations(self) -> list[Deviation]:
        s, limits = self.settings, self.known.limits
        below = not limits.is_line_rate(limits.maximum_fps)
        return [
            *shorter(Code.SHORT_TRIALS, "24", shortest(self.answers, s.trial), _TRIAL_S),
            *([Deviation.from_clause(Code.MAXIMUM_NOT_LINE_RATE, "")] if below else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]
