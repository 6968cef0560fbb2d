# SPDX-License-Identifier: Apache-2.0
"""Set-up rates (ipsec-meth 12.1 to 12.3), from the initiating daemon's log, and the cost of their public-key
operations.

Tunnels with one IKE SA each give the rates of tunnels and of phase 1; CHILD SAs under one IKE SA give the rate of
phase 2. If they are set up one at a time, the rate assumes that they follow each other without a pause: the time
between two tunnels is the caller's, not the gateway's. In IKEv2 the first CHILD SA comes with the IKE SA (RFC 7296
1.2). So phase 1 ends when the peer is authenticated, and the tunnel is up when its ESP SAs are installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.errors import EspbenchError
from espbench.measure.inputs.setup import Request, Setup
from espbench.plan.keys.ipsec_tests import SetUpRate
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import SIDES
from espbench.procedures.clauses import shorter
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
from espbench.stacks.daemons.public_key_speed import absent, cpus, of_set_up, speed
from espbench.stacks.daemons.sa_events import Span, set_ups, spans
from espbench.terms import Deviation, Quantity, Reason, Remark, Statement, Trial

LEAST = 100
_PER_TUNNEL_S = 1.0


class SetUpRateCase(IpsecSeries):
    """Makes one trial: all tunnels, then all CHILD SAs."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, SetUpRate)
        self.settings = case.settings
        super().__init__(case, known, trials)

    def wanted(self) -> Request | None:
        return None if self.answers else Request(0.0, _PER_TUNNEL_S * self.settings.tunnels, "measure")

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        stack, wanted = ike_of(maker.setup), self.settings.tunnels
        home = stack.daemons["home"]
        # If all are set up together, the first tunnel is extra and comes before the others, because it brings
        # the IKE SA that they share.
        first = int(self.settings.together)
        wrong: list[Reason] = []
        with restarted(stack, wanted + first, ike_sa_each=True):
            with watched(maker.setup, wrong):
                self._bring_up(stack, range(first, wanted + first))
            proof = show_all_carry(maker.setup, self.case, wanted + first)
            tunnels = set_ups(home.events())[first:]
        with restarted(stack, wanted + 1):
            with watched(maker.setup, wrong):
                self._bring_up(stack, range(1, wanted + 1))
            show_all_carry(maker.setup, self.case, wanted + 1)
            children = spans(home.events(), 2, "established")
        measured = {
            "phase_1": _spans([phase_1 for phase_1, _ in tunnels]),
            "tunnel": _spans([tunnel for _, tunnel in tunnels]),
            "phase_2": _spans(children),
            "public_key": self._public_key(maker.setup, stack) if self.settings.public_key else {},
        }
        wrong += backwards([*children, *(span for both in tunnels for span in both)])
        wrong += [
            Reason.of(code, found=negotiated, wanted=wanted)
            for code, negotiated in (
                (Code.TUNNELS_BY_THEMSELVES, len(tunnels)),
                (Code.CHILD_SAS_BY_THEMSELVES, len(children)),
            )
            if negotiated != wanted
        ]
        return record(self.case, request, len(self.trials), measured, reasons=wrong, proof=proof)

    def _bring_up(self, stack: IkeStack, numbers: range) -> None:
        if self.settings.together:
            stack.initiate()
            return
        home = stack.daemons["home"]
        if numbers.start:
            home.bring_up(range(numbers.start), _PER_TUNNEL_S + 20)
        home.bring_up(numbers, _PER_TUNNEL_S * len(numbers) + 20)

    def _public_key(self, setup: Setup, stack: IkeStack) -> dict[str, Any]:
        """Return the CPU time that the public-key operations of one set-up take on each gateway, ms, and the number of
        each gateway's CPUs if tunnels are set up together.
        """
        algorithms, needed = of_set_up(stack.options.ike, stack.options.auth, stack.options.certificate)
        costs: dict[str, Any] = {"operations": list(needed)}
        for side in SIDES:
            try:
                operations = speed(setup.bed.gateways[side], algorithms, 1)
                if self.settings.together:
                    costs.setdefault("cpus", {})[side] = cpus(setup.bed.gateways[side])
            except EspbenchError as error:  # the set-up rates do not depend on it
                return {"missing": str(error)}
            ms = {o.name: o.ms for o in operations}
            if unmeasured := absent(needed, ms):
                return {"missing": f"{side}: openssl speed gave no rate of {', '.join(unmeasured)}"}
            costs[side] = round(sum(ms[name] for name in needed), 4)
        return costs

    def expected_trials(self) -> int:
        return 1

    def remaining_s(self, *, waits: bool = True) -> float:
        return 0.0 if self.answers else 0.3 * self.settings.tunnels + 20

    def answer(self) -> dict[str, Any]:
        (trial,) = self.answers
        rates = {name: self._rate(trial.measured[name]) for name in ("tunnel", "phase_1", "phase_2")}
        how = Statement.of(Code.TOGETHER if self.settings.together else Code.ONE_AT_A_TIME)
        bound_words = None
        shown = {"tunnel": "tunnel", "phase_1": "phase 1", "phase_2": "phase 2"}
        quantities = [
            figure(
                Key.SET_UP_RATE,
                round(rate, 3),
                n=self.settings.tunnels,
                part=name,
                what=shown[name],
                of=unit,
            )
            for (name, rate), unit in zip(rates.items(), ("tunnels", "IKE SAs", "CHILD SAs"), strict=True)
        ]
        quantities += [
            quantity(
                Key.SET_UP_TIME,
                [1e3 * (b - a) for a, b in trial.measured[name]],
                part=name,
                what=shown[name],
            )
            for name in rates
        ]
        bound = trial.measured["public_key"]
        missing = self._without_bound(bound, rates["tunnel"])
        if bound and not missing:
            more, bound_words = self._bound(bound, rates["tunnel"])
            quantities += more
        words = Statement.of(Code.SET_UP, **rates, how=how, n=self.settings.tunnels, bound=bound_words)
        return {"status": "OK", "words": words, "quantities": quantities, "warnings": missing}

    def _rate(self, parts: list[tuple[float, float]]) -> float:
        """Return the rate of set-ups per second: one at a time, by their own durations; together, from the first
        begin to the last end.
        """
        if self.settings.together:
            busy_s = max(b for _, b in parts) - min(a for a, _ in parts)
        else:
            busy_s = sum(b - a for a, b in parts)
        return len(parts) / max(busy_s, SHORTEST_S)

    def _without_bound(self, bound: dict[str, Any], rate: float) -> list[Remark]:
        """Return why the public-key operations do not bound the rate of tunnels; empty if they do, or if there are
        none.
        """
        if not bound:
            return []
        if "missing" in bound:
            return [Remark.of(Code.NO_PUBLIC_KEY_BOUND, why=bound["missing"])]
        limit = self._limit(bound)
        if rate <= limit:
            return []
        return [Remark.of(Code.FASTER_THAN_PUBLIC_KEY, per_s=rate, limit_per_s=limit)]

    def _limit(self, bound: dict[str, Any]) -> float:
        """Return the rate of tunnels that the public-key operations allow, 1/s.

        The ends wait for each other if tunnels are set up one at a time. With many at once, each end works on other
        tunnels meanwhile, on all of its CPUs.
        """
        if not self.settings.together:
            return float(1e3 / (bound["home"] + bound["office"]))
        of_cpus = bound.get("cpus", {})  # records of earlier versions have none
        return float(min(1e3 * of_cpus.get(side, 1) / bound[side] for side in SIDES))

    def _bound(self, bound: dict[str, Any], rate: float) -> tuple[list[Quantity], Statement]:
        """Return the set-up rate that the public-key operations allow, and the share of time that is left for
        everything else at this rate.
        """
        limit = self._limit(bound)
        share = 100 * (1 - rate / limit)
        quantities = [
            figure(Key.PUBLIC_KEY_TIME, bound[side], part=str(side), side=str(side)) for side in SIDES
        ]
        quantities.append(figure(Key.PUBLIC_KEY_BOUND, round(limit, 3)))
        quantities.append(figure(Key.PROTOCOL_OVERHEAD, round(share, 2)))
        operations = list(dict.fromkeys(bound["operations"]))
        return quantities, Statement.of(Code.PUBLIC_KEY_ALLOWS, operations=operations, per_s=limit, pct=share)

    def deviations(self) -> list[Deviation]:
        s = self.settings
        return [
            *shorter(Code.FEW_TUNNELS, "ipsec-meth 12", s.tunnels, LEAST),
            *([Deviation.from_clause(Code.ALL_AT_ONCE, "ipsec-meth 12")] if s.together else []),
        ]


def _spans(parts: Sequence[Span]) -> list[tuple[float, float]]:
    """Return the begin and end of each span, from the begin of the first, s."""
    start = min((part.begun_s for part in parts), default=0.0)
    return [(round(p.begun_s - start, 6), round(p.done_s - start, 6)) for p in parts]
