# SPDX-License-Identifier: Apache-2.0
"""topologies/*.yaml: the wiring of tester and gateways, and their addresses."""

from __future__ import annotations

import ipaddress
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from espbench.errors import UsageError
from espbench.paths import data_dir, data_names
from espbench.plan.reading.reader import Problem, Strict, check, did_you_mean, read, shown

Mac = Annotated[str, Field(pattern=r"^02(:[0-9a-f]{2}){5}$")]
NETWORKS = 256  # RFC 2544 12


class Addresses(Strict):
    """The addresses of one IP version. Prefixes are written `address/length`."""

    keys_are: ClassVar[str] = "an address of the topology"

    west: str
    """Everything behind Home: one selector of the tunnel."""
    east: str
    """Everything behind Office: the other selector."""
    network_prefix: Annotated[int, Field(ge=1, le=128)]
    """Length of one of the 256 destination networks inside west or east (RFC 2544 12)."""
    tester_west: str
    """The tester's west port, on Home's LAN."""
    home_lan: str
    home_wan: str
    office_wan: str
    office_lan: str
    tester_east: str
    """The tester's east port, on Office's LAN."""

    def networks(self, side: Literal["west", "east"], count: int) -> list[str]:
        """Return the first `count` networks of one side; number 0 is the LAN itself."""
        whole = ipaddress.ip_network(self.west if side == "west" else self.east)
        subnets = whole.subnets(new_prefix=self.network_prefix)
        return [str(next(subnets)) for _ in range(count)]


class Macs(Strict):
    """Locally administered MAC addresses of every port."""

    keys_are: ClassVar[str] = "a port of the topology"

    tester_west: Mac
    home_lan: Mac
    home_wan: Mac
    office_wan: Mac
    office_lan: Mac
    tester_east: Mac


class Topology(Strict):
    """One topology. The topology external has no addresses of its own."""

    keys_are: ClassVar[str] = "a key of a topology"

    name: str
    description: str
    ipv4: Addresses | None = None
    ipv6: Addresses | None = None
    macs: Macs | None = None

    def addresses(self, ip_version: int) -> Addresses:
        """Return the addresses of one IP version. Raise UsageError if the topology has none."""
        addresses = self.ipv4 if ip_version == 4 else self.ipv6
        if addresses is None:
            raise UsageError(
                f"topology {self.name}: expected addresses of IPv{ip_version}, got none; "
                "external takes them from the plan's ports"
            )
        return addresses


def topology_names() -> list[str]:
    """Return the names of the topologies that come with espbench."""
    return data_names("topologies")


def load_topology(name: str) -> Topology:
    """Return the topology with this name. Raise UsageError."""
    known = topology_names()
    if name not in known:
        remedy = did_you_mean(name, known, "espbench list topologies shows them")
        raise UsageError(f"topology: expected one of {', '.join(known)}, got {shown(name)}; {remedy}")
    return check(Topology, read(data_dir("topologies") / f"{name}.yaml", "topology"), _addresses_agree)


def _addresses_agree(topology: Topology) -> list[Problem]:
    """Check that each port is inside its link's network, and that there is room for the 256 networks."""
    problems = []
    for key, addresses in (("ipv4", topology.ipv4), ("ipv6", topology.ipv6)):
        if addresses is None:
            continue
        links = (("tester_west", "home_lan"), ("home_wan", "office_wan"), ("office_lan", "tester_east"))
        for one, other in links:
            first, second = (ipaddress.ip_interface(getattr(addresses, name)) for name in (one, other))
            if first.network != second.network or first.ip == second.ip:
                problems.append(
                    Problem(
                        (key, other),
                        f"another address of {first.network}",
                        shown(str(second)),
                        f"{one} and {other} are the two ends of one link",
                    )
                )
        for side, port in (("west", "home_lan"), ("east", "office_lan")):
            whole = ipaddress.ip_network(getattr(addresses, side))
            if ipaddress.ip_interface(getattr(addresses, port)).ip not in whole:
                problems.append(
                    Problem(
                        (key, port),
                        f"an address of {side} ({whole})",
                        shown(getattr(addresses, port)),
                        f"it lies behind {side}'s selector",
                    )
                )
            if 2 ** (addresses.network_prefix - whole.prefixlen) < NETWORKS:
                problems.append(
                    Problem(
                        (key, "network_prefix"),
                        f"room for {NETWORKS} networks in {side}",
                        str(addresses.network_prefix),
                        "RFC 2544 12: lengthen it",
                    )
                )
    return problems
