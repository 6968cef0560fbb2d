# SPDX-License-Identifier: Apache-2.0
"""ESP in user space: charon's plugin kernel-libipsec on both gateways, with ESP in UDP and a TUN device."""

from __future__ import annotations

from typing import Any

from espbench.catalogue.suites import Suite
from espbench.errors import EspbenchError, UsageError
from espbench.platforms.base import SIDES, Side, Testbed
from espbench.platforms.gateway_time import now_s, pause
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import SaCounters, Tunnel, both
from espbench.stacks.daemons.daemon import IkeOptions
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.strongswan.charon import StrongSwan

# Limits between trials: the time that charon's queues have to become empty, s; the time without progress after which
# they count as empty, s; and the memory that charon may keep after an overload, KiB.
DRAIN_S, QUIET_S, KEPT_KIB = 2.0, 0.1, 32 * 1024


class UserSpaceStack(IkeStack):
    """Two charons that do ESP themselves.

    Routes block cleartext: the far prefix has only a route through the TUN device, and a blackhole route behind it.
    charon's queues are unbounded, so they must be empty before each trial. If they are not, or if a charon keeps too
    much memory after an overload, both charons are restarted.
    """

    def __init__(
        self,
        name: str,
        bed: Testbed,
        tunnel: Tunnel,
        suite: Suite,
        options: IkeOptions,
        daemons: dict[Side, StrongSwan],
    ) -> None:
        super().__init__(name, bed, tunnel, suite, options, {**daemons})
        self._charons = daemons
        self._memory_kib: dict[Side, int] = {}

    @property
    def sas(self) -> int:
        """Return 0, since charon holds the SAs itself."""
        return 0

    def block(self) -> None:
        for gateway, _ in both(self._bed):
            family = f"-{self._tunnel.ip_version}"
            done = gateway.run(["ip", family, "route", "replace", "blackhole", self._far(gateway.side)])
            if done.rc:
                raise EspbenchError(f"{gateway.side}: cannot block cleartext: {done.err.strip()}")

    def establish(self) -> None:
        """Start both charons, let Home initiate, and remember how much memory they need when idle."""
        super().establish()
        self._memory_kib = {side: self._charons[side].memory_kib() for side in SIDES}

    def counters(self, side: Side) -> SaCounters:
        """Return the packets of charon's CHILD SAs, as charon counts them, and the SPIs, which a rekey replaces."""
        return self._charons[side].sa_counters()

    def rest(self) -> None:
        """Wait until charon's counters stand still; restart both charons if they do not, or if one uses more memory."""
        deadline = now_s(self._bed.gateways["home"]) + DRAIN_S
        before = self._moved()
        while True:
            pause(self._bed.gateways["home"], QUIET_S)
            now = self._moved()
            if now == before:
                break
            if now_s(self._bed.gateways["home"]) > deadline:
                self._restart()
                return
            before = now
        if any(self._charons[side].memory_kib() > kib + KEPT_KIB for side, kib in self._memory_kib.items()):
            self._restart()

    def secrets(self) -> list[dict[str, Any]]:
        raise UsageError("capture: expected a stack whose keys can be read back, got strongswan-libipsec")

    def _restart(self) -> None:
        for side in SIDES:
            self._charons[side].stop(suddenly=True)
        self.establish()

    def _moved(self) -> tuple[SaCounters, ...]:
        return tuple(self.counters(side) for side in SIDES)

    def _common(self) -> dict[str, Any]:
        return super()._common() | {
            "based on": "routes to a TUN device",
            "cleartext": "blocked by a blackhole route, which stays when a tunnel goes down",
        }

    def _esp_of(self, side: Side) -> tuple[dict[str, Any], list[str]]:
        """Return the routes that lead all traffic through the TUN device, as the kernel shows them, and problems."""
        gateway = self._bed.gateways[side]
        family = f"-{self._tunnel.ip_version}"
        tun = gateway.run(["ip", family, "route", "show", "table", "220"]).out.strip()
        main = gateway.run(["ip", family, "route", "show", self._far(side)]).out.strip()
        problems = []
        if "dev ipsec0" not in tun:
            problems.append(f"no route through the TUN device in table 220: {tun or 'empty'}")
        if not main.startswith("blackhole"):
            problems.append(f"cleartext is not blocked by a blackhole route: {main or 'none'}")
        return {"routes": {"table 220": tun, "main table": main}}, problems

    def _floor(self, side: Side) -> list[xfrm.Policy]:
        return []

    def _far(self, side: Side) -> str:
        return self._tunnel.east if side == "home" else self._tunnel.west
