# SPDX-License-Identifier: GPL-2.0-only
"""Opens a tester port: a Scapy L2 socket in the port's network namespace, and the kernel's facts about the port."""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scapy.arch.linux import L2Socket
from scapy.error import Scapy_Exception

from espbench_scapy.failure import Failure

SIOCGIFFLAGS, SIOCGIFMTU, SIOCGIFHWADDR, SIOCETHTOOL = 0x8913, 0x8921, 0x8927, 0x8946
ETHTOOL_GDRVINFO = 3
IFF_UP, IFF_RUNNING, ARPHRD_ETHER = 1, 0x40, 1
SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 263, 6, 23
SO_RCVBUFFORCE = 33
CLONE_NEWNET = 0x40000000
RECEIVE_BUFFER = 64 << 20
_LONGEST = 16_384
# These devices have no queue: a frame that they cannot pass on is lost (the first place of loss on the path).
_WITHOUT_QUEUE = ("veth", "tun")

_libc = ctypes.CDLL(None, use_errno=True)


class Port:
    """One open port; `asked` is its entry in the protocol's command `open`. Raise Failure if it cannot be opened."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.name, self.interface = asked["name"], asked["interface"]
        self.tx_cpu, self.rx_cpu = next(iter(asked.get("tx_cpus", [])), None), asked.get("rx_cpu")
        netns = asked.get("netns")
        if _is_initial(netns) and not asked.get("i_own_this_network", False):
            raise Failure(
                f"port {self.name}: interface {self.interface} is in the initial network namespace: test traffic "
                "does not belong on a network in use (RFC 6815)",
                'move the interface into a namespace of its own, or state "i_own_this_network": true',
            )
        try:
            with _inside(netns):
                self._ask()
                self._socket = L2Socket(iface=self.interface, promisc=True)
        except (OSError, Scapy_Exception, ValueError) as error:
            raise Failure(f"port {self.name}: opening {self.interface}: {error}") from error
        self._fd = self._socket.ins
        with contextlib.suppress(OSError):  # without the right to, the kernel's limit applies
            self._fd.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        self._fd.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self._fd.setblocking(False)

    def fileno(self) -> int:
        """Return the file descriptor of the socket, for select."""
        return self._fd.fileno()

    def send(self, frame: bytes) -> str:
        """Send a frame; return `sent`, `refused` (the device behind the port dropped it) or `full` (try again)."""
        try:
            self._socket.send(frame)  # type: ignore[arg-type]
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                return "refused" if self.driver.startswith(_WITHOUT_QUEUE) else "full"
            if error.errno == errno.EAGAIN:
                return "full"
            raise Failure(f"port {self.name}: sending on {self.interface}: {error.strerror}") from error
        return "sent"

    def receive(self) -> tuple[bytes, int] | None:
        """Return a frame, with its VLAN tag, and its arrival, ns of CLOCK_REALTIME; None if there is no frame."""
        try:
            _, frame, at = self._socket.recv_raw(_LONGEST)
        except BlockingIOError:
            return None
        except OSError as error:
            raise Failure(f"port {self.name}: receiving on {self.interface}: {error.strerror}") from error
        return (frame, int((at or 0.0) * 1e9)) if frame else None

    def begin(self) -> None:
        """Discard all frames that have arrived so far, and the count of overruns."""
        while self.receive() is not None:
            pass
        self.overrun()

    def overrun(self) -> int:
        """Return the number of frames for which the receive buffer had no room since the last call."""
        _, drops = struct.unpack("II", self._fd.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return int(drops)

    def close(self) -> None:
        """Close the socket, which also ends promiscuous mode."""
        self._socket.close()

    def opened(self) -> dict[str, Any]:
        """Return the port as the event `opened` lists it."""
        return {
            "name": self.name, "interface": self.interface, "driver": self.driver, "mac": self.mac,
            "mtu": self.mtu, "carrier": self.carrier, "speed_mbps": None,
            "sender": "Scapy L2 socket, one frame a call", "receiver": "Scapy L2 socket, one frame a call",
            "notes": [],
        }  # fmt: skip

    def _ask(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
            try:
                flags = _ifreq(query, self.interface, SIOCGIFFLAGS)
            except OSError as error:
                raise Failure(
                    f"port {self.name}: there is no interface {self.interface} in its network namespace",
                    "see `ip link` in that namespace",
                ) from error
            hardware = _ifreq(query, self.interface, SIOCGIFHWADDR)
            (self.mtu,) = struct.unpack_from("i", _ifreq(query, self.interface, SIOCGIFMTU), 16)
            self.driver = _driver(query, self.interface)
        (up,) = struct.unpack_from("H", flags, 16)
        (family,) = struct.unpack_from("H", hardware, 16)
        if family != ARPHRD_ETHER:
            raise Failure(f"port {self.name}: {self.interface} is not an Ethernet interface (type {family})")
        if not up & IFF_UP:
            raise Failure(
                f"port {self.name}: interface {self.interface} is down",
                f"bring it up: ip link set {self.interface} up",
            )
        self.carrier = bool(up & IFF_RUNNING)
        self.mac = hardware[18:24].hex(":")


def _ifreq(query: socket.socket, interface: str, what: int) -> bytes:
    return fcntl.ioctl(query, what, struct.pack("16s24x", interface.encode()[:15]))


def _driver(query: socket.socket, interface: str) -> str:
    data = array.array("B", struct.pack("I252x", ETHTOOL_GDRVINFO))
    try:
        request = struct.pack("16sP16x", interface.encode()[:15], data.buffer_info()[0])
        fcntl.ioctl(query, SIOCETHTOOL, request)
    except OSError:
        return ""
    return data.tobytes()[4:36].partition(b"\0")[0].decode(errors="replace")


def _is_initial(netns: str | None) -> bool:
    """Return whether a namespace is the machine's own: that of process 1 or, if it may not be read, of this process."""
    mine = Path(netns or "/proc/self/ns/net")
    for other in (Path("/proc/1/ns/net"), Path("/proc/self/ns/net")):
        try:
            return mine.samefile(other)
        except PermissionError:
            continue
        except OSError as error:
            raise Failure(
                f"network namespace {mine}: {error.strerror}", "give the path of one that exists"
            ) from error
    return True


@contextlib.contextmanager
def _inside(netns: str | None) -> Iterator[None]:
    """Enter a network namespace for the block; sockets that are opened in the block stay in the namespace."""
    if netns is None:
        yield
        return
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        there = os.open(netns, os.O_RDONLY)
        try:
            _enter(there, netns)
            try:
                yield
            finally:
                _enter(home, "the generator's own")
        finally:
            os.close(there)
    finally:
        os.close(home)


def _enter(fd: int, name: str) -> None:
    if _libc.setns(fd, CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"entering network namespace {name}: {os.strerror(code)}")
