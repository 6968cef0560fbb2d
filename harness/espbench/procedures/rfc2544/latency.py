# SPDX-License-Identifier: Apache-2.0
"""The latency test (RFC 2544 26.2): a tagged frame in mid-stream at the throughput, repeated; the mean is reported.

The result also has the latencies of all frames, whose percentiles RFC 2544 does not ask for. The tester measures them
in software, from just before a frame is given to one port until it is received from the other one. So they include
the time on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request, Shape
from espbench.plan.keys.rfc2544_tests import Latency
from espbench.plan.resolved.cases import Case
from espbench.procedures.at_throughput import AtThroughputSeries, load_note, throughput_deviations
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.procedure import Known
from espbench.procedures.summaries import by_direction, quantity, stored
from espbench.quantities import Key
from espbench.sentences import Code
from espbench.terms import Deviation, Reason, Remark, Statement, Trial

_STREAM_S, _TAG_S, _REPEATS = 120.0, 60.0, 20
_OF_ALL_FRAMES = {
    Key.LATENCY_LEAST: "min",
    Key.LATENCY_MEAN: "mean",
    Key.LATENCY_P50: "p50",
    Key.LATENCY_P90: "p90",
    Key.LATENCY_P99: "p99",
    Key.LATENCY_P999: "p999",
    Key.LATENCY_GREATEST: "max",
}


class LatencyCase(AtThroughputSeries):
    """Makes `repeats` trials, all alike."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Latency)
        self.settings = case.settings
        super().__init__(case, case.settings, known, trials)

    @property
    def tag_at_s(self) -> float:
        """The time at which the tagged frame leaves, from the start of the trial, s."""
        given = self.settings.tag_at
        return self.settings.trial / 2 if given is None else given

    def wanted(self) -> Request | None:
        if len(self.answers) == self.settings.repeats or self.load_fps is None:
            return None
        return Request(self.load_fps, self.settings.trial, "measure", shape=Shape(tag_at_s=self.tag_at_s))

    def expected_trials(self) -> int:
        return self.settings.repeats

    def answer(self) -> dict[str, Any]:
        tagged = [d.tagged_us for trial in self.answers for d in trial.per_direction.values()]
        first = quantity(Key.LATENCY_TAGGED, tagged)
        lost_tags = len([value for value in tagged if value is None])
        lossy = [trial for trial in self.answers if trial.lost]
        warnings = [*load_note(self.known, self.settings), *stored(self.answers)]
        if lossy:
            lost = sum(trial.lost for trial in lossy)
            warnings.append(
                Remark.of(Code.LOST_AT_LOAD, lossy=len(lossy), trials=len(self.answers), lost=lost)
            )
        if first.value is None:
            return {
                "status": "INVALID",
                "words": Statement.of(Code.NO_TAG_ARRIVED),
                "reasons": [Reason.of(Code.TAGS_LOST)],
                "load_fps": self.load_fps,
                "warnings": warnings,
            }
        spread = Statement.of(Code.SPREAD_US, least=first.minimum, greatest=first.maximum)
        words = Statement.of(
            Code.TAG_TOOK,
            us=first.value,
            n=first.n,
            spread=spread if first.n > 1 else None,
            fps=self.load_fps,
            lost=lost_tags,
        )
        return {
            "status": "OK",
            "words": words,
            "load_fps": self.load_fps,
            "quantities": [
                first,
                *by_direction(Key.LATENCY_TAGGED, self.answers, lambda d: d.tagged_us),
                *by_direction(Key.LATENCY_P50, self.answers, lambda d: d.latency_us.p50),
                *by_direction(Key.LATENCY_P99, self.answers, lambda d: d.latency_us.p99),
                *(
                    quantity(key, [getattr(trial.latency_us, name) for trial in self.answers])
                    for key, name in _OF_ALL_FRAMES.items()
                ),
            ],
            "warnings": warnings,
        }

    @property
    def _repeats(self) -> int:
        """The number of tagged frames that arrived, in the direction with the fewest; before the first trial, the
        plan's number.
        """
        arrived = {way: 0 for trial in self.answers for way in trial.per_direction}
        for trial in self.answers:
            for way, reading in trial.per_direction.items():
                arrived[way] += reading.tagged_us is not None
        return min(arrived.values(), default=self.settings.repeats)

    def deviations(self) -> list[Deviation]:
        s = self.settings
        of_load = throughput_deviations(self.known, s.loss_goal, "26.2")
        if s.load is not None:
            of_load = [Deviation.from_clause(Code.LOAD_OF_PLAN, "26.2")]
        return [
            *shorter(Code.SHORT_STREAMS, "26.2", shortest(self.answers, s.trial), _STREAM_S),
            *shorter(Code.EARLY_TAGS, "26.2", self.tag_at_s, _TAG_S),
            *shorter(Code.FEW_REPEATS, "26.2", self._repeats, _REPEATS),
            *of_load,
            *common(s, self.known.frame_sizes, self.trials),
        ]
