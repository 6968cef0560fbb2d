# SPDX-License-Identifier: Apache-2.0
"""The rate of public-key operations on both gateways, one after the other: no traffic, no IKE, only the CPU."""

from __future__ import annotations

from itertools import chain
from typing import Any

from espbench.errors import EspbenchError
from espbench.measure.inputs.setup import Request
from espbench.plan.keys.ipsec_tests import PublicKey
from espbench.platforms.base import SIDES
from espbench.procedures.ipsec.ipsec_common import IpsecSeries, record
from espbench.procedures.procedure import TrialMaker
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.stacks.daemons.public_key_speed import OPERATIONS, absent, speed
from espbench.terms import Deviation, Reason, Remark, Statement, Trial


class PublicKeyCase(IpsecSeries):
    """Makes one trial."""

    def wanted(self) -> Request | None:
        return None if self.answers else Request(0.0, self._seconds, "measure")

    @property
    def _seconds(self) -> float:
        assert isinstance(self.case.settings, PublicKey)
        return self.case.settings.trial

    def made(self, request: Request, maker: TrialMaker) -> Trial:
        gateways = maker.setup.bed.gateways
        try:
            rates = {
                side: {
                    o.name: o.per_s for o in speed(gateways[side], tuple(OPERATIONS), int(request.duration_s))
                }
                for side in SIDES
            }
        except EspbenchError as error:
            return record(
                self.case, request, len(self.trials), {}, reasons=[Reason.of(error.code, text=str(error))]
            )
        return record(self.case, request, len(self.trials), {"operations_per_s": rates})

    def expected_trials(self) -> int:
        return 1

    def remaining_s(self, *, waits: bool = True) -> float:
        return 2 * 2 * len(OPERATIONS) * self._seconds if not self.answers else 0.0

    def answer(self) -> dict[str, Any]:
        rates = self.answers[0].measured["operations_per_s"]
        quantities = [
            figure(
                Key.PUBLIC_KEY_RATE, round(per_s, 3), part=f"{name}/{side}", operation=name, side=str(side)
            )
            for name in dict.fromkeys([*rates["home"], *rates["office"]])
            for side in SIDES
            if (per_s := rates[side].get(name))
        ]
        sign = rates["home"].get("RSA-2048 sign")
        return {
            "status": "OK",
            "words": Statement.of(Code.SIGNS, per_s=sign)
            if sign
            else Statement.of(Code.PUBLIC_KEY_OPERATIONS),
            "quantities": quantities,
            "warnings": [
                Remark.of(Code.NO_PUBLIC_KEY_RATES, side=str(side), operations=unmeasured)
                for side in SIDES
                if (unmeasured := absent(chain.from_iterable(OPERATIONS.values()), rates[side]))
            ],
        }

    def deviations(self) -> list[Deviation]:
        return []
