# SPDX-License-Identifier: Apache-2.0
"""The latency test (RFC 2544 26.2): a tagged frame in mid-stream at the throughput, repeated; the mean is reported.

Beside it stand the latencies of all frames, whose percentiles RFC 2544 does not ask for. They are of a tester in
software: from before the frame is given to the port until it was taken from the other one, the time on the wire
included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.bench import Request, Shape
from espbench.plan.cases import Case
from espbench.plan.rfc2544_tests import Latency
from espbench.procedures.at_throughput import load_note, load_of
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.procedure import Known
from espbench.procedures.quantities import by_direction, quantity, stored
from espbench.procedures.series import Series
from espbench.terms import Trial

_STREAM_S, _TAG_S, _REPEATS = 120.0, 60.0, 20


class LatencyCase(Series):
    """As many trials as the plan wants, all alike."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Latency)
        self.settings = case.settings
        self.load_fps, self._no_load = load_of(case, known, case.settings)
        super().__init__(case, known, trials)

    @property
    def warm_up_fps(self) -> float:
        return self.load_fps or self.known.limits.minimum_fps

    @property
    def tag_at_s(self) -> float:
        """When the tagged frame leaves."""
        given = self.settings.tag_at
        return self.settings.trial / 2 if given is None else given

    def unfit(self) -> str:
        return self._no_load

    def wanted(self) -> Request | None:
        if len(self.answers) == self.settings.repeats or self.load_fps is None:
            return None
        return Request(self.load_fps, self.settings.trial, "measure", shape=Shape(tag_at_s=self.tag_at_s))

    def expected_trials(self) -> int:
        return self.settings.repeats

    def answer(self) -> dict[str, Any]:
        tagged = [d.tagged_us for trial in self.answers for d in trial.per_direction.values()]
        first = quantity("latency, tagged frame", "µs", tagged)
        lost_tags = len([value for value in tagged if value is None])
        lossy = [trial for trial in self.answers if trial.lost]
        warnings = [*load_note(self.known, self.settings), *stored(self.answers)]
        if lossy:
            lost = sum(trial.lost for trial in lossy)
            warnings.append(
                f"frames were lost at this load in {len(lossy)} of {len(self.answers)} trials ({lost:,} in all): "
                "it is not the throughput of trials as long as these"
            )
        if first.value is None:
            return {
                "status": "INVALID",
                "words": "INVALID: no tagged frame arrived.",
                "reasons": ["every tagged frame was lost, or the generator cannot tag"],
                "load_fps": self.load_fps,
                "warnings": warnings,
            }
        spread = f", from {first.minimum:g} to {first.maximum:g} µs" if first.n > 1 else ""
        words = (
            f"A tagged frame took {first.value:g} µs (mean of {first.n}{spread})"
            f" at {self.load_fps:,.0f} frames/s" + (f"; {lost_tags} were lost." if lost_tags else ".")
        )
        names = {"min": "least", "mean": "mean", "p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9"}
        return {
            "status": "OK",
            "words": words,
            "load_fps": self.load_fps,
            "quantities": [
                first,
                *by_direction("latency, tagged frame", "µs", self.answers, lambda d: d.tagged_us),
                *by_direction("latency, p50", "µs", self.answers, lambda d: d.latency_us.p50),
                *by_direction("latency, p99", "µs", self.answers, lambda d: d.latency_us.p99),
                *(
                    quantity(f"latency, {told}", "µs", [getattr(t.latency_us, key) for t in self.answers])
                    for key, told in (*names.items(), ("max", "greatest"))
                ),
            ],
            "warnings": warnings,
        }

    def deviations(self) -> list[str]:
        s = self.settings
        return [
            *shorter("26.2", "streams of", shortest(self.answers, s.trial), _STREAM_S),
            *shorter("26.2", "tagged frames after", self.tag_at_s, _TAG_S),
            *shorter("26.2", "repeated", s.repeats, _REPEATS, " times"),
            *(["26.2: at a load of the plan's, not at the throughput"] if s.load is not None else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]
