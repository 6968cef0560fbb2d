# SPDX-License-Identifier: Apache-2.0
"""The baseline: the same gateways, routes and selectors, and no IPsec (ipsec-meth 9.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from espbench.platforms.base import Side, Testbed
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks import policies
from espbench.stacks.base import SaCounters, Tunnel, xfrm_errors
from espbench.stacks.read_back import policy_mismatches


class Plain:
    """Policies with the tunnel's selectors that demand no ESP: packets pay for the policy look-ups, but not for ESP.

    bare: there are no policies at all, as on a router without IPsec.
    """

    name = "plain"
    encrypts = False

    def __init__(self, bed: Testbed, tunnel: Tunnel, *, bare: bool = False) -> None:
        self._bed = bed
        self._tunnel = tunnel
        self._bare = bare

    @property
    def sas(self) -> int:
        return 0

    def block(self) -> None:
        """Do nothing: the baseline measures cleartext."""

    def establish(self) -> None:
        for gateway in self._bed.gateways.values():
            policies.flush(gateway)
            policies.install(gateway, self._policies(gateway.side))

    def rest(self) -> None:
        """Do nothing: forwarding keeps no state from one trial to the next."""

    def counters(self, side: Side) -> SaCounters:
        return SaCounters(errors=xfrm_errors(self._bed.gateways[side]))

    def security_context(self) -> dict[str, Any]:
        held = {gateway.side: policies.dump_policies(gateway) for gateway in self._bed.gateways.values()}
        mismatches = [
            f"{side}: {problem}"
            for side, texts in held.items()
            for problem in policy_mismatches(self._policies(side), texts)
        ]
        selectors = policies.few((f"{west} ↔ {east}" for west, east in self._tunnel.pairs), at_most=4)
        return {
            "protocol": "none (baseline)",
            "ip_version": self._tunnel.ip_version,
            "tunnels": len(self._tunnel.pairs),
            "selectors": "; ".join(selectors),
            "policies": {side: policies.policy_entries(texts) for side, texts in held.items()},
            "mismatches": policies.few(mismatches),
        }

    def secrets(self) -> list[dict[str, Any]]:
        return []

    def _policies(self, side: Side) -> list[xfrm.Policy]:
        """Return as many policies as with ESP and with the same selectors; none if bare."""
        if self._bare:
            return []
        tunnels = policies.protecting(side, self._tunnel)
        return [
            *(replace(policy, template=None) for policy in tunnels),
            *policies.floor(side, self._tunnel, "allow"),
        ]
