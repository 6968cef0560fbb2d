# SPDX-License-Identifier: Apache-2.0
"""Frame loss while phase 2 is rekeyed (ipsec-meth 11.5): the ESP SAs end several times in a trial at the throughput."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.measure.bench import Request
from espbench.plan.cases import Case
from espbench.plan.ipsec_tests import RekeyLoss
from espbench.procedures.at_throughput import load_note, load_of
from espbench.procedures.clauses import common, shorter, shortest
from espbench.procedures.ipsec_common import IpsecSeries, ike_of, noted, restarted, upset
from espbench.procedures.procedure import Field, Known
from espbench.stacks.sa_events import spans
from espbench.terms import Quantity, Trial

_TRIAL_S = 60.0


class RekeyLossCase(IpsecSeries):
    """One trial, with the lifetime that the test asks for."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, RekeyLoss)
        self.settings = case.settings
        self._load, self._no_load = load_of(case, known, case.settings)
        super().__init__(case, known, trials)

    def unfit(self) -> str:
        return self._no_load

    def wanted(self) -> Request | None:
        return None if self.answers else Request(self._load or 0.0, self.settings.trial, "measure")

    def made(self, request: Request, field: Field) -> Trial:
        stack = ike_of(field.bench)
        home = stack.daemons["home"]
        tunnels = stack.options.tunnels
        with restarted(stack, lifetime_s=self.settings.lifetime_s):
            stack.initiate()
            mark = home.mark()
            trial = field.trial(request, upset())
            rekeys = spans(home.events(mark), 2, "rekeyed")
        # The waits around a trial let SAs end too: more may be seen than end while frames flow.
        least = tunnels * max(1, int(self.settings.trial // self.settings.lifetime_s) - 1)
        wrong = []
        if len(rekeys) < least:
            wrong = [
                f"{len(rekeys)} rekeys were seen, at least {least} belong into {self.settings.trial:g} s"
            ]
        return noted(
            trial, {"rekeys": len(rekeys), "rekey_ms": [round(1e3 * r.seconds, 3) for r in rekeys]}, wrong
        )

    def expected_trials(self) -> int:
        return 1

    def answer(self) -> dict[str, Any]:
        (trial,) = self.answers
        rekeys, lost = trial.measured["rekeys"], trial.lost
        each = f" ({lost / rekeys:.4g} for each)" if lost else ""
        return {
            "status": "OK",
            "words": f"While phase 2 was rekeyed {rekeys} times, {lost:,} of {trial.tx_frames:,} frames were "
            f"lost{each}.",
            "load_fps": self._load,
            "warnings": load_note(self.known, self.settings),
            "quantities": [
                Quantity(name="frame loss ratio", unit="%", value=round(100 * trial.frame_loss_ratio, 6)),
                Quantity(name="frames lost", unit="frames", value=float(lost)),
                Quantity(name="phase 2 rekeys", unit="rekeys", value=float(rekeys)),
                Quantity(name="lifetime of the ESP SAs", unit="s", value=self.settings.lifetime_s),
            ],
        }

    def deviations(self) -> list[str]:
        s = self.settings
        return [
            *shorter("24", "a trial of", shortest(self.answers, s.trial), _TRIAL_S),
            *(
                ["ipsec-meth 11.5: at a load of the plan's, not at the throughput"]
                if s.load is not None
                else []
            ),
            *common(s, self.known.frame_sizes, self.trials),
        ]
