# SPDX-License-Identifier: Apache-2.0
"""The baseline: the same gateways, routes and selectors, and no IPsec (ipsec-meth 9.1)."""

from __future__ import annotations

from typing import Any

from espbench.platforms.base import Side, Testbed
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import SaCounters, Tunnel, both, xfrm_errors
from espbench.stacks.policies import SideView, dump_policies, few, flush, policy_entries


class Plain:
    """Policies with the tunnel's selectors that demand nothing: the look-ups cost, the ESP is not there."""

    name = "plain"
    encrypts = False

    def __init__(self, bed: Testbed, tunnel: Tunnel) -> None:
        self._bed = bed
        self._tunnel = tunnel

    def block(self) -> None:
        """Nothing to forbid: cleartext is what is measured."""

    def establish(self) -> None:
        for gateway, _ in both(self._bed):
            flush(gateway)
            policies = [
                policy
                for view in SideView.each(gateway.side, self._tunnel)
                for policy in (
                    xfrm.Policy(view.outbound, "out"),
                    xfrm.Policy(view.inbound, "in"),
                    xfrm.Policy(view.inbound, "fwd"),
                )
            ]
            gateway.netlink(xfrm.NETLINK_XFRM, [xfrm.new_policy(policy) for policy in policies])

    def rest(self) -> None:
        """Forwarding keeps nothing from one trial to the next."""

    def counters(self, side: Side) -> SaCounters:
        return SaCounters(errors=xfrm_errors(self._bed.gateways[side]))

    def security_context(self) -> dict[str, Any]:
        policies = {gateway.side: dump_policies(gateway) for gateway, _ in both(self._bed)}
        wanted = 3 * len(self._tunnel.pairs)
        mismatches = [
            f"{side}: expected {wanted} policies, the kernel has {len(found)}"
            for side, found in policies.items()
            if len(found) != wanted
        ]
        mismatches += [
            f"the baseline has a policy that demands {p.demands}"
            for found in policies.values()
            for p in found
            if p.demands != "nothing"
        ]
        selectors = few((f"{west} ↔ {east}" for west, east in self._tunnel.pairs), at_most=4)
        return {
            "protocol": "none (baseline)",
            "ip_version": self._tunnel.ip_version,
            "tunnels": len(self._tunnel.pairs),
            "selectors": "; ".join(selectors),
            "policies": {side: policy_entries(found) for side, found in policies.items()},
            "mismatches": few(mismatches),
        }

    def secrets(self) -> list[dict[str, Any]]:
        return []
