# SPDX-License-Identifier: Apache-2.0
"""Builds boxes with a known rate, loss and delay, which espbench measures as external DUTs.

netns <tag>-w          netns <tag>-d            netns <tag>-e
 a0 10.0.1.2 ───── d0 10.0.1.1   10.0.2.1 d1 ───── a1 10.0.2.2
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from espbench.errors import EspbenchError
from espbench.this_machine import network
from espbench.this_machine.processes import start_time
from support.plans import PINNED

IFA_F_NODAD = 0x02  # linux/if_addr.h: the address is usable at once
GONE_S = 60.0
_PROCESS = "process "


class RouterBox:
    """A namespace that routes between two links; `tc` and `nft` then limit, delay or drop its frames in known ways."""

    def __init__(self) -> None:
        tag = "box" + secrets.token_hex(2)
        self.west, self.dut, self.east = f"{tag}-w", f"{tag}-d", f"{tag}-e"

    def __enter__(self) -> Self:
        try:
            for netns in (self.west, self.dut, self.east):
                network.make_netns(netns)
                network.set_link(netns, "lo", up=True)
            for number, (netns, port) in enumerate(((self.west, "a0"), (self.east, "a1"))):
                network.make_veth(self.dut, f"d{number}", netns, port, 1500)
                self._address(f"d{number}", f"10.0.{number + 1}.1/24")
                self._address(f"d{number}", f"fd00:{number + 1}::1/64", flags=IFA_F_NODAD)
                network.set_link(self.dut, f"d{number}", up=True)
                network.set_link(netns, port, arp=False, up=True)
            network.write_sysctls(self.dut, {"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1"})
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for netns in (self.west, self.dut, self.east):
            with contextlib.suppress(EspbenchError):
                network.remove_netns(netns)

    def _address(self, port: str, address: str, **more: int) -> None:
        def add(kernel: Any) -> None:
            (index,) = kernel.link_lookup(ifname=port)
            kernel.addr("add", index=index, address=address, **more)

        network.by_netlink(self.dut, add, f"cannot give {port} the address {address}")

    def give_own_threads(self, cpu: int) -> None:
        """Serve both ports by kernel threads on one CPU, with rings that overflow like those of a real box."""
        for number, (netns, port) in enumerate(((self.west, "a0"), (self.east, "a1"))):
            network.set_features(netns, port, tso=False, gso=False)
            network.set_features(self.dut, f"d{number}", gro=True)
            network.thread_napi(self.dut, f"d{number}")
        for comm in Path("/proc").glob("[0-9]*/comm"):
            with contextlib.suppress(OSError):
                if comm.read_text().startswith(("napi/d0-", "napi/d1-")):
                    os.sched_setaffinity(int(comm.parent.name), {cpu})

    def inside(self, command: str) -> None:
        """Run a command in the box."""
        sh(f"ip netns exec {self.dut} {command}")

    def limit_rate(self, bits_per_second: int, *, burst: int = 15_000, limit: int = 60_000) -> None:
        """Forward at most this rate, counting frames without FCS; burst and limit (the queue) in bytes."""
        for port in ("d0", "d1"):
            self.inside(
                f"tc qdisc replace dev {port} root tbf rate {bits_per_second}bit burst {burst} limit {limit}"
            )

    def delay(self, microseconds: int) -> None:
        """Delay every frame by at least this time; skip the test if the kernel has no netem."""
        probe = "tc qdisc replace dev lo root netem && tc qdisc del dev lo root"
        if subprocess.run(
            f"ip netns exec {self.dut} sh -c '{probe}'", shell=True, capture_output=True, check=False
        ).returncode:
            pytest.skip("this kernel has no netem")
        for port in ("d0", "d1"):
            self.inside(f"tc qdisc replace dev {port} root netem delay {microseconds}us limit 100000")

    def hold(self, frames: int, bits_per_second: int) -> None:
        """Hold at most this many frames in a queue before a server of this rate, and drop the others."""
        for port in ("d0", "d1"):
            self.inside(
                f"tc qdisc replace dev {port} root handle 1: tbf rate {bits_per_second}bit burst 1600 limit 100000"
            )
            self.inside(f"tc qdisc replace dev {port} parent 1:1 handle 10: pfifo limit {frames}")

    @contextlib.contextmanager
    def drops_all(self, after_s: float, for_s: float) -> Iterator[None]:
        """Forward nothing for at least for_s, from after_s after the start of the context."""

        def drop() -> None:
            time.sleep(after_s)
            try:
                self.inside("sysctl -qw net.ipv4.ip_forward=0")
                time.sleep(for_s)
            finally:
                self.inside("sysctl -qw net.ipv4.ip_forward=1")

        thread = threading.Thread(target=drop)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def limit_frames(self, per_second: int, *, burst: int = 100) -> None:
        """Forward at most this many frames per second, of any size, by a token bucket, and drop the others."""
        rule = f"limit rate over {per_second}/second burst {burst} packets drop"
        self.inside("nft add table ip box")
        self.inside("nft add chain ip box forward '{ type filter hook forward priority 0 ; }'")
        self.inside(f"nft add rule ip box forward {rule}")

    def plan(self, **changes: Any) -> dict[str, Any]:
        """Return a plan for this box; changes: keys of the plan; `throughput`: keys of the throughput test."""
        throughput = {
            "loss_goals": [0], "trial": "1s", "final_trial": "2s", "resolution": "1%", "settle": "50ms",
            "residue": "200ms", "learning": "50ms", "warm_up": "200ms",
        }  # fmt: skip
        throughput |= changes.pop("throughput", {})
        plan = {
            "name": "box",
            "topology": "external",
            "dut": "known-truth",
            "line_rate": "1Gbps",
            "ports": {
                "west": {"netns": self.west, "interface": "a0", "address": "10.0.1.2/24", "gateway": "10.0.1.1"},
                "east": {"netns": self.east, "interface": "a1", "address": "10.0.2.2/24", "gateway": "10.0.2.1"},
            },
            "frame_sizes": [64],
            "tests": [{"throughput": throughput}],
        }  # fmt: skip
        return plan | PINNED | changes


def sh(command: str) -> str:
    """Run a shell command and return its output; AssertionError with its messages if it fails."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
    return done.stdout


def leftovers(run_id: str | None = None) -> set[str]:
    """Return the things that a run left on the machine: namespaces, journal, files, mounts, processes.

    Without a run id: everything of espbench that belongs to no living controller (other runs may be active), and that
    was not there before the tests (others may have killed a run). Processes of a run get some time to disappear: a
    killed process ends only when it gets a CPU, and so do the copies that a guest in virtual time makes of itself.
    """
    if run_id is None:
        return _ownerless() - _BEFORE
    deadline = time.monotonic() + GONE_S
    while True:
        left = _of_run(run_id)
        if not any(name.startswith(_PROCESS) for name in left) or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def _ownerless() -> set[str]:
    names = set()
    living = set()
    for journal in Path("/run/espbench").glob("*.journal"):
        with contextlib.suppress(FileNotFoundError):
            controller = json.loads(journal.read_text().partition("\n")[0])
            if start_time(controller["pid"]) == controller["start"]:
                living.add(journal.stem)
            else:
                names.add(f"journal {journal.name}")
    for path in Path("/run/netns").glob("espbench-*"):
        if path.name.split("-")[1] not in living:
            names.add(f"netns {path.name}")
    for path in _control_groups():
        if path.name.startswith("espbench-") and path.name.split("-")[1] not in living:
            names.add(f"control group {path.name}")
    return names | _orphans()


def _of_run(run_id: str) -> set[str]:
    places = (Path("/run/netns"), Path("/run/espbench"), Path(tempfile.gettempdir()), Path("/dev/shm"))
    names = {str(path) for place in places for path in place.glob(f"*{run_id}*")}
    names |= {str(path) for path in _control_groups() if run_id in path.name}
    names |= {line for line in Path("/proc/self/mounts").read_text().splitlines() if run_id in line}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if run_id.encode() in path.read_bytes():
                names.add(f"{_PROCESS}{path.parent.name}")
    return names


def _control_groups() -> Iterator[Path]:
    """Yield all control groups of the machine; glob() would fail if one vanishes meanwhile."""
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        yield from (Path(folder, name) for name in names)


def _orphans() -> set[str]:
    """Return the generators and agents whose controller is gone, so that process 1 is their parent."""
    names = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            words = (status.parent / "cmdline").read_bytes().decode(errors="replace").split("\0")
            ours = words[0].endswith("espbench-traffic") or any(
                word.endswith(("/agent.py", "/launcher.py")) for word in words
            )
            if ours and "\nPPid:\t1\n" in status.read_text():
                names.add(f"{_PROCESS}{status.parent.name} {words[0]}")
    return names


_BEFORE = _ownerless()
