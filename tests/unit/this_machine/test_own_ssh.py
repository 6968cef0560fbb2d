# SPDX-License-Identifier: Apache-2.0
"""A tester's port that carries the user's own ssh connection is refused before anything is sent."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.platforms import external
from espbench.platforms.base import Placement
from espbench.this_machine import own_ssh

# The network namespace has eth0 with an address, a bridge over eth1 with the default route, and eth2.
ONE_WAY = "ip route add default via 198.51.100.9"
TWO_WAYS = "ip route add default nexthop via 198.51.100.9 nexthop via 192.0.2.9"
NETWORK = """\
set -e
for n in 0 1 2; do ip link add eth$n type veth peer name far$n; ip link set eth$n up; ip link set far$n up; done
ip link add br0 type bridge
ip link set eth1 master br0
ip link set br0 up
ip addr add 192.0.2.1/24 dev eth0
ip addr add 198.51.100.1/24 dev br0
$ROUTE
exec "$@"
"""
ASK = """
import sys
from espbench.errors import UsageError
from espbench.this_machine import own_ssh
for port in ("eth0", "eth1", "eth2", "br0"):
    try:
        own_ssh.refuse_port("ports: west", port, sys.argv[1] if len(sys.argv) > 1 else None)
    except UsageError as error:
        print(error)
"""


def refused(connection: str, *arguments: str, cleared: bool = False, route: str = ONE_WAY) -> str:
    """Return what is said of the ports; cleared: our own environment lacks the connection, as behind sudo."""
    python = [sys.executable, "-c", ASK, *arguments]
    # A shell that stays, as the user's does, with an environment of its own.
    behind = ["sh", "-c", 'env -u SSH_CONNECTION "$@"; true', "sh", *python] if cleared else python
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", NETWORK, "sh", *behind],
        env=os.environ | {"SSH_CONNECTION": connection, "ROUTE": route}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.root
@pytest.mark.parametrize(
    ("connection", "ports"),
    [
        ("192.0.2.77 50000 192.0.2.1 22", ["eth0"]),  # its address
        ("203.0.113.5 50000 198.51.100.1 22", ["eth1", "br0"]),  # the default route's; a bridge stands on it
        ("203.0.113.5 50000 192.0.2.1 22", ["eth0", "eth1", "br0"]),  # in by one, out by the other
        ("", []),
    ],
)
def test_a_port_by_which_the_user_is_logged_in_is_refused(connection: str, ports: list[str]) -> None:
    """Whichever way it carries the connection; what to do is said."""
    lines = refused(connection).splitlines()
    assert lines == [
        f"ports: west: expected a port of its own for the tester, got {port}, by which your ssh connection from "
        f"{connection.split(maxsplit=1)[0]} arrives: it would be cut; give another port, or log in another way"
        for port in ports
    ]


@pytest.mark.root
def test_all_ways_of_a_default_route_are_refused() -> None:
    """A client of the other family has no route, so any of them may be its."""
    said = refused("2001:db8::5 50000 2001:db8::1 22", route=TWO_WAYS)
    assert [f"got {port}" in said for port in ("eth0", "eth1", "eth2", "br0")] == [True, True, False, True]


@pytest.mark.root
def test_a_connection_is_known_behind_sudo() -> None:
    assert "got eth0, by which your ssh" in refused("192.0.2.77 50000 192.0.2.1 22", cleared=True)


@pytest.mark.root
def test_our_own_namespace_under_another_name_is_still_ours() -> None:
    connection = "192.0.2.77 50000 192.0.2.1 22"
    assert "got eth0" in refused(connection, "/proc/self/ns/net")
    assert refused(connection, "/proc/1/ns/net") == ""


def test_external_ports_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` and `calibrate` both."""
    monkeypatch.setattr(own_ssh, "connections", lambda: [("192.0.2.77", "192.0.2.1")])
    monkeypatch.setattr(own_ssh, "_carriers", lambda client, own: {"eth0"})
    placed = Placement(cpus={"tester tx": [0], "tester rx": [0]}, policy="", shared=[])
    port = external.ExternalPort("eth0", "10.0.0.2/24", "10.0.0.1")
    with pytest.raises(UsageError, match=r"ports: east: .*got eth0"):
        external.build(
            {"east": port}, placed, dut="d", i_own_this_network=True, line_rate_bps=None
        )  # fmt: skip


@pytest.fixture
def name() -> Iterator[str]:
    """Give this process a name that no other has: others of its kind hold connections too."""
    comm = Path("/proc/self/comm")
    usual, own = comm.read_text(), secrets.token_hex(6)
    comm.write_text(own)
    yield own
    comm.write_text(usual)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_that_a_server_holds_is_found(host: str, name: str) -> None:
    """Behind tmux, screen or a daemon nobody's environment tells of it."""
    with socket.create_server(
        (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET
    ) as listening:
        before = own_ssh.served({name})
        with socket.create_connection(listening.getsockname()[:2]):
            assert (host, host) in own_ssh.served({name})
        assert (host, host) not in before
        assert own_ssh.served({"no such program"}) == []


SERVED = """
import ctypes, socket, subprocess
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
ctypes.CDLL(None).prctl(15, b"sshd", 0, 0, 0)
listening = socket.create_server(("192.0.2.1", 0))
client = socket.create_connection(listening.getsockname())
"""


@pytest.mark.root
def test_a_port_of_somebodys_ssh_connection_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ASK", SERVED + ASK)
    assert "got eth0, by which an ssh connection from 192.0.2.1 arrives" in refused("", cleared=True)
