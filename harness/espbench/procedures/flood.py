# SPDX-License-Identifier: Apache-2.0
"""What a DUT forwards of all that the line carries, beside its throughput: whether an overload costs it anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.bench import Request
from espbench.plan.cases import Case
from espbench.plan.rfc2544_tests import Flood
from espbench.procedures.at_throughput import bound_note, throughput_of
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.procedure import Known
from espbench.procedures.quantities import by_direction, forwarding_fps
from espbench.procedures.series import Series
from espbench.terms import Quantity, Trial, layer2_mbps

_TRIAL_S = 60.0
# At line rate the throughput is the load, but for what the tester did not quite offer.
_A_FLOOD = 0.99


class FloodCase(Series):
    """One trial at the highest load."""

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
        found, why = throughput_of(self.known, self.settings.loss_goal)
        if found and trial.intended_fps < _A_FLOOD * found:
            why = f"the load is below the throughput of {found:,.0f} frames/s, which is no flood"
        ratio = forwarding / found if found and not why else None
        beside = (
            f"{ratio:.3g} times its throughput" if ratio is not None else f"with nothing to compare: {why}"
        )
        words = f"Of {trial.offered_fps:,.0f} frames/s it forwarded {forwarding:,.0f}, {beside}."
        mbps = layer2_mbps(forwarding, self.case.mean_frame_size)
        return {
            "status": "OK",
            "words": words,
            "load_fps": trial.offered_fps,
            "quantities": [
                Quantity(name="forwarding rate under flood", unit="frames/s", value=round(forwarding, 3)),
                Quantity(name="forwarding rate under flood, Mbps", unit="Mbps", value=round(mbps, 4)),
                Quantity(
                    name="of the throughput", unit="1", value=None if ratio is None else round(ratio, 4)
                ),
                Quantity(name="throughput", unit="frames/s", value=found),
                Quantity(name="frame loss", unit="%", value=round(100 * trial.frame_loss_ratio, 6)),
                *by_direction(
                    "forwarding rate",
                    "frames/s",
                    [trial],
                    lambda d: (d.rx_frames - (d.backlog_frames or 0)) / trial.duration_s,
                ),
            ],
            "warnings": bound_note(self.known, self.settings.loss_goal)
            if ratio is not None
            else [f"no ratio to the throughput: {why}"],
        }

    def deviations(self) -> list[str]:
        s, limits = self.settings, self.known.limits
        below = not limits.is_line_rate(limits.maximum_fps)
        return [
            *shorter("24", "trials of", shortest(self.answers, s.trial), _TRIAL_S),
            *(["the load is the tester's or the plan's maximum, not the line rate"] if below else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]
