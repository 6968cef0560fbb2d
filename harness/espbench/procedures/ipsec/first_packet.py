# SPDX-License-Identifier: Apache-2.0
"""Time to first packet (ipsec-meth 10.5): from the first frame sent, for which there is no SA, to the first that
arrives.

Each trial starts with daemons that were just started and wait for traffic, or that have deleted their idle SAs. The
frame that arrives first need not be the one that was sent first: earlier frames have no SA and are lost, as the draft
expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request, Setup, Shape
from espbench.plan.keys.ipsec_tests import FirstPacket
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import SIDES
from espbench.platforms.gateway_time import now_s, pause
from espbench.procedures.at_throughput import load_note, load_of
from espbench.procedures.clauses import common
from espbench.procedures.ipsec.ipsec_common import IpsecSeries, ike_of, restarted
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.series import noted
from espbench.procedures.summaries import quantity
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.stacks.daemons.sa_events import set_ups, spans
from espbench.terms import Deviation, Reason, Statement, Trial

# The kernel records the last use of an SA only in whole seconds, so SAs may be deleted late.
_LATE_S = 5.0
_LOOK_S = 0.5


class FirstPacketCase(IpsecSeries):
    """Makes `repeats` trials, all alike."""

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
        home = stack.daemons["home"]
        measured: dict[str, Any] = {}
        wrong: list[Reason] = []
        with restarted(stack, on_demand=True, idle_s=self.settings.idle):
            if self.settings.idle:
                stack.initiate()
                measured["idle_s"] = self._until_deleted(maker.setup)
                wrong += [Reason.of(Code.SAS_KEPT, idle_s=self.settings.idle)] * (measured["idle_s"] is None)
            mark = home.mark() if self.settings.idle else 0
            trial = maker.trial(request, ())
            events = home.events(mark)
        # The IKE SA outlives its idle CHILD SAs, so only those are negotiated again.
        tunnels = spans(events, 2, "established") if self.settings.idle else [t for _, t in set_ups(events)]
        measured["tunnel_ms"] = [round(1e3 * tunnel.seconds, 3) for tunnel in tunnels]
        if len(tunnels) != 1:
            wrong.append(Reason.of(Code.NOT_ONE_TUNNEL, found=len(tunnels)))
        return noted(trial, measured, wrong)

    def _until_deleted(self, setup: Setup) -> float | None:
        """Return the time until neither gateway has an SA, s; None if SAs remain long after the timeout."""
        began_s = now_s(setup.bed.gateways["home"])
        while any(ike_of(setup).counters(side).spis for side in SIDES):
            waited_s = now_s(setup.bed.gateways["home"]) - began_s
            if waited_s > self.settings.idle + _LATE_S:
                return None
            pause(setup.bed.gateways["home"], _LOOK_S)
        return round(now_s(setup.bed.gateways["home"]) - began_s, 3)

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
                *([figure(Key.IDLE_TIMEOUT, self.settings.idle)] if self.settings.idle else []),
            ],
        }

    def deviations(self) -> list[Deviation]:
        s = self.settings
        return [
            *([Deviation.from_clause(Code.LOAD_OF_PLAN, "ipsec-meth 10.5")] if s.load is not None else []),
            *common(s, self.known.frame_sizes, self.trials),
        ]


def _first_s(trial: Trial) -> float | None:
    """Return the time from the first frame sent to the first that arrived, in the first direction, s; None if none
    arrived.

    Home's daemon initiates that direction. The first frame sent is the first one lost, and may have left late,
    because the daemons have just used the CPUs.
    """
    first = next(iter(trial.per_direction.values()))
    if first.first_rx_s is None or first.first_lost_s is None or first.first_lost_s > first.first_rx_s:
        return first.first_rx_s
    return first.first_rx_s - first.first_lost_s


def _tunnel_ms(trials: Sequence[Trial]) -> list[float]:
    return [ms for trial in trials for ms in trial.measured["tunnel_ms"]]
