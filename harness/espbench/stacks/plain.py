# SPDX-License-Identifier: Apache-2.0
"""The baseline: the same gateways, routes and selectors, and no IPsec (ipsec-meth 9.1)."""

from __future__ import annotations

from typing import Any

from espbench.platforms.base import Side, Testbed
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import SaCounters, Tunnel, both, xfrm_errors
from espbench.stacks.policies import SideView, dump_policies, flush


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
            view = SideView.of(gateway.side, self._tunnel)
            gateway.netlink(
                xfrm.NETLINK_XFRM,
                [
                    xfrm.new_policy(xfrm.Policy(view.outbound, "out")),
                    xfrm.new_policy(xfrm.Policy(view.inbound, "in")),
                    xfrm.new_policy(xfrm.Policy(view.inbound, "fwd")),
                ],
            )

    def counters(self, side: Side) -> SaCounters:
        return SaCounters(errors=xfrm_errors(self._bed.gateways[side]))

    def security_context(self) -> dict[str, Any]:
        policies = {gateway.side: dump_policies(gateway) for gateway, _ in both(self._bed)}
        demanding = [p for found in policies.values() for p in found if p.demands != "nothing"]
        return {
            "protocol": "none (baseline)",
            "ip_version": self._tunnel.ip_version,
            "selectors": f"{self._tunnel.west} ↔ {self._tunnel.east}",
            "policies": {
                s: [f"{p.direction} {p.selector}: {p.demands}" for p in ps] for s, ps in policies.items()
            },
            "mismatches": [f"the baseline has a policy that demands {p.demands}" for p in demanding],
        }

    def secrets(self) -> list[dict[str, Any]]:
        return []
