# SPDX-License-Identifier: Apache-2.0
"""Reads the state of an interface of this machine from the kernel; changes nothing."""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from dataclasses import dataclass
from typing import Any

from espbench.this_machine.network import by_netlink, in_netns

IFF_LOWER_UP = 1 << 16  # linux/if.h: it is up, and so is the link
_UNKNOWN_SPEEDS = (0, 0xFFFF, 0xFFFFFFFF)  # SPEED_UNKNOWN of linux/ethtool.h, in 16 and 32 bits
_BPS_PER_MBPS = 1e6
_SIOCETHTOOL, _GPAUSEPARAM = 0x8946, 0x12  # linux/sockios.h, linux/ethtool.h
_PAUSE = struct.Struct("=IIII")  # struct ethtool_pauseparam: cmd, autoneg, rx_pause, tx_pause
_REQUEST = struct.Struct("16sP16x")  # struct ifreq: the interface's name, the address of the command


@dataclass(frozen=True)
class Interface:
    """The present state of an interface, and its frames since it was made.

    refused: frames to send that were dropped, because the device behind the interface did not accept them.
    """

    mac: str
    link_up: bool
    carrier_changes: int
    sent: int
    refused: int
    received: int


def read_interface(netns: str | None, name: str, failure: str) -> Interface:
    """Return an interface of a namespace; netns: the namespace's file (None: the namespace of this process).

    Raise EspbenchError with `failure` and the kernel's reason.
    """

    def ask(network: Any) -> Any:
        return network.link("get", ifname=name)

    (said,) = by_netlink(netns, ask, failure)
    frames = said.get_attr("IFLA_STATS64")
    return Interface(
        mac=said.get_attr("IFLA_ADDRESS") or "",
        link_up=bool(said["flags"] & IFF_LOWER_UP),
        carrier_changes=said.get_attr("IFLA_CARRIER_CHANGES"),
        sent=frames["tx_packets"],
        refused=frames["tx_dropped"],
        received=frames["rx_packets"],
    )


def speed_bps(netns: str | None, name: str) -> float:
    """Return the speed that an interface reports, bit/s; 0 if it reports none or does not exist.

    netns: the file of its namespace; None: the namespace of this process.
    """
    from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool  # noqa: PLC0415  (loaded if it is asked for)

    def ask() -> int:
        device = IoctlEthtool(name)
        try:
            return int(device.get_link_settings().speed)
        finally:
            device.close()

    try:
        mbps = in_netns(netns, ask)
    except (EthtoolError, OSError):
        return 0.0
    return 0.0 if mbps in _UNKNOWN_SPEEDS else mbps * _BPS_PER_MBPS


def flow_control(netns: str | None, name: str) -> list[str]:
    """Return the directions in which an interface uses Ethernet flow control (IEEE 802.3 pause frames): `rx`, `tx`.

    Empty if it uses none, reports none, or does not exist. netns: as for `speed_bps`.
    """

    def ask() -> bytes:
        command = ctypes.create_string_buffer(_PAUSE.pack(_GPAUSEPARAM, 0, 0, 0), _PAUSE.size)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = _REQUEST.pack(name.encode(), ctypes.addressof(command))
            fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
        return command.raw

    try:
        _, _, receives, sends = _PAUSE.unpack(in_netns(netns, ask))
    except OSError:
        return []
    return [way for way, on in (("rx", receives), ("tx", sends)) if on]
