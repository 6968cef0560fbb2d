# SPDX-License-Identifier: Apache-2.0
"""Rekey rates (ipsec-meth 13.1, 13.2): many SAs that were set up together expire together, for two lifetimes or more.

The rate is the number of rekeys by the time in which at least one was in progress. Daemons spread the expiry of SAs,
and a pause in which no rekey is due must not count as slowness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request, Setup
from espbench.plan.keys.ipsec_tests import RekeyRate
from espbench.plan.resolved.cases import Case
from espbench.platforms.gateway_time import pause
from espbench.procedures.ipsec.ipsec_common import (
    SHORTEST_S,
    IpsecSeries,
    ike_of,
    record,
    restarted,
    show_all_carry,
)
from espbench.procedures.ipsec.watching import backwards, watched
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.summaries import quantity
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.daemons.sa_events import Phase, Span, spans
from espbench.terms import Deviation, Reason, Remark, Statement, Trial

# This is the longest time that the last rekeys may take, s.
_AFTER_S = 3.0


class RekeyRateCase(IpsecSeries):
    """Makes one trial: phase 2 with all CHILD SAs under one IKE SA, then phase 1 with one IKE SA for each tunnel."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, RekeyRate)
        self.settings = case.settings
        super().__init__(case, known, trials)

    def wanted(self) -> Request | None:
        s = self.settings
        return None if self.answers else Request(0.0, 2 * s.lifetimes * s.lifetime, "measure")

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        s, stack = self.settings, ike_of(maker.setup)
        measured: dict[str, Any] = {}
        wrong: list[Reason] = []
        with restarted(stack, s.tunnels, lifetime_s=round(s.lifetime)):
            with watched(maker.setup, wrong):
                measured["phase_2"] = self._seen(maker.setup, stack, 2)
            proof = show_all_carry(maker.setup, self.case, s.tunnels)
        with restarted(stack, s.tunnels, ike_lifetime_s=round(s.lifetime), ike_sa_each=True):
            with watched(maker.setup, wrong):
                measured["phase_1"] = self._seen(maker.setup, stack, 1)
            show_all_carry(maker.setup, self.case, s.tunnels)
        wrong += backwards(Span(*times) for phase in (2, 1) for times in measured[f"phase_{phase}"])
        wrong += [Reason.of(Code.NO_REKEY, phase=phase) for phase in (2, 1) if not measured[f"phase_{phase}"]]
        return record(self.case, request, len(self.trials), measured, reasons=wrong, proof=proof)

    def _seen(self, setup: Setup, stack: IkeStack, phase: Phase) -> list[tuple[float, float]]:
        """Return the begin and end of every rekey within the lifetimes, s from the moment when all SAs were up."""
        home = stack.daemons["home"]
        stack.initiate()
        up = max((e.at_s for e in home.events() if e.what == "established"), default=0.0)
        pause(setup.bed.gateways["home"], self.settings.lifetimes * round(self.settings.lifetime) + _AFTER_S)
        rekeys = spans(home.events(), phase, "rekeyed")
        return [(round(r.begun_s - up, 6), round(r.done_s - up, 6)) for r in rekeys]

    def expected_trials(self) -> int:
        return 1

    def answer(self) -> dict[str, Any]:
        s = self.settings
        due = s.tunnels * s.lifetimes
        quantities, facts, warnings = [], [], []
        for phase in (1, 2):
            seen = [Span(a, b) for a, b in self.answers[0].measured[f"phase_{phase}"]]
            rate = len(seen) / busy_s(seen)
            quantities.append(
                figure(Key.REKEY_RATE, round(rate, 3), n=len(seen), part=f"phase_{phase}", phase=phase)
            )
            facts.append(Statement.of(Code.REKEYS_OF_PHASE, phase=phase, per_s=rate, seen=len(seen), due=due))
            if len(seen) < due:
                warnings.append(Remark.of(Code.REKEYS_MISSED, phase=phase, due=due, seen=len(seen)))
        quantities += [
            quantity(
                Key.REKEY_TIME,
                [1e3 * (b - a) for a, b in self.answers[0].measured[f"phase_{phase}"]],
                part=f"phase_{phase}",
                phase=phase,
            )
            for phase in (1, 2)
        ]
        return {
            "status": "OK",
            "words": Statement.of(
                Code.REKEYED, sas=s.tunnels, lifetime_s=s.lifetime, lifetimes=s.lifetimes, phases=facts
            ),
            "quantities": quantities,
            "warnings": warnings,
        }

    def deviations(self) -> list[Deviation]:
        return []


def busy_s(parts: Sequence[Span]) -> float:
    """Return for how long at least one of the spans was in progress, s."""
    total, until = 0.0, float("-inf")
    for part in sorted(parts, key=lambda p: p.begun_s):
        total += max(0.0, part.done_s - max(part.begun_s, until))
        until = max(until, part.done_s)
    return max(total, SHORTEST_S)
