# SPDX-License-Identifier: Apache-2.0
"""Finds which ports of this machine carry the ssh connection of whoever started us: a tester's port must not be one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from espbench.errors import UsageError
from espbench.this_machine.processes import parent

_OWN_NETNS = Path("/proc/self/ns/net")


def refuse_port(key: str, interface: str, netns: str | None) -> None:
    """Raise UsageError if a tester's port, of the plan's key, carries the user's own ssh connection.

    netns: the file of its network namespace; None: ours. A flood of test frames, or the port's new settings,
    would cut the connection, and with it the way to mend that.
    """
    if netns is not None and not _is_ours(netns):
        return
    for client, own in connections():
        if interface in _carriers(client, own):
            raise UsageError(
                f"{key}: expected a port of its own for the tester, got {interface}, by which your ssh connection "
                f"from {client} arrives: it would be cut; give another port, or log in another way"
            )


def connections() -> list[tuple[str, str]]:
    """Return (client, our address) of the ssh connections by which we and the programs that started us were reached.

    sudo(8) clears our own environment, so those of our ancestors are asked as well.
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


def _carriers(client: str, own: str) -> set[str]:
    """Return the interfaces of a connection: with our address, those by which answers leave, and what they stand on."""
    carriers = {
        link["ifname"]
        for link in _ip("addr", "show")
        if any(address.get("local") == own for address in link.get("addr_info", []))
    }
    # The route of answers; where the client cannot be reached any more, the default one.
    routes = _ip("route", "get", client) or [
        *_ip("route", "show", "default"),
        *_ip("-6", "route", "show", "default"),
    ]
    carriers |= {route["dev"] for route in routes if "dev" in route}
    links = _ip("link", "show")
    while below := {name for link in links for name in _below(link, carriers)} - carriers:
        carriers |= below
    return carriers - {"lo"}


def _below(link: dict[str, Any], carriers: set[str]) -> set[str]:
    """Return the ports that carriers stand on, by this link: a member of a bridge or bond, or what a VLAN is on."""
    if link.get("master") in carriers:
        return {link["ifname"]}
    return {link["link"]} if link["ifname"] in carriers and link.get("link") else set()


def _is_ours(netns: str) -> bool:
    try:
        return Path(netns).samefile(_OWN_NETNS)
    except OSError:
        return False


def _ip(*arguments: str) -> list[dict[str, Any]]:
    """Return what ip(8) says; nothing where it fails or is not there."""
    try:
        done = subprocess.run(["ip", "-j", *arguments], capture_output=True, text=True, check=False)
        return list(json.loads(done.stdout or "[]")) if done.returncode == 0 else []
    except (OSError, ValueError):
        return []
