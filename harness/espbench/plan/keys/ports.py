# SPDX-License-Identifier: Apache-2.0
"""`ports:` of a plan: how the tester is connected to boxes that espbench did not build."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, ClassVar

from pydantic import Field, PlainValidator

from espbench.plan.keys.values import text
from espbench.plan.reading.reader import Strict
from espbench.plan.reading.units import Expected

_MAC_PATTERN = r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$"


def _cidr(value: object) -> str:
    try:
        if isinstance(value, str) and "/" in value:
            return str(ipaddress.ip_interface(value))
    except ValueError:
        pass
    raise Expected(
        "an address with its prefix length, such as 10.0.1.2/24", "the port's own address on that link"
    )


def _address(value: object) -> str:
    try:
        if isinstance(value, str):
            return str(ipaddress.ip_address(value))
    except ValueError:
        pass
    raise Expected("an IP address such as 10.0.1.1", "the DUT's address on that link")


def _mac(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_MAC_PATTERN, value) or int(value[:2], 16) & 1:
        raise Expected(
            "the MAC address of one interface, such as 02:00:00:00:00:01", "six pairs of hex digits"
        )
    return value.lower()


def _interface(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[^\s/]{1,15}", value) or value in (".", ".."):
        raise Expected("the name of a network interface (up to 15 characters)", "ip -brief link lists them")
    return value


Interface = Annotated[str, PlainValidator(_interface), text(r"^[^\s/]{1,15}$", "eth1")]


class ExternalPort(Strict):
    """One port of the tester, connected to a box that espbench did not build."""

    keys_are: ClassVar[str] = "a key of a port"

    netns: Annotated[str, Field(min_length=1)] | None = None
    """Network namespace of the interface: a name of `ip netns` or a path. Default: the initial one."""
    interface: Interface
    """The interface."""
    address: Annotated[str, PlainValidator(_cidr), text(r"^[0-9a-fA-F.:]+/\d+$", "10.0.1.2/24")]
    """The tester's address on this link; espbench answers ARP and neighbour discovery for it."""
    gateway: Annotated[str, PlainValidator(_address), text(r"^[0-9a-fA-F.:]+$", "10.0.1.1")]
    """The DUT's address on this link."""
    gateway_mac: Annotated[str, PlainValidator(_mac), text(_MAC_PATTERN, "02:00:00:00:00:01")] | None = None
    """The DUT's MAC address on this link. Default: asked for on the wire, which trex cannot.

    With it espbench does not answer for `address` either: the DUT needs a static neighbour."""

    @property
    def ip_version(self) -> int:
        """The IP version of the address: 4 or 6."""
        return ipaddress.ip_interface(self.address).version


class Ports(Strict):
    """The tester's two ports."""

    keys_are: ClassVar[str] = "a port (west or east)"

    west: ExternalPort
    """The port on the first gateway's cleartext side."""
    east: ExternalPort
    """The port on the second gateway's cleartext side."""
