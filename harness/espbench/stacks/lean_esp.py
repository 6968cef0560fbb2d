# SPDX-License-Identifier: Apache-2.0
"""espbench's own lean ESP on emulated boards (harness/emulator/kernel/lean_esp.c): static SAs that bypass XFRM.

The kernel's XFRM policies only block: a packet that the lean ESP does not handle is dropped. The lean ESP is a
yardstick: it shows the cost of a stack with as little code as possible. It does not model a product.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_network
from typing import Any

from espbench.catalogue import board_crypto
from espbench.catalogue.suites import Suite
from espbench.errors import EspbenchError, UsageError
from espbench.platforms.base import Gateway, Side, Testbed
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import INBOUND, SaCounters, StackOptions, Tunnel, xfrm_errors
from espbench.stacks.policies import (
    LISTED_TUNNELS,
    SideView,
    dump_policies,
    few,
    floor,
    flush,
    install,
    policy_entries,
)
from espbench.stacks.read_back import policy_mismatches
from espbench.stacks.xfrm import Xfrm

CONTROL = "/proc/espbench_lean"
_SA = re.compile(
    r"sa (?P<direction>in|out) (?P<spi>[0-9a-f]{8}) (?P<source>\S+) (?P<destination>\S+) "
    r"window=(?P<window>\d+) icv=(?P<icv>\d+) packets=(?P<packets>\d+) bytes=\d+ driver=(?P<driver>\S+)"
)


@dataclass(frozen=True)
class SaState:
    """One SA as a guest reports it. icv in bytes, window in packets; driver: the crypto API driver that computes it."""

    inbound: bool
    spi: int
    source: str
    destination: str
    window: int
    icv: int
    packets: int
    driver: str


@dataclass(frozen=True)
class State:
    """The lean ESP as a guest reports it: its (LAN, WAN) ports, the packets it dropped by reason, and its SAs."""

    ports: tuple[str, str]
    errors: dict[str, int]
    sas: tuple[SaState, ...]


def read_state(text: str) -> State:
    """Parse the text of the guest's file CONTROL; raise EspbenchError if it has no line with the ports."""
    ports = re.search(r"^ports (\S+) (\S+)$", text, re.MULTILINE)
    if ports is None:
        raise EspbenchError(f"{CONTROL}: expected a line of ports, got {text[:80]!r}")
    errors = {name: int(n) for name, n in re.findall(r"^error (\w+) (\d+)$", text, re.MULTILINE) if int(n)}
    sas = tuple(
        SaState(
            inbound=match["direction"] == "in",
            spi=int(match["spi"], 16),
            source=match["source"],
            destination=match["destination"],
            window=int(match["window"]),
            icv=int(match["icv"]),
            packets=int(match["packets"]),
            driver=match["driver"],
        )
        for match in _SA.finditer(text)
    )
    return State((ports[1], ports[2]), errors, sas)


def algorithm(suite: Suite) -> str:
    """Return the name by which XFRM requests the suite from the crypto API, with the template that makes its IVs."""
    inner = board_crypto.algorithm(suite)
    if suite.iv_bytes == 0:
        return inner
    return f"seqiv({inner})" if suite.aead else f"echainiv({inner})"


def sa_line(sa: xfrm.SecurityAssociation, view: SideView, suite: Suite) -> str:
    """Return the line that makes an SA when it is written to CONTROL of the guest with this view; it has the keys."""
    inbound = sa.destination == view.own
    cipher = sa.aead or sa.encryption
    words = [
        "sa", "in" if inbound else "out", f"{sa.spi:x}", _hex(sa.source), _hex(sa.destination),
        *_network(view.outbound.source), *_network(view.outbound.destination),
        str(sa.replay_window), str(suite.icv_bytes), algorithm(suite),
        *(key.key.hex() if key and key.key else "-" for key in (cipher, sa.integrity)),
    ]  # fmt: skip
    return " ".join(words)


class LeanEsp(Xfrm):
    """The same SAs and keys as `Xfrm`, given to the guest's lean ESP instead of its XFRM."""

    name = "lean-esp"

    def __init__(self, bed: Testbed, tunnel: Tunnel, suite: Suite, options: StackOptions) -> None:
        if tunnel.ip_version != 4:
            raise UsageError(f"lean-esp: expected IPv4, got IPv{tunnel.ip_version}")
        super().__init__(bed, tunnel, suite, options)

    def block(self) -> None:
        for gateway in self._bed.gateways.values():
            flush(gateway)
            gateway.write(CONTROL, "flush")
            install(gateway, floor(gateway.side, self._tunnel))

    def establish(self) -> None:
        for gateway in self._bed.gateways.values():
            views = SideView.each(gateway.side, self._tunnel)
            for (_, number), sa in self._sas.items():
                gateway.write(CONTROL, sa_line(sa, views[number], self._suite))
            gateway.write(CONTROL, f"ports {gateway.lan} {gateway.wan}")

    def counters(self, side: Side) -> SaCounters:
        """Return the packets of the lean ESP's SAs, its errors, and those of XFRM, which blocks all other packets."""
        gateway = self._bed.gateways[side]
        state = _state(gateway)
        return SaCounters(
            encrypted=sum(sa.packets for sa in state.sas if not sa.inbound),
            decrypted=sum(sa.packets for sa in state.sas if sa.inbound),
            errors=xfrm_errors(gateway) | state.errors,
            spis=frozenset(sa.spi + INBOUND * sa.inbound for sa in state.sas),
        )

    def security_context(self) -> dict[str, Any]:
        pairs = self._tunnel.pairs
        context: dict[str, Any] = {
            "protocol": "ESP (RFC 4303) by espbench's own lean ESP: no XFRM, one flow cache, for comparison only",
            "keying": "manual: static SAs, keys the same in each run, for virtual time is repeated to the bit",
            "mode": "tunnel",
            "based on": "networks of the SAs, looked up once for a pair of addresses",
            "ip_version": 4,
            "tunnels": len(pairs),
            "selectors": "; ".join(few((f"{west} ↔ {east}" for west, east in pairs), at_most=4)),
            "ike": "none",
            "fragmentation": "none: a packet that exceeds the MTU after ESP is dropped; DF copied",
        }
        mismatches: list[str] = []
        for gateway in self._bed.gateways.values():
            state, policies = _state(gateway), dump_policies(gateway)
            listed = state.sas if len(state.sas) <= 2 * LISTED_TUNNELS else state.sas[:2]
            context[gateway.side] = {
                "security_associations": [_entry(sa) for sa in listed],
                "number of SAs": len(state.sas),
                "policies": policy_entries(policies),
            }
            problems = [
                *self._state_mismatches(gateway, state),
                *policy_mismatches(floor(gateway.side, self._tunnel), policies),
            ]
            mismatches += [f"{gateway.side}: {problem}" for problem in few(problems)]
        context["mismatches"] = mismatches
        return context

    def _state_mismatches(self, gateway: Gateway, state: State) -> list[str]:
        """Return the differences between the SAs and ports in the guest and those that were configured."""
        own = SideView.of(gateway.side, self._tunnel).own
        wanted = {
            (
                sa.destination == own,
                sa.spi,
                sa.source,
                sa.destination,
                sa.replay_window,
                self._suite.icv_bytes,
            )
            for sa in self._sas.values()
        }
        held = {(sa.inbound, sa.spi, sa.source, sa.destination, sa.window, sa.icv) for sa in state.sas}
        problems = [f"SA {spi:#x} {a} → {b} is not there" for _, spi, a, b, *_ in wanted - held]
        problems += [f"unknown SA {spi:#x} {a} → {b}" for _, spi, a, b, *_ in held - wanted]
        if state.ports != (gateway.lan, gateway.wan):
            problems.append(f"ports: expected {gateway.lan}, {gateway.wan}, got {', '.join(state.ports)}")
        return problems


def _state(gateway: Gateway) -> State:
    text = gateway.read([CONTROL])[CONTROL]
    if text is None:
        raise EspbenchError(f"gateway {gateway.side}: its kernel has no lean ESP ({CONTROL})")
    return read_state(text)


def _entry(sa: SaState) -> dict[str, Any]:
    return {
        "from": sa.source,
        "to": sa.destination,
        "spi": f"{sa.spi:#010x}",
        "mode": "tunnel",
        "aead": f"{sa.driver}, {8 * sa.icv} bit ICV",
        "replay_window": sa.window,
        "esn": False,
        "df": "copied",
    }


def _hex(address: str) -> str:
    return f"{int(IPv4Address(address)):x}"


def _network(prefix: str) -> tuple[str, str]:
    network = ip_network(prefix)
    return f"{int(network.network_address):x}", f"{int(network.netmask):x}"
