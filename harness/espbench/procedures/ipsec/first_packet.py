# SPDX-License-Identifier: Apache-2.0
"""Time to first packet (ipsec-meth 10.5): from the first frame sent, which finds no SA, to the first that arrives.

Each trial is made on daemons that were just started and wait for traffic. The frame that arrives first need not be
the one that was sent first: those before it found no SA and are lost, as the draft expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request, Shape
from espbench.plan.keys.ipsec_tests import FirstPacket
from espbench.plan.resolved.cases import Case
from espbench.procedures.at_throughput import load_note, load_of
from espbench.procedures.clauses import common
from espbench.procedures.ipsec.ipsec_common import IpsecSeries, ike_of, noted, restarted
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.summaries import quantity
from espbench.quantities import Key
from espbench.sentences import Code
from espbench.stacks.daemons.sa_events import set_ups
from espbench.terms import Deviation, Reason, Statement, Trial


class FirstPacketCase(IpsecSeries):
    """Makes as many trials as the plan wants, all alike."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, FirstPacket)
        self.settings = case.settings
        self._load, self._no_load = load_of(case, known, case.settings)
        super().__init__(case, known, trials)

    def unfit(self) -> Reason | None:
        return self._no_load

    def wanted(self) -> Request | None:
        if len(self.answers) == self.settings.repeats:
            return None
        return Request(self._load or 0.0, self.settings.trial, "measure", shape=Shape(cold=True))

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        stack = ike_of(maker.setup)
        with restarted(stack, on_demand=True):
            trial = maker.trial(request, ())
            tunnels = set_ups(stack.daemons["home"].events())
        wrong = [] if len(tunnels) == 1 else [Reason.of(Code.NOT_ONE_TUNNEL, found=len(tunnels))]
        return noted(trial, {"tunnel_ms": [round(1e3 * tunnel.seconds, 3) for _, tunnel in tunnels]}, wrong)

    def expected_trials(self) -> int:
        return self.settings.repeats

    def answer(self) -> dict[str, Any]:
        times = [_first_s(trial) for trial in self.answers]
        never = sum(time is None for time in times)
        if never:
            return {
                "status": "UNRESOLVABLE",
                "words": Statement.of(
                    Code.NO_FRAME_WITHIN, never=never, trials=len(times), trial_s=self.settings.trial
                ),
                "reasons": [Reason.of(Code.NO_FRAME_CAME)],
                "load_fps": self._load,
            }
        first = quantity(Key.FIRST_PACKET_TIME, [1e3 * t for t in times if t is not None], digits=3)
        lost = [trial.lost for trial in self.answers]
        return {
            "status": "OK",
            "words": Statement.of(
                Code.FIRST_FRAME_CAME,
                ms=first.value,
                n=first.n,
                least=first.minimum,
                greatest=first.maximum,
            ),
            "load_fps": self._load,
            "warnings": load_note(self.known, self.settings),
            "quantities": [
                first,
                quantity(Key.TUNNEL_TIME, _tunnel_ms(self.answers), digits=3),
                quantity(Key.FRAMES_LOST_MEANWHILE, lost, digits=1),
            ],
        }

    def deviations(self) -> list[Deviation]:
        s = self.settings
        return [
            *([Deviation.from_clause(Code.LOAD_OF_PLAN, "ipsec-meth 10.5")] if s.load is not None else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]


def _first_s(trial: Trial) -> float | None:
    """Return the time from the first frame sent to the first that arrived, in the first direction, s.

    Home's daemon initiates that direction. The first frame sent is the first one lost, and may have left late: the
    daemons have just used the CPUs.
    """
    first = next(iter(trial.per_direction.values()))
    if first.first_rx_s is None or first.first_lost_s is None or first.first_lost_s > first.first_rx_s:
        return first.first_rx_s
    return first.first_rx_s - first.first_lost_s


def _tunnel_ms(trials: Sequence[Trial]) -> list[float]:
    return [ms for trial in trials for ms in trial.measured["tunnel_ms"]]
