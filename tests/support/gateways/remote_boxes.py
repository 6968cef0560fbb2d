# SPDX-License-Identifier: Apache-2.0
"""Builds two boxes that a test reaches over ssh: User-Mode Linux guests with a real sshd, wired like real boxes.

netns of the tester:  west tap ─ vec0 Home vec1 ══ taps and a bridge ══ vec1 Office vec0 ─ east tap
netns of management:  mgmt-home 10.77.1.1 ─ vec2 Home (10.77.1.2)    mgmt-office 10.77.2.1 ─ vec2 Office (10.77.2.2)

Each box has a power outlet and a serial console that labgrid's own drivers can use: a script asks this process, which
started the guests, to end or boot one, and `tail` shows the output of a guest's kernel.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from espbench.platforms.base import SIDES, Side
from espbench.platforms.channel import AgentChannel
from espbench.platforms.uml.uml_guest import BOOT_TIMEOUT_S, Guest, UmlMachine, boot
from espbench.platforms.uml.uml_kernel import XFRM_MODULES, UmlKernel
from espbench.stacks.daemons import packages
from espbench.this_machine.network import (
    NETNS_DIR,
    make_bridge,
    make_tap,
    make_veth,
    set_link,
    write_sysctls,
)
from espbench.this_machine.registry import Entry, Registry, interpreter
from support.gateways.boxes import sh

_MANAGEMENT = {"home": "10.77.1", "office": "10.77.2"}
_MACS = {"home": "02:00:00:77:01", "office": "02:00:00:77:02"}
_LAN = {"home": "west", "office": "east"}
_CLONE_NEWNET = 0x40000000
_SSHD = """\
set -e
mkdir -p -m 755 /run/sshd /root/sshd
cd /root/sshd
grep -q ^sshd: /etc/passwd || echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >> /etc/passwd
sed -i 's/^root:[^:]*:/root:*:/' /etc/shadow
sed -i 's#^root:.*#root:x:0:0:root:/root/sshd:/root/sshd/shell#' /etc/passwd
chmod 755 shell
chmod 600 host_key
ip link set lo up
ip addr add {address}/24 dev vec2
ip link set vec2 up
LD_LIBRARY_PATH={folder}/usr/lib/$(uname -m)-linux-gnu {folder}/usr/sbin/sshd -f config -E log
"""
_CONFIG = """\
HostKey /root/sshd/host_key
AuthorizedKeysFile /root/sshd/authorized
UsePAM no
PasswordAuthentication no
StrictModes no
PidFile none
UseDNS no
KexAlgorithms curve25519-sha256
Banner /root/sshd/banner
"""
# Like many boxes, this one prints a greeting at each login and at each remote command.
_SHELL = """\
#!/bin/sh
echo Welcome to this box
exec /bin/sh "$@"
"""


def sshd_folder() -> Path:
    """Return the folder of Debian's openssh-server, unpacked into the cache like the daemons."""
    packages.PACKAGES.setdefault("openssh", ("openssh-server",))
    packages._SAME_VERSION.setdefault("openssh", ("openssh-server",))
    return packages.unpacked("openssh")


@contextmanager
def inside(netns: str) -> Iterator[None]:
    """Put this thread, and the processes that it starts, into a network namespace while the context lasts."""
    setns = ctypes.CDLL(None, use_errno=True).setns
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(NETNS_DIR / netns, os.O_RDONLY)
    try:
        assert setns(there, _CLONE_NEWNET) == 0
        yield
    finally:
        assert setns(before, _CLONE_NEWNET) == 0
        os.close(before)
        os.close(there)


@dataclass
class RemoteBoxes:
    """Both guests, and the data that a profile needs to reach them."""

    netns: str
    management: str
    folder: Path
    registry: Registry
    # Guests die with the thread that started them, so this thread lives as long as they do.
    hands: ThreadPoolExecutor
    consoles: dict[Side, AgentChannel] = field(default_factory=dict)
    entries: dict[Side, list[Entry]] = field(default_factory=dict)
    booted: dict[Side, Future[None]] = field(default_factory=dict)
    process_list: list[str] = field(default_factory=list)  # all command lines at each power switch

    def host(self, side: Side) -> str:
        """Return a box's address on the management link."""
        return f"{_MANAGEMENT[side]}.2"

    def run(self, side: Side, script: str) -> str:
        """Run a shell command in the guest over its serial line, independently of ssh, and return its output."""
        reply = self.consoles[side].request("exec", 120.0, argv=["sh", "-c", script], stdin="", timeout_s=60)
        assert reply["rc"] == 0, (script, reply["err"])
        return str(reply["out"])

    def state(self, side: Side) -> dict[str, str]:
        """Return all state that a run may leave on a box: addresses, routes, settings, mounts, processes, files …"""
        commands = {
            "links": "for d in vec0 vec1 lo; do ip -o link show $d; done | sed 's/qdisc [a-z_]* //'",
            "addresses": "for d in vec0 vec1; do ip -o addr show dev $d scope global; done",
            "routes": "(ip -4 route show table all; ip -6 route show table all) | grep -v -e fe80 -e multicast",
            "sysctls": "cd /proc/sys/net; grep -r . ipv4 ipv6 core 2>/dev/null | sort"
            " | grep -v -e random -e uuid -e gc_stale -e tcp_fastopen_key",
            "xfrm": "ip xfrm state; ip xfrm policy",
            "mounts": "cat /proc/mounts",
            "processes": "ps -eo args | grep -v -e ' ps' -e '^\\[' -e 'sh -c' -e grep -e sort -e 'sshd: ' | sort",
            "files": "ls -d /tmp/espbench /run/espbench/layers /usr/lib/ipsec/charon 2>/dev/null",
        }
        return {what: self.run(side, f"{command} || true") for what, command in commands.items()}

    def switch(self, side: Side, state: str) -> None:
        """Cut a box's power, or start its boot, which `booted` reports when it is done."""
        if state == "off" and side in self.entries:
            self.hands.submit(self.registry.undo, self.entries.pop(side)).result()
        elif state == "on" and side not in self.entries:
            self.booted[side] = self.hands.submit(self.boot, side)

    def boot(self, *sides: Side) -> None:
        """Boot these guests in parallel, and wait until their sshd listens."""
        guests: dict[Side, Guest] = {}
        for side in sides:
            already = len(self.registry.entries)
            guests[side] = _boot(self.registry, side, self.netns, self.folder)
            self.entries[side] = self.registry.entries[already:]
        for side, guest in guests.items():
            guest.channel.wait_ready(BOOT_TIMEOUT_S)
            self.consoles[side] = guest.channel
            _start_sshd(self, side)

    def labgrid(self, side: Side, **changes: Any) -> dict[str, Any]:
        """Return the key `labgrid:` of a box for a profile."""
        return {"config": str(self.folder / "labgrid.yaml"), "target": side} | changes

    def box(self, side: Side, **changes: Any) -> dict[str, Any]:
        """Return the keys of one box for a profile."""
        return {
            "host": self.host(side), "identity": str(self.folder / "key"), "python": interpreter(),
            "known_hosts": str(self.folder / "known_hosts"), "lan": "vec0", "wan": "vec1",
        } | changes  # fmt: skip

    def profile(self, name: str = "boxes", **boxes: dict[str, Any]) -> Path:
        """Write a profile, and return its file; home= and office= change keys of a box."""
        written = {
            "name": name, "description": "guests behind ssh", "platform": "remote", "line_rate": "1Gbps",
            "ports": {end: {"netns": self.netns, "interface": end} for end in ("west", "east")},
            "boxes": {side: self.box(side, **boxes.get(side, {})) for side in SIDES},
        }  # fmt: skip
        file = self.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(written))
        return file


@contextmanager
def two_boxes(folder: Path) -> Iterator[RemoteBoxes]:
    """Boot both boxes and start their sshd and their power outlets; afterwards remove all of it."""
    for name in ("key", "host_home", "host_office", "other"):
        sh(f"ssh-keygen -q -t ed25519 -N '' -C test -f {folder}/{name}")
    with ThreadPoolExecutor(1) as hands, Registry("t" + secrets.token_hex(3)) as registry:
        boxes = RemoteBoxes(*_links(registry), folder, registry, hands)
        hands.submit(boxes.boot, *SIDES).result()
        known = [
            f"{boxes.host(side)} {(folder / f'host_{side}.pub').read_text().rpartition(' ')[0]}"
            for side in SIDES
        ]
        (folder / "known_hosts").write_text("\n".join(known) + "\n")
        with _outlets(boxes):
            yield boxes


# This password is in labgrid's file, and must appear nowhere else.
SECRET = "hunter22"
_OUTLET = """\
import socket, sys
with socket.socket(socket.AF_UNIX) as strip:
    strip.connect(sys.argv[1])
    strip.sendall(" ".join(sys.argv[2:]).encode())
    strip.recv(1)
"""


@contextmanager
def _outlets(boxes: RemoteBoxes) -> Iterator[None]:
    """Answer the script that labgrid's ExternalPowerDriver runs, and write labgrid's file."""
    # The script runs in another network namespace, which has its own abstract sockets. So the socket has a path, which
    # must be short.
    strip = boxes.registry.directory("outlets") / "strip"
    script = boxes.folder / "outlet.py"
    script.write_text(_OUTLET)
    targets = {}
    for side in SIDES:
        switch = f"{sys.executable} -I {script} {strip} {side}"
        drivers = [
            {"ExternalPowerDriver": {"cmd_on": f"{switch} on", "cmd_off": f"{switch} off", "delay": 0.5}},
            {"ExternalConsoleDriver": {"cmd": f"tail -n +1 -F {boxes.folder}/box-{side}-console.log"}},
        ]
        unused = {
            "NetworkPowerPort": {"model": "netio", "host": f"http://admin:{SECRET}@192.0.2.1", "index": 1}
        }
        targets[side] = {"drivers": drivers, "resources": unused}
    (boxes.folder / "labgrid.yaml").write_text(yaml.safe_dump({"targets": targets}))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(strip))
        server.listen()
        thread = threading.Thread(target=_serve, args=(server, boxes), name="outlets")
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket, boxes: RemoteBoxes) -> None:
    while True:
        try:
            asking, _ = server.accept()
        except OSError:  # the tests are over
            return
        with asking:
            side, state = asking.recv(100).decode().split()
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    boxes.process_list.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            boxes.switch("home" if side == "home" else "office", state)


def _links(registry: Registry) -> tuple[str, str]:
    """Make the links; return the namespaces of the tester and of the management.

    A guest opens all its taps in one namespace, in which the ssh client must not be, so a bridge leads out of it.
    """
    netns, management = registry.netns("lab"), registry.netns("management")
    write_sysctls(netns, {f"net/ipv6/conf/{conf}/disable_ipv6": "1" for conf in ("all", "default")})
    for tap in ("west", "east", "middle-home", "middle-office", "mgmt-home", "mgmt-office"):
        answers = None if tap.startswith("mgmt") else False
        make_tap(netns, tap)
        set_link(netns, tap, queue=10000, arp=answers, multicast=answers, up=True)
    make_bridge(netns, "middle", [f"middle-{side}" for side in SIDES], 1500)
    set_link(netns, "middle", arp=False, multicast=False, up=True)
    for side in SIDES:
        make_veth(netns, f"out-{side}", management, f"ssh-{side}", 1500)
        make_bridge(netns, f"br-{side}", [f"mgmt-{side}", f"out-{side}"], 1500)
        for port in (f"out-{side}", f"br-{side}"):
            set_link(netns, port, up=True)
        sh(f"ip -n {management} addr add {_MANAGEMENT[side]}.1/24 dev ssh-{side}")
        set_link(management, f"ssh-{side}", up=True)
    return netns, management


def _boot(registry: Registry, side: Side, netns: str, logs: Path) -> Guest:
    return boot(
        registry,
        f"box-{side}",
        UmlMachine(
            UmlKernel(),
            384,
            devices=[
                # MAC addresses are the same at each boot, like those of real ports.
                f"vec{number}:transport=tap,ifname={tap},depth=64,gro=1,mac={_MACS[side]}:{number}"
                for number, tap in enumerate((_LAN[side], f"middle-{side}", f"mgmt-{side}"))
            ],
            preload=XFRM_MODULES,
        ),
        logs,
        netns=str(NETNS_DIR / netns),
    )


def _start_sshd(boxes: RemoteBoxes, side: Side) -> None:
    channel, folder = boxes.consoles[side], boxes.folder
    # A receive window of megabytes makes a guest slow: 3 MB then take 7 s instead of 3.
    boxes.run(side, "mkdir -p /root/sshd; sysctl -qw net.ipv4.tcp_rmem='4096 65536 131072'")
    for name, text in (
        ("host_key", (folder / f"host_{side}").read_text()),
        ("authorized", (folder / "key.pub").read_text()),
        ("config", _CONFIG),
        ("shell", _SHELL),
        ("banner", "Authorised users only.\n"),
    ):
        channel.request("write", path=f"/root/sshd/{name}", text=text)
    boxes.run(side, _SSHD.format(address=boxes.host(side), folder=sshd_folder()))
