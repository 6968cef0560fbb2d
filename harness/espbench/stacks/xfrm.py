# SPDX-License-Identifier: Apache-2.0
"""Kernel XFRM with static SAs: keys made per case, put in by NETLINK_XFRM, no daemon."""

from __future__ import annotations

import secrets
from typing import Any

from espbench.errors import MachineLacks
from espbench.platforms.base import Gateway, NetlinkRefused, Side, Testbed
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import SaCounters, StackOptions, Tunnel, both, xfrm_errors
from espbench.stacks.policies import SideView, dump_policies, dump_sas, flush
from espbench.stacks.suites import Suite

_REQID = 2544
_ENOENT, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP, _EAFNOSUPPORT = 2, 38, 93, 95, 97
_NO_SUCH_FEATURE = {_ENOENT, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP, _EAFNOSUPPORT}
_IPIP = {4: 4, 6: 41}  # upper-layer protocol of IP in IP
_TUNNEL_DEVICE = "ipip0e"


class Xfrm:
    """One pair of ESP SAs between the gateways.

    Tunnel mode protects the prefixes themselves. Transport mode protects hosts, so there the
    gateways carry the prefixes over an IP-in-IP device and ESP protects that (RFC 3884).
    """

    name = "xfrm"
    encrypts = True

    def __init__(self, bed: Testbed, tunnel: Tunnel, suite: Suite, options: StackOptions) -> None:
        self._bed = bed
        self._tunnel = tunnel
        self._suite = suite
        self._options = options
        # Both directions, from each gateway's own address: (SPI, key material).
        self._sas = {side: self._new_sa(side) for side in ("home", "office")}

    def block(self) -> None:
        for gateway, _ in both(self._bed):
            flush(gateway)
            if self._options.mode == "transport":
                self._route_through_ipip(gateway)
            view = self._view(gateway.side)
            out = xfrm.Template(view.own, view.peer, self._options.mode, _REQID)
            back = xfrm.Template(view.peer, view.own, self._options.mode, _REQID)
            gateway.netlink(
                xfrm.NETLINK_XFRM,
                [
                    xfrm.new_policy(xfrm.Policy(view.outbound, "out", out)),
                    xfrm.new_policy(xfrm.Policy(view.inbound, "in", back)),
                    xfrm.new_policy(xfrm.Policy(view.inbound, "fwd", back)),
                ],
            )

    def establish(self) -> None:
        for gateway, _ in both(self._bed):
            try:
                gateway.netlink(xfrm.NETLINK_XFRM, [xfrm.new_sa(sa) for sa in self._sas.values()])
            except NetlinkRefused as refused:
                if refused.errno in _NO_SUCH_FEATURE:
                    raise MachineLacks(
                        f"{gateway.side}: its kernel refused the suite {self._suite.name} "
                        f"({', '.join(self._algorithms())}): {refused}",
                        "use a kernel with " + ", ".join(self._suite.kernel_options) + ", or dut: uml",
                    ) from None
                raise

    def counters(self, side: Side) -> SaCounters:
        gateway = self._bed.gateways[side]
        own = self._view(side).own
        readings = dump_sas(gateway)
        errors = xfrm_errors(gateway)
        return SaCounters(
            encrypted=sum(sa.packets for sa in readings if sa.source == own),
            decrypted=sum(sa.packets for sa in readings if sa.destination == own),
            errors=errors,
        )

    def security_context(self) -> dict[str, Any]:
        context: dict[str, Any] = {
            "protocol": "ESP",
            "keying": "manual: static SAs, keys from the system's random source, new for each case",
            "mode": self._options.mode + (" over IP in IP" if self._options.mode == "transport" else ""),
            "ip_version": self._tunnel.ip_version,
            "tunnels": 1,
            "selectors": f"{self._tunnel.west} ↔ {self._tunnel.east}",
            "ike": "none",
            "fragmentation": "after ESP where the packet exceeds the MTU; DF copied from the inner header",
        }
        mismatches: list[str] = []
        for gateway, _ in both(self._bed):
            readings = dump_sas(gateway)
            context[gateway.side] = {
                "security_associations": [
                    {
                        "from": sa.source,
                        "to": sa.destination,
                        "spi": f"{sa.spi:#010x}",
                        "mode": sa.mode,
                        **sa.algorithms,
                        "replay_window": sa.replay_window,
                        "esn": sa.esn,
                        "lifetime": sa.lifetime,
                    }
                    for sa in readings
                ],
                "policies": [f"{p.direction} {p.selector}: {p.demands}" for p in dump_policies(gateway)],
            }
            mismatches += [f"{gateway.side}: {m}" for m in self._mismatches(readings)]
        context["mismatches"] = mismatches
        return context

    def secrets(self) -> list[dict[str, Any]]:
        return [
            {
                "spi": sa.spi,
                "source": sa.source,
                "destination": sa.destination,
                "suite": self._suite.name,
                "mode": sa.mode,
                "encryption_key": key.key.hex() if (key := sa.aead or sa.encryption) else "",
                "integrity_key": sa.integrity.key.hex() if sa.integrity else "",
            }
            for sa in self._sas.values()
        ]

    def _new_sa(self, side: Side) -> xfrm.SecurityAssociation:
        view = self._view(side)

        def keyed(name: str, bits: int, icv_bits: int = 0) -> xfrm.Algorithm:
            return xfrm.Algorithm(name, secrets.token_bytes(bits // 8), icv_bits)

        s = self._suite
        encryption = keyed(s.encryption.kernel_name, s.encryption.key_bits) if s.encryption else None
        if encryption and "des3" in encryption.name:
            encryption = xfrm.Algorithm(encryption.name, _distinct_des_keys())
        return xfrm.SecurityAssociation(
            source=view.own,
            destination=view.peer,
            spi=0x100 + secrets.randbelow(2**32 - 0x200),
            selector=view.outbound,
            mode=self._options.mode,
            reqid=_REQID,
            encryption=encryption,
            integrity=keyed(s.integrity.kernel_name, s.integrity.key_bits, s.integrity.icv_bits)
            if s.integrity
            else None,
            aead=keyed(s.aead.kernel_name, s.aead.key_bits, s.aead.icv_bits) if s.aead else None,
            replay_window=self._options.replay_window,
            esn=self._options.esn,
        )

    def _view(self, side: Side) -> SideView:
        view = SideView.of(side, self._tunnel)
        if self._options.mode == "tunnel":
            return view
        protocol = _IPIP[self._tunnel.ip_version]
        out = xfrm.Selector(view.own, view.peer, protocol)
        return SideView(view.own, view.peer, out, xfrm.Selector(view.peer, view.own, protocol))

    def _route_through_ipip(self, gateway: Gateway) -> None:
        view = SideView.of(gateway.side, self._tunnel)
        kind = "ipip" if self._tunnel.ip_version == 4 else "ip6tnl mode ip6ip6 encaplimit none"
        family = "-4" if self._tunnel.ip_version == 4 else "-6"
        if gateway.run(["ip", "link", "show", _TUNNEL_DEVICE]).rc != 0:
            kind_name, _, arguments = kind.partition(" ")
            ends = ["local", view.own, "remote", view.peer, "ttl" if family == "-4" else "hoplimit", "64"]
            made = gateway.run(
                ["ip", "link", "add", _TUNNEL_DEVICE, "type", kind_name, *arguments.split(), *ends]
            )
            if made.rc != 0:
                raise MachineLacks(
                    f"{gateway.side}: mode: transport needs an IP-in-IP device, refused: {made.err.strip()}",
                    "use a kernel with CONFIG_NET_IPIP and CONFIG_IPV6_TUNNEL, or dut: uml, or mode: tunnel",
                )
        gateway.run(["ip", "link", "set", _TUNNEL_DEVICE, "up"])
        gateway.run(["ip", family, "route", "replace", view.outbound.destination, "dev", _TUNNEL_DEVICE])

    def _algorithms(self) -> list[str]:
        s = self._suite
        return [a.kernel_name for a in (s.encryption, s.integrity, s.aead) if a]

    def _mismatches(self, readings: list[xfrm.SaReading]) -> list[str]:
        """What the kernel holds against what the plan asked for."""
        expected = {(sa.source, sa.destination, sa.spi): sa for sa in self._sas.values()}
        found = {(sa.source, sa.destination, sa.spi): sa for sa in readings}
        problems = [f"SA {spi:#x} {a} → {b} is not there" for a, b, spi in expected.keys() - found.keys()]
        problems += [f"unknown SA {spi:#x} {a} → {b}" for a, b, spi in found.keys() - expected.keys()]
        for key in expected.keys() & found.keys():
            sa = found[key]
            names = {text.split(", ")[0] for text in sa.algorithms.values()}
            if names != set(self._algorithms()):
                problems.append(
                    f"expected {', '.join(self._algorithms())}, the kernel has {', '.join(names)}"
                )
            for what, wanted, got in (
                ("mode", self._options.mode, sa.mode),
                ("replay window", self._options.replay_window, sa.replay_window),
                ("ESN", self._options.esn, sa.esn),
            ):
                if wanted != got:
                    problems.append(f"{what}: expected {wanted}, the kernel has {got}")
        return problems


def _distinct_des_keys() -> bytes:
    """Three different DES keys, no weak ones: FIPS kernels refuse equal halves."""
    while True:
        key = secrets.token_bytes(24)
        parts = {key[i : i + 8] for i in (0, 8, 16)}
        if len(parts) == 3:
            return key
