# SPDX-License-Identifier: Apache-2.0
"""Kernel XFRM with static SAs: espbench makes keys for each case and installs them by NETLINK_XFRM, without
a daemon.
"""

from __future__ import annotations

import random
from typing import Any

from espbench.catalogue.suites import Suite
from espbench.errors import MachineLacks
from espbench.platforms.base import SIDES, Gateway, NetlinkRefused, Side, Testbed
from espbench.platforms.channel import AgentRefused
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks import xfrm_devices as devices
from espbench.stacks.base import SaCounters, StackOptions, Tunnel
from espbench.stacks.policies import (
    FIRST_REQID,
    SideView,
    dump_policies,
    dump_sas,
    few,
    floor,
    flush,
    install,
    policy_entries,
    protecting,
    sa_counters,
    sa_entries,
    secret_entry,
)
from espbench.stacks.read_back import policy_mismatches, sa_mismatches

_ENOENT, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP, _EAFNOSUPPORT = 2, 38, 93, 95, 97
_NO_SUCH_FEATURE = {_ENOENT, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP, _EAFNOSUPPORT}
_IPIP = {4: 4, 6: 41}  # upper-layer protocol of IP in IP


class Xfrm:
    """Pairs of ESP SAs between the gateways, one pair and one request id for each tunnel.

    Tunnel mode protects the prefixes' traffic directly. Transport mode protects traffic between hosts. There the
    gateways send the prefixes' traffic through an IP-in-IP device, and ESP protects the IP-in-IP packets (RFC 3884).
    """

    name = "xfrm"
    encrypts = True

    def __init__(self, bed: Testbed, tunnel: Tunnel, suite: Suite, options: StackOptions) -> None:
        devices.refuse_what_cannot_be(options, tunnel)
        self._bed = bed
        self._tunnel = tunnel
        self._suite = suite
        self._options = options
        self._interface_id = devices.XFRM_IF_ID if options.interface else 0
        # Runs in virtual time must repeat exactly, and a different key can change the number of instructions a little.
        self._random = (
            random.Random(bed.chance.number("keys and SPIs", 2544))
            if bed.virtual_time
            else random.SystemRandom()
        )
        # Each tunnel has two SAs, one from each gateway's own address.
        spis = self._spis(2 * len(tunnel.pairs))
        self._sas = {
            (side, number): self._new_sa(view, number, spis.pop())
            for side in SIDES
            for number, view in enumerate(self._views(side))
        }

    @property
    def tunnel(self) -> Tunnel:
        """The traffic that the SAs protect."""
        return self._tunnel

    @property
    def sas(self) -> int:
        return 2 * len(self._tunnel.pairs)

    def block(self) -> None:
        for gateway in self._bed.gateways.values():
            flush(gateway)
            whole = SideView.of(gateway.side, self._tunnel)
            if self._options.mode == "transport":
                devices.route_through_ipip(gateway, whole, self._options.df)
            if self._options.interface:
                devices.route_through_interface(gateway, whole)
            install(gateway, self._policies(gateway.side))

    def establish(self) -> None:
        for gateway in self._bed.gateways.values():
            if self._options.udp_encapsulation:
                self._receive_udp(gateway)
            try:
                messages = [xfrm.new_sa(sa, gateway.byte_order) for sa in self._sas.values()]
                gateway.netlink(xfrm.NETLINK_XFRM, messages)
            except NetlinkRefused as refused:
                if refused.errno in _NO_SUCH_FEATURE:
                    raise MachineLacks(
                        f"{gateway.side}: its kernel refused the suite {self._suite.name} "
                        f"({', '.join(self._algorithms())}): {refused}",
                        "use a kernel with " + ", ".join(self._suite.kernel_options) + ", or dut: uml",
                    ) from None
                raise

    def counters(self, side: Side) -> SaCounters:
        return sa_counters(self._bed.gateways[side], SideView.of(side, self._tunnel).own)

    def rest(self) -> None:
        """Do nothing: the kernel keeps no queue of its own from one trial to the next."""

    def security_context(self) -> dict[str, Any]:
        tunnels = self._tunnel.pairs
        selectors = few((f"{west} ↔ {east}" for west, east in tunnels), at_most=4)
        context: dict[str, Any] = {
            "protocol": "ESP" + (" in UDP, port 4500 (RFC 3948)" if self._options.udp_encapsulation else ""),
            "keying": "manual: static SAs, keys "
            + (
                "the same in each run, for virtual time is repeated to the bit"
                if self._bed.virtual_time
                else "from the system's random source, new for each case"
            ),
            "mode": self._options.mode + (" over IP in IP" if self._options.mode == "transport" else ""),
            "based on": f"routes to an XFRM interface (if_id {self._interface_id})"
            if self._options.interface
            else "policies",
            "ip_version": self._tunnel.ip_version,
            "tunnels": len(tunnels),
            "selectors": "; ".join(selectors),
            "ike": "none",
            "fragmentation": self._fragmentation(),
        }
        mismatches: list[str] = []
        for gateway in self._bed.gateways.values():
            readings, policies = dump_sas(gateway), dump_policies(gateway)
            context[gateway.side] = sa_entries(readings) | {"policies": policy_entries(policies)}
            problems = [
                *self._sa_mismatches(SideView.of(gateway.side, self._tunnel).own, readings),
                *policy_mismatches(self._policies(gateway.side), policies),
                *self._route_mismatches(gateway),
            ]
            mismatches += [f"{gateway.side}: {problem}" for problem in few(problems)]
        context["mismatches"] = mismatches
        return context

    def secrets(self) -> list[dict[str, Any]]:
        return [
            secret_entry(
                sa,
                self._suite.name,
                key.key if (key := sa.aead or sa.encryption) else b"",
                sa.integrity.key if sa.integrity else b"",
            )
            for sa in self._sas.values()
        ]

    def _spis(self, count: int) -> list[int]:
        """Return different SPIs; those below 256 are reserved (RFC 4303 2.1)."""
        drawn: dict[int, None] = {}
        while len(drawn) < count:
            if (spi := self._random.getrandbits(32)) >= 0x100:
                drawn[spi] = None
        return list(drawn)

    def _new_sa(self, view: SideView, number: int, spi: int) -> xfrm.SecurityAssociation:
        def keyed(name: str, bits: int, icv_bits: int = 0) -> xfrm.Algorithm:
            return xfrm.Algorithm(name, self._random.randbytes(bits // 8), icv_bits)

        s = self._suite
        encryption = keyed(s.encryption.kernel_name, s.encryption.key_bits) if s.encryption else None
        if encryption and "des3" in encryption.name:
            encryption = xfrm.Algorithm(encryption.name, _distinct_des_keys(self._random))
        return xfrm.SecurityAssociation(
            source=view.own,
            destination=view.peer,
            spi=spi,
            selector=view.outbound,
            mode=self._options.mode,
            reqid=FIRST_REQID + number,
            encryption=encryption,
            integrity=keyed(s.integrity.kernel_name, s.integrity.key_bits, s.integrity.icv_bits)
            if s.integrity
            else None,
            aead=keyed(s.aead.kernel_name, s.aead.key_bits, s.aead.icv_bits) if s.aead else None,
            replay_window=self._options.replay_window,
            esn=self._options.esn,
            udp_encapsulation=self._options.udp_encapsulation,
            copy_df=self._options.df != "clear",
            interface_id=self._interface_id,
        )

    def _views(self, side: Side) -> list[SideView]:
        views = SideView.each(side, self._tunnel)
        if self._options.mode == "tunnel":
            return views
        protocol = _IPIP[self._tunnel.ip_version]
        own, peer = views[0].own, views[0].peer
        out, back = xfrm.Selector(own, peer, protocol), xfrm.Selector(peer, own, protocol)
        return [SideView(own, peer, out, back)]

    def _policies(self, side: Side) -> list[xfrm.Policy]:
        """Return the policies out, in and fwd of every tunnel, and in tunnel mode the policies that block the rest."""
        if self._options.mode == "tunnel":
            of_tunnels = protecting(side, self._tunnel, interface_id=self._interface_id)
            return of_tunnels + floor(side, self._tunnel, interface_id=self._interface_id)
        (view,) = self._views(side)
        return view.policies("transport", FIRST_REQID, self._interface_id)

    def _receive_udp(self, gateway: Gateway) -> None:
        try:
            gateway.udp_encap(xfrm.UDP_ENCAP_PORT)
        except AgentRefused as refused:
            raise MachineLacks(
                f"{gateway.side}: udp_encapsulation: true: {refused}",
                "use a kernel that takes ESP in UDP (for IPv6: 5.8 or later), with nothing else on that port",
            ) from None

    def _fragmentation(self) -> str:
        if self._tunnel.ip_version == 6:
            return "a packet too big for the tunnel is answered with Packet Too Big; IPv6 has no DF bit"
        df = {"copy": "copied from the inner header", "clear": "never set", "set": "always set"}
        return f"after ESP where the packet exceeds the MTU; DF {df[self._options.df]}"

    def _algorithms(self) -> list[str]:
        s = self._suite
        return [a.kernel_name for a in (s.encryption, s.integrity, s.aead) if a]

    def _sa_mismatches(self, own: str, readings: list[xfrm.SaReading]) -> list[str]:
        """Return the differences between the kernel's SAs and those that were installed for the plan."""
        expected = {(sa.source, sa.destination, sa.spi): sa.reqid for sa in self._sas.values()}
        by_key = {(sa.source, sa.destination, sa.spi): sa for sa in readings}
        problems = [f"SA {spi:#x} {a} → {b} is not there" for a, b, spi in expected.keys() - by_key.keys()]
        problems += [f"unknown SA {spi:#x} {a} → {b}" for a, b, spi in by_key.keys() - expected.keys()]
        for key in expected.keys() & by_key.keys():
            sa = by_key[key]
            problems += sa_mismatches(sa, self._suite, self._options, inbound=sa.destination == own)
            if sa.reqid != expected[key]:
                problems.append(f"request id: expected {expected[key]}, the kernel has {sa.reqid}")
        return problems

    def _route_mismatches(self, gateway: Gateway) -> list[str]:
        whole = SideView.of(gateway.side, self._tunnel)
        if self._options.interface:
            return devices.routed_wrongly(gateway, whole, devices.XFRM_DEVICE)
        if self._options.mode == "tunnel":
            return []
        problems = devices.routed_wrongly(gateway, whole, devices.IPIP_DEVICE)
        df = devices.df_of_ipip(gateway)
        if self._tunnel.ip_version == 4 and df != self._options.df:
            problems.append(f"DF of IP in IP: expected {self._options.df}, the gateway has {df}")
        return problems


def _distinct_des_keys(source: random.Random) -> bytes:
    """Return three different DES keys, 24 bytes: FIPS kernels refuse equal keys."""
    while True:
        key = source.randbytes(24)
        parts = {key[i : i + 8] for i in (0, 8, 16)}
        if len(parts) == 3:
            return key
