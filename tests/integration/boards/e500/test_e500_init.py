# SPDX-License-Identifier: Apache-2.0
"""The e500 guest's one program, compiled for this machine and run in a namespace: requests in, JSON lines out.

It is the same source; only byte order and the mounting of a process 1 differ in the guest.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.platforms.addressing import SYSCTLS, GatewayAddressing, LinkEnd, ip_lines
from espbench.platforms.virtual.parts import guest
from espbench.platforms.virtual.parts.tools import Runner
from espbench.stacks import netlink_xfrm as xfrm
from espbench.this_machine.network import NETNS_DIR
from espbench.this_machine.registry import Registry, Surroundings

pytestmark = [pytest.mark.root, pytest.mark.untimed]

ETHERTYPE = 0x88B5
PATIENCE_S = 120.0  # only ends a hang
LAN = LinkEnd("02:00:00:00:01:01", {4: "198.18.0.1/24", 6: "2001:2:0:1::1/64"})
WAN = LinkEnd("02:00:00:00:01:02", {4: "192.0.2.1/24", 6: "2001:2:0:2::1/64"})
TESTER = LinkEnd("02:00:00:00:02:01", {4: "198.18.0.2/24", 6: "2001:2:0:1::2/64"})
PEER = LinkEnd("02:00:00:00:02:02", {4: "192.0.2.2/24", 6: "2001:2:0:2::2/64"})
ADDRESSING = GatewayAddressing(
    LAN,
    WAN,
    TESTER,
    PEER,
    near={4: "198.18.16.0/20"},
    far={4: "198.19.0.0/16", 6: "2001:2:0:9::/64"},
    mtu=1400,
)


class Guest:
    """The program on two pipes."""

    def __init__(self, process: subprocess.Popen[bytes], netns: str) -> None:
        self.process = process
        self.netns = netns
        self.greeting = self.answer()
        self._number = 0

    def answer(self) -> dict[str, Any]:
        """The next line it prints."""
        assert self.process.stdout is not None
        reply: dict[str, Any] = json.loads(self.process.stdout.readline())
        return reply

    def say(self, line: str) -> None:
        """Send one line as it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, request: str) -> dict[str, Any]:
        """One request's answer."""
        self._number += 1
        self.say(f"{self._number} {request}")
        reply = self.answer()
        assert reply.pop("id") == self._number
        return reply

    def refusal(self, request: str) -> tuple[str, int | None]:
        """The error and errno of a request that cannot be done."""
        reply = self.ask(request)
        assert reply["ok"] is False
        return reply["error"], reply["errno"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled with the guest's own flags."""
    folder = tmp_path_factory.mktemp("init")
    with Registry(secrets.token_hex(3), folder / "state") as registry:
        runner = Runner(registry, folder / "log", lambda line: None)
        guest.compile_init("gcc", folder / "init", runner, "*.c", "x86/*.c")
    return folder / "init"


@pytest.fixture
def here(program: Path, tmp_path: Path) -> Iterator[Guest]:
    """Run the program in a namespace with two veth pairs: it has eth0 and eth1, the test eth0-peer."""
    with Registry(secrets.token_hex(3), tmp_path / "state") as registry:
        netns = registry.netns("init")
        for name in ("eth0", "eth1"):
            words = f"ip -n {netns} link add {name} type veth peer {name}-peer"
            subprocess.run(words.split(), check=True)
        subprocess.run(["ip", "-n", netns, "link", "set", "eth0-peer", "up"], check=True)
        process = registry.spawn(
            [str(program)],
            "init",
            Surroundings(netns=str(NETNS_DIR / netns)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            yield Guest(process, netns)


def shown(guest: Guest, *words: str) -> list[dict[str, Any]]:
    """Return what ip(8) says of the program's namespace."""
    done = subprocess.run(["ip", "-n", guest.netns, "-j", *words], capture_output=True, check=True)
    connections: list[dict[str, Any]] = json.loads(done.stdout)
    return connections


def test_greeting_and_clock(here: Guest) -> None:
    """Time only goes forward, in ns; wait ends when asked to, not before."""
    assert here.greeting["id"] == 0
    assert here.greeting["kernel"] == os.uname().release
    first = here.ask("ping")["now_ns"]
    assert first > here.greeting["now_ns"]
    assert here.ask(f"wait {first + 30_000_000}")["now_ns"] >= first + 30_000_000


def test_a_gateway_is_configured_as_by_ip_batch(here: Guest) -> None:
    """The very lines a namespace gets, and the state they leave."""
    for line in ip_lines(ADDRESSING, "eth0", "eth1"):
        assert here.ask(f"ip {line}") == {"ok": True}, line
    for key, value in SYSCTLS.items():
        if Path(f"/proc/sys/{key}").exists():
            assert here.ask(f"write /proc/sys/{key} {value}") == {"ok": True}, key
    links = {link["ifname"]: link for link in shown(here, "link")}
    for name, end in (("eth0", LAN), ("eth1", WAN)):
        assert links[name]["address"] == end.mac
        assert links[name]["mtu"] == 1400
        assert "NOARP" in links[name]["flags"]
        assert "UP" in links[name]["flags"]
        assert "MULTICAST" not in links[name]["flags"]
    addresses = {
        (link["ifname"], f"{entry['local']}/{entry['prefixlen']}")
        for link in shown(here, "addr")
        for entry in link["addr_info"]
        if link["ifname"] in ("eth0", "eth1")
    }
    assert addresses == {
        (name, address) for name, end in (("eth0", LAN), ("eth1", WAN)) for address in end.addresses.values()
    }
    neighbours = {(n["dst"], n["lladdr"], tuple(n["state"])) for n in shown(here, "neigh")}
    assert ("198.18.0.2", TESTER.mac, ("PERMANENT",)) in neighbours
    assert ("2001:2:0:2::2", PEER.mac, ("PERMANENT",)) in neighbours
    (route,) = shown(here, "route", "show", "198.19.0.0/16")
    assert (route["gateway"], route["dev"]) == ("192.0.2.2", "eth1")
    (six,) = shown(here, "-6", "route", "show", "2001:2:0:9::/64")
    assert (six["gateway"], six["dev"]) == ("2001:2:0:2::2", "eth1")
    assert here.ask("read /proc/sys/net/ipv4/ip_forward")["texts"] == {"/proc/sys/net/ipv4/ip_forward": "1\n"}


@pytest.mark.parametrize(
    ("request_", "error", "errno"),
    [
        ("ip link set dev eth9 up", "interface eth9: No such device", 19),
        ("ip link set dev eth0 mtu many", "`ip link set dev eth0 mtu many`: Invalid argument", 22),
        ("ip link set dev eth0 master br0", "`ip link set dev eth0 master br0`: Invalid argument", 22),
        ("ip link set dev eth0 address 02:00:00", "`ip link set dev eth0 address 02:00:00`: Invalid", 22),
        ("ip addr add 192.0.2.1/33 dev eth0", "`ip addr add 192.0.2.1/33 dev eth0`: Invalid", 22),
        ("ip route add 203.0.113.0/24 via 192.0.2.9 dev eth0", "Network is", None),
        ("ip route add 2001:db8::/32 via 192.0.2.9 dev eth0", "Invalid argument", 22),
        ("ip rule add from all lookup 7", "expected link set, addr add, neigh replace, route add", None),
        ("read /proc/self/mem", "cannot read /proc/self/mem: Input/output error", 5),
        ("write /proc/sys/kernel/ostype x", "cannot write /proc/sys/kernel/ostype: Permission denied", 13),
        ("write /proc/sys/kernel/ostype", "write: expected PATH TEXT", None),
        ("netlink six 00", "netlink: expected PROTOCOL", None),
        ("netlink 6 zz", "message 1: expected a netlink message in hex", None),
        ("netlink 6 00112233445566778899aabbccddeeff", "message 1: expected a netlink message in hex", None),
        ("listen eth9", "listen: interface eth9: No such device", 19),
        ("wait soon", "wait: expected NANOSECONDS since the boot", None),
        ("accel 3des-sha1 64 1000", "accel 3des-sha1 64 1000", None),  # no kernel but the guest's has it
        ("dance", "unknown request dance", None),
    ],
)
def test_refusals_name_the_cause(here: Guest, request_: str, error: str, errno: int | None) -> None:
    """The next request is served as if nothing had been."""
    said, number = here.refusal(request_)
    assert error in said
    assert errno in (None, number)
    assert here.ask("ping")["ok"] is True


@pytest.mark.parametrize("line", ["ping", "x ping", "99999999999 ping", "7"])
def test_a_line_that_is_no_request(here: Guest, line: str) -> None:
    """It has no id that an answer could bear."""
    here.say(line)
    reply = here.answer()
    assert reply["id"] is None
    assert "expected ID NAME" in reply["error"]
    assert here.ask("ping")["ok"] is True


def test_a_line_that_is_too_long_is_passed_over_whole(here: Guest) -> None:
    """Its rest is not taken for the next request."""
    here.say("1 netlink 6 " + "00" * 40_000)
    assert "at most 59999 bytes" in here.answer()["error"]
    assert here.ask("ping")["ok"] is True


def test_netlink_messages_are_relayed(here: Guest) -> None:
    """The bytes espbench's agent relays: policies go in, come back in a dump, and are refused twice."""
    policy = xfrm.Policy(xfrm.Selector("198.18.16.0/20", "198.19.0.0/16"), "out", action="block")
    put = xfrm.new_policy(policy)
    assert here.ask(f"netlink {xfrm.NETLINK_XFRM} {put.hex()}") == {"ok": True, "replies": [[]]}
    error, number = here.refusal(f"netlink {xfrm.NETLINK_XFRM} {put.hex()}")
    assert (error, number) == ("message 1: File exists", 17)
    dump = xfrm.dump_policies()
    dumped = here.ask(f"netlink {xfrm.NETLINK_XFRM} {dump.hex()} {dump.hex()}")
    assert len(dumped["replies"]) == 2
    for replies in dumped["replies"]:
        (reading,) = [xfrm.read_policy(bytes.fromhex(reply)) for reply in replies]
        assert reading == xfrm.reading_of(policy)


def test_the_kernels_own_remark_is_in_the_error(here: Guest) -> None:
    """An extended ACK's text, between what was asked and what errno means."""
    for line in ip_lines(ADDRESSING, "eth0", "eth1"):
        here.ask(f"ip {line}")
    line = "ip route add 203.0.113.0/24 via 198.51.100.9 dev eth0"
    error, number = here.refusal(line)
    assert error == f"`{line}`: Nexthop has invalid gateway: Network is unreachable"
    assert number == 101


def test_counters_move_with_frames(here: Guest) -> None:
    """The counters have the names of /proc/net/dev."""
    for line in ip_lines(ADDRESSING, "eth0", "eth1"):
        here.ask(f"ip {line}")
    before = here.ask("counters")["links"]
    send(here, bytes.fromhex(LAN.mac.replace(":", "")) + bytes(6) + b"\x99\x99" + bytes(46))
    wait_for(lambda: here.ask("counters")["links"]["eth0"]["rx_packets"] > before["eth0"]["rx_packets"])
    assert set(before["eth0"]) == {
        "rx_packets", "rx_errors", "rx_dropped", "tx_packets", "tx_errors", "tx_dropped",
    }  # fmt: skip


def test_requests_come_by_frame(here: Guest) -> None:
    """Padding is none of it; the answer goes to the line; another EtherType is not listened to."""
    for line in ip_lines(ADDRESSING, "eth0", "eth1"):
        here.ask(f"ip {line}")
    assert here.ask("listen eth0") == {"ok": True}
    mac = bytes.fromhex(LAN.mac.replace(":", ""))
    for ethertype, number in ((0x88B6, 76), (ETHERTYPE, 77)):
        send(
            here,
            mac + bytes(6) + struct.pack("!H", ethertype) + f"{number} ping\nxx".encode().ljust(46, b"\0"),
        )
    reply = here.answer()
    assert (reply["id"], reply["ok"]) == (77, True)


def test_idle_time_is_a_part_of_the_time(here: Guest) -> None:
    """Idle time is the sum over all CPUs of this machine; in ns, not in ticks."""

    def is_part() -> bool:
        first, second = here.ask("cpu"), here.ask("cpu")
        passed = second["now_ns"] - first["now_ns"]
        assert passed > 0
        return bool(0 <= second["idle_ns"] - first["idle_ns"] <= (os.cpu_count() or 1) * passed)

    # One reading alone may have what the kernel booked late, or a stall between clock and CPUs: try again.
    assert any(is_part() for _ in range(20))
    assert any(here.ask("cpu")["idle_ns"] % 1_000_000 for _ in range(3))


def test_esp_in_udp_is_taken_once(here: Guest) -> None:
    """A port that is taken is refused with errno."""
    here.ask("ip link set dev lo up")
    reply = here.ask("udp_encap 4500")
    if not reply["ok"]:
        pytest.skip(f"this kernel: {reply['error']}")
    assert here.refusal("udp_encap 4500") == ("ESP in UDP over IPv4, port 4500: Address already in use", 98)


def test_poweroff_and_a_line_that_hangs_up_end_it(here: Guest) -> None:
    """A program that is not process 1 just ends."""
    here.say("1 poweroff")
    assert here.process.wait(PATIENCE_S) == 0


def test_it_ends_when_its_line_is_closed(program: Path) -> None:
    """Nobody is left to serve."""
    done = subprocess.run(
        [str(program)], input=b"1 ping\n", capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2


def send(guest: Guest, frame: bytes) -> None:
    """Send a frame from eth0-peer."""
    code = (
        "import socket,sys; s=socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0-peer', 0)); "
        "s.send(bytes.fromhex(sys.argv[1]))"
    )
    argv = ["ip", "netns", "exec", guest.netns, "python3", "-I", "-S", "-c", code, frame.hex()]
    subprocess.run(argv, check=True)


def wait_for(condition: Any, within_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_program_is_run_to_its_end(here: Guest, tmp_path: Path) -> None:
    """The answer has what it printed and how it ended.

    One that does not end in time is killed; what a program leaves running lives on.
    """

    def words(*of: str) -> str:
        return " ".join(word.encode().hex() for word in of)

    script = f"echo 'a  b'; echo no >&2; sleep 600 & echo $! >{tmp_path}/left; exit 3"
    answer = here.ask(f"run 120000000000 {words('sh', '-c', script)}")
    assert (answer["rc"], answer["out"], answer["err"]) == (3, "a  b\n", "no\n")
    left = int((tmp_path / "left").read_text())
    os.kill(left, signal.SIGKILL)
    assert here.ask(f"run 120000000000 {words('sh', '-c', 'kill -9 $$')}")["rc"] == 128 + 9
    late = here.ask(f"run 100000000 {words('sleep', '60')}")
    assert (late["ok"], late["errno"]) == (False, errno.ETIMEDOUT)
    assert here.ask(f"run 1 {words('sh')}zz")["ok"] is False
    assert here.ask(f"run 120000000000 {words('no-such-program')}")["rc"] == 127


def test_a_text_of_several_lines_comes_in_pieces(here: Guest, tmp_path: Path) -> None:
    file = tmp_path / "conf"
    assert here.ask(f"put {file} 0 {b'one'.hex()}")["ok"]
    assert here.ask(f"put {file} 3 {(chr(10) + 'two' + chr(10)).encode().hex()}")["ok"]
    assert file.read_text() == "one\ntwo\n"
    assert here.ask(f"put {file} 0 {b'new'.hex()}")["ok"]
    assert file.read_text() == "new"
    assert not here.ask(f"put {file} 0 xyz")["ok"]
