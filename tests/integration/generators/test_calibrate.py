# SPDX-License-Identifier: Apache-2.0
"""`espbench calibrate`: every generator side by side, on a veth pair and on the user's own ports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.gateways.boxes import RouterBox, leftovers, sh

pytestmark = pytest.mark.root

ROW = re.compile(r"^(native xdp|native af_xdp|native af_packet|scapy|trex) +(.*)$", re.MULTILINE)
SHORT = ("--frame-size", "64", "--seconds", "0.5")


def calibrate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "espbench", "calibrate", *SHORT, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "COLUMNS": "80"},
    )


def rows(output: str) -> dict[str, list[str]]:
    return {name: cells.split() for name, cells in ROW.findall(output)}


def test_all_generators_stand_side_by_side() -> None:
    """The native one's three ways and Scapy have figures in all columns; TRex has them or a reason."""
    done = calibrate("--rate", "500")
    assert done.returncode == 0, done.stderr
    table = rows(done.stdout)
    assert set(table) == {"native xdp", "native af_xdp", "native af_packet", "scapy", "trex"}
    for name in ("native xdp", "native af_xdp", "native af_packet", "scapy"):
        assert "–" not in table[name], done.stdout
        assert table[name][2] == "500"  # paced at
    assert "TREX_DIR" in os.environ or "trex: not measured: no TRex: TREX_DIR is not set" in done.stdout
    assert not leftovers()


@pytest.fixture
def cable() -> Iterator[tuple[str, str]]:
    """Two ports of the user's in namespaces of their own, joined."""
    with RouterBox() as box:
        sh(f"ip link add name c0 netns {box.west} type veth peer name c1 netns {box.east}")
        for netns, port in ((box.west, "c0"), (box.east, "c1")):
            sh(f"ip netns exec {netns} ethtool -K {port} gro on")
        for netns, port in ((box.west, "c0"), (box.east, "c1")):  # only then: else neither takes XDP frames
            sh(f"ip -n {netns} link set {port} up")
        yield f"c0@{box.west}", f"c1@{box.east}"


@pytest.mark.slow
def test_the_users_own_ports(cable: tuple[str, str]) -> None:
    """Frames go over the cable from one to the other. Without a cable: unit/runs/test_calibration.py."""
    west, east = cable
    done = calibrate("--west", west, "--east", east, "--generator", "native", "--rate", "1000")
    assert done.returncode == 0, done.stderr
    table = rows(done.stdout)
    assert set(table) == {"native xdp", "native af_xdp", "native af_packet"}
    assert all("–" not in cells for cells in table.values()), done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--west", "a0"], 2, "both --west and --east"),
        (["--generator", "moongen"], 2, "expected one of native, trex, scapy, got moongen"),
        (["--west", "a0@no-such", "--east", "a1@no-such"], 2, "network namespace no-such"),
        (["--west", "lo", "--east", "lo", "--generator", "native"], 1, "RFC 6815"),
    ],
)
def test_mistakes_are_answered(arguments: list[str], code: int, said: str) -> None:
    """One message, nothing left behind."""
    done = calibrate(*arguments)
    assert done.returncode == code
    assert said in done.stderr + done.stdout
    assert not leftovers()
