# SPDX-License-Identifier: Apache-2.0
"""Boxes that espbench did not build, between two interfaces of this machine: espbench configures nothing."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import UsageError
from espbench.platforms.base import Placement, Port, PortName, Readiness, Testbed
from espbench.this_machine import interfaces, own_ssh

_NETNS_DIR = Path("/run/netns")


@dataclass(frozen=True)
class ExternalPort:
    """A port of the tester as the plan describes it; address has a prefix length."""

    interface: str
    address: str
    gateway: str
    netns: str | None = None
    gateway_mac: str | None = None


class ExternalTestbed(Testbed):
    """A test bed with two ports and without gateways that espbench can configure or read."""

    def close(self) -> None:
        """Do nothing, because nothing was made."""


def build(
    ports: dict[PortName, ExternalPort],
    placed: Placement,
    *,
    dut: str,
    i_own_this_network: bool,
    line_rate_bps: float | None,
) -> ExternalTestbed:
    """Return the test bed; MACs and next hops come from the interfaces when the generator opens them."""
    return ExternalTestbed(
        platform="external",
        dut=dut,
        ports={
            name: _port(name, given, placed.cpus, i_own_this_network, line_rate_bps)
            for name, given in ports.items()
        },
        gateways={},
        placement=placed,
        queues={},
    )


def _port(
    name: PortName, given: ExternalPort, cpus: dict[str, list[int]], owned: bool, line_rate_bps: float | None
) -> Port:
    address = ipaddress.ip_interface(given.address)
    netns = netns_path(given.netns) if given.netns else None
    own_ssh.refuse_port(f"ports: {name}", given.interface, netns)
    return Port(
        name=name,
        interface=given.interface,
        netns=netns,
        tx_cpus=tuple(cpus["tester tx"]),
        rx_cpu=cpus["tester rx"][0],
        mac="",  # the interface's own, known once it is open
        next_hop_mac=given.gateway_mac,
        address={address.version: str(address.ip)},
        gateway={address.version: given.gateway},
        line_rate_bps=line_rate_bps or 0.0,
        mtu=1500,
        i_own_this_network=owned,
    )


def line_rate_bps(ports: Iterable[tuple[str | None, str]]) -> float:
    """Return the speed of the slowest port, bit/s, as the interfaces report it; 0 if one does not report it.

    ports: the network namespace of each, as a name or a path (None: this process' own), and its interface.
    """
    files = ((netns_path(netns) if netns else None, interface) for netns, interface in ports)
    return min((interfaces.speed_bps(netns, interface) for netns, interface in files), default=0.0)


def netns_path(name: str) -> str:
    """Return the file of a network namespace, given its name or path. Raise UsageError if it does not exist."""
    path = Path(name) if "/" in name else _NETNS_DIR / name
    if not path.exists():
        known = ", ".join(sorted(p.name for p in _NETNS_DIR.glob("*"))) or "none"
        raise UsageError(
            f"network namespace {name}: expected one that exists, got no {path}; there are: {known}"
        )
    return str(path)


def readiness() -> list[Readiness]:
    """Return whether this machine has what this platform needs: root."""
    missing = "packet sockets and network namespaces need root"
    return [Readiness("root", os.geteuid() == 0, missing, "run espbench as root")]
