# SPDX-License-Identifier: Apache-2.0
"""Finds which ports of this machine carry ssh connections, above all the user's: the tester must not use them."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from espbench.errors import UsageError
from espbench.this_machine.network import by_netlink
from espbench.this_machine.processes import parent

SERVERS = frozenset({"sshd", "sshd-session", "dropbear"})
_ESTABLISHED = "01"  # TCP_ESTABLISHED
_IPV6 = 6
_OWN_NETNS = Path("/proc/self/ns/net")


def refuse_port(key: str, interface: str, netns: str | None) -> None:
    """Raise UsageError if a tester's port, which the plan's key names, carries an ssh connection.

    netns: the file of its network namespace; None: that of this process. A flood of test frames, or new settings of
    the port, would cut the connection, and the user could not log in to repair it.
    """
    if netns is not None and not _is_ours(netns):
        return
    ours = connections()
    for client, own in dict.fromkeys([*ours, *served()]):
        if interface in _carriers(client, own):
            whose = "your" if (client, own) in ours else "an"
            raise UsageError(
                f"{key}: expected a port of its own for the tester, got {interface}, by which {whose} ssh connection "
                f"from {client} arrives: it would be cut; give another port, or log in another way"
            )


def connections() -> list[tuple[str, str]]:
    """Return (client, our address) of the ssh connections by which the user started this process or its ancestors.

    sudo(8) clears the environment of this process, so the environments of its ancestors are read as well.
    """
    pairs = []
    texts = [os.environ.get("SSH_CONNECTION", "")]
    pid = os.getpid()
    while (pid := parent(pid)) > 1:
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if entry.startswith(b"SSH_CONNECTION="):
                    texts.append(entry.partition(b"=")[2].decode(errors="replace"))
    for text in texts:
        ends = text.split()
        if len(ends) == 4:
            pairs.append((ends[0].partition("%")[0], ends[2].partition("%")[0]))
    return list(dict.fromkeys(pairs))


def served(servers: Collection[str] = SERVERS) -> list[tuple[str, str]]:
    """Return (client, our address) of the connections that ssh servers have in the network namespace of this process.

    In tmux(1) or screen(1), or if a daemon started it, this process is not a descendant of the user's ssh session.
    """
    established = {inode: ends for family in ("tcp", "tcp6") for inode, ends in _established(family)}
    held = (inode for process in _processes(servers) for inode in _sockets(process))
    return list(dict.fromkeys(established[inode] for inode in held if inode in established))


def _processes(names: Collection[str]) -> Iterator[Path]:
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # the process has ended
            if comm.read_text().strip() in names:
                yield comm.parent


def _sockets(process: Path) -> Iterator[str]:
    """Yield the inodes of a process' sockets; none if this user may not read them."""
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                    yield match[1]


def _established(family: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield (inode, (remote address, our address)) of the established connections in this process' namespace."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/self/net/{family}").read_text().splitlines()[1:]:
            _, local, remote, state, *_, inode = line.split()[:10]
            if state == _ESTABLISHED:
                yield inode, (_address(remote), _address(local))


def _address(text: str) -> str:
    """Return the address in a text of the kernel such as `0100007F:0016`: 32-bit words in the machine's byte order."""
    digits = text.partition(":")[0]
    words = (int(digits[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(digits), 8))
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _carriers(client: str, own: str) -> set[str]:
    """Return the interfaces that carry a connection.

    They are the one with our address, those by which answers leave, and the interfaces that these are built on.
    """

    def ask(network: Any) -> set[str]:
        carriers = {
            address["index"]
            for address in network.get_addr()
            if own == (address.get_attr("IFA_LOCAL") or address.get_attr("IFA_ADDRESS"))
        }
        # Answers take this route; if the client cannot be reached any more, the default routes.
        for route in _route_to(network, client) or network.get_default_routes():
            carriers |= _ways(route)
        links = list(network.get_links())
        while below := {index for link in links for index in _below(link, carriers)} - carriers:
            carriers |= below
        return {link.get_attr("IFLA_IFNAME") for link in links if link["index"] in carriers}

    return by_netlink(None, ask, "cannot tell which ports carry ssh connections") - {"lo"}


def _route_to(network: Any, client: str) -> list[Any]:
    """Return the routes to an address; an empty list if the kernel has none."""
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415  (loaded with the network)

    try:
        version = ipaddress.ip_address(client).version
        family = socket.AF_INET6 if version == _IPV6 else socket.AF_INET
        return list(network.route("get", family=family, dst=client))
    except (NetlinkError, ValueError):
        return []


def _ways(route: Any) -> set[int]:
    """Return the interfaces by which a route leaves; several if it has several next hops."""
    one = route.get_attr("RTA_OIF")
    return {way["oif"] for way in route.get_attr("RTA_MULTIPATH") or []} | ({one} if one else set())


def _below(link: Any, carriers: Collection[int]) -> set[int]:
    """Return the interface that carriers are built on according to this link.

    It is the link itself, as a member of a bridge or bond, or the interface below the link, if that is a VLAN.
    """
    if link.get_attr("IFLA_MASTER") in carriers:
        return {link["index"]}
    below = link.get_attr("IFLA_LINK")
    elsewhere = link.get_attr("IFLA_LINK_NETNSID") is not None  # the index is of another namespace
    return {below} if link["index"] in carriers and below and not elsewhere else set()


def _is_ours(netns: str) -> bool:
    try:
        return Path(netns).samefile(_OWN_NETNS)
    except OSError:
        return False
