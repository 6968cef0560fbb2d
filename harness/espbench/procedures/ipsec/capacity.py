# SPDX-License-Identifier: Apache-2.0
"""Tunnel and SA capacity (ipsec-meth 8.1, 8.2): adds tunnels or SAs step by step; all must carry traffic, none may be
rekeyed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from espbench.measure.inputs.setup import Request, Setup
from espbench.measure.proof.readiness import InClear, NotReady
from espbench.plan.keys.ipsec_tests import Capacity
from espbench.plan.resolved.cases import Case
from espbench.platforms.gateway_time import now_s
from espbench.procedures.ipsec.ipsec_common import IpsecSeries, ike_of, record, restarted, show_all_carry
from espbench.procedures.ipsec.watching import watched
from espbench.procedures.procedure import Known, TrialMaker
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.stacks.daemons.sa_events import spans
from espbench.terms import Deviation, Reason, Remark, Statement, Trial


class CapacityCase(IpsecSeries):
    """Makes one trial, with as many steps as it takes."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, Capacity)
        self.settings = case.settings
        super().__init__(case, known, trials)

    def wanted(self) -> Request | None:
        return None if self.answers else Request(0.0, self.settings.trial, "measure")

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        s, stack = self.settings, ike_of(maker.setup)
        home = stack.daemons["home"]
        steps: list[dict[str, Any]] = []
        proof: dict[str, Any] = {}
        refused, wrong = "", list[Reason]()
        with restarted(stack, s.limit, ike_sa_each=s.of == "tunnels"):
            for have in range(0, s.limit, s.step):
                wanted = min(have + s.step, s.limit)
                disturbed: list[Reason] = []
                with watched(maker.setup, disturbed):
                    took_s, shown, refused = self._step(maker.setup, range(have, wanted))
                if refused:
                    wrong += disturbed  # the host may be why it was refused
                    break
                proof = shown
                memory = {f"memory {side}_MiB": mib for side, mib in _available_mib(maker.setup).items()}
                steps.append({self.settings.of: wanted, "step_s": round(took_s, 3), **memory})
            rekeyed = [*spans(home.events(), 1, "rekeyed"), *spans(home.events(), 2, "rekeyed")]
        wrong += [Reason.of(Code.REKEYED_MEANWHILE, rekeys=len(rekeyed))] if rekeyed else []
        if not steps:
            wrong.append(Reason.of(Code.NONE_CAME_UP, wanted=min(s.step, s.limit), why=refused))
        measured = {"steps": steps, "refused": refused}
        return record(self.case, request, len(self.trials), measured, reasons=wrong, proof=proof)

    def _step(self, setup: Setup, numbers: range) -> tuple[float, dict[str, Any], str]:
        """Bring these tunnels up and show that all up to then carry traffic; return the time until they were up, s, the
        proof, and why the step is refused, else an empty text.

        Raise InClear, or NotReady if the tester is the cause.
        """
        s, home, gateway = self.settings, ike_of(setup).daemons["home"], setup.bed.gateways["home"]
        began_s = now_s(gateway)
        try:
            home.bring_up(numbers, s.trial)
            took_s = now_s(gateway) - began_s
            if took_s > s.trial:
                return took_s, {}, f"the step took {took_s:.1f} s, longer than trial ({s.trial:g} s)"
            return took_s, show_all_carry(setup, self.case, numbers.stop), ""
        except (NegotiationFailed, NotReady) as error:
            if isinstance(error, InClear) or error.code == Code.PROBES_NOT_SENT:
                raise
            return now_s(gateway) - began_s, {}, str(error) or "no reason given"

    def expected_trials(self) -> int:
        return 1

    def remaining_s(self, *, waits: bool = True) -> float:
        return 0.0 if self.answers else 0.2 * self.settings.limit

    def answer(self) -> dict[str, Any]:
        s = self.settings
        steps, refused = (self.answers[0].measured[key] for key in ("steps", "refused"))
        most = steps[-1][s.of]
        what = Statement.of(Code.TUNNELS if s.of == "tunnels" else Code.SA_PAIRS)
        words = Statement.of(Code.CARRIED_ALL, most=most, what=what)
        if refused:
            following = min(most + s.step, s.limit)
            words = Statement.of(Code.CARRIED_UNTIL, most=most, what=what, next=following, refused=refused)
        return {
            "status": "OK",
            "words": words,
            "quantities": [
                figure(Key.TUNNELS_CARRIED if s.of == "tunnels" else Key.SA_PAIRS_CARRIED, float(most))
            ],
            "curve": steps,
            "warnings": [] if refused else [Remark.of(Code.PLAN_LIMIT_REACHED, limit=s.limit)],
        }

    def deviations(self) -> list[Deviation]:
        return []


def _available_mib(setup: Setup) -> dict[str, float]:
    """Return the memory that is still available on each gateway (MemAvailable), MiB."""
    available = {}
    for side, gateway in setup.bed.gateways.items():
        text = gateway.read(["/proc/meminfo"])["/proc/meminfo"] or ""
        if kib := re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE):
            available[str(side)] = round(int(kib[1]) / 1024, 1)
    return available
