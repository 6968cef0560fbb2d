# SPDX-License-Identifier: Apache-2.0
"""TRex launched from TREX_DIR, in the namespace of the tester's ports; with a program that stands in for it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from espbench.errors import EspbenchError, MachineLacks
from espbench.generators import choose, trex
from espbench.generators.trex import TrexGenerator
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.validity.faults import tester_faults
from espbench.platforms import placement
from espbench.platforms.base import Testbed
from espbench.platforms.netns import NetnsPlatform
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY

pytestmark = [pytest.mark.root, pytest.mark.untimed]

PROGRAM = """#!{python}
import json, pathlib, sys
sys.path.insert(0, {tests!r})
from support.generators.trex_server import FakeTrex
pathlib.Path({launch_file!r}).write_text(json.dumps(
    [sys.argv[1:], json.loads(pathlib.Path(sys.argv[sys.argv.index("--cfg") + 1]).read_text()),
     pathlib.Path.cwd().as_posix(), [line.split(":")[0].strip() for line in open("/proc/net/dev")][2:]]
))
print("a stand-in for TRex", flush=True)
interfaces = tuple(
    vdev.split("iface=")[1].split(",")[0]
    for vdev in json.loads(pathlib.Path(sys.argv[sys.argv.index("--cfg") + 1]).read_text())[0]["interfaces"]
)
with FakeTrex(listen_on=4501, interfaces=interfaces, **json.loads({traps!r})) as server:
    server.serve()
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets this process wait for its CPU: no figure of these tests is a time."""
    monkeypatch.setattr(trex, "_UNSEEN_S", 60.0)


@pytest.fixture
def launch_file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """TREX_DIR with the stand-in, its traps as the parameter; the file in which it says how it was started."""
    traps = json.dumps(getattr(request, "param", {}))
    folder, launch_file = tmp_path / "trex", tmp_path / "launched.json"
    folder.mkdir()
    program = folder / "_t-rex-64"
    tests = str(Path(__file__).parents[2])
    program.write_text(
        PROGRAM.format(python=sys.executable, tests=tests, launch_file=str(launch_file), traps=traps)
    )
    program.chmod(0o755)
    monkeypatch.setenv("TREX_DIR", str(folder))
    monkeypatch.setattr(trex, "SETTLED_S", 0.05)
    return launch_file


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry(secrets.token_hex(3)) as made:
        yield made


@pytest.fixture
def bed(registry: Registry) -> Testbed:
    return NetnsPlatform(GATEWAY_TO_GATEWAY).calibration_bed(registry, placement.choose())


def test_it_is_launched_beside_the_ports_and_ends_with_the_generator(
    registry: Registry, bed: Testbed, launch_file: Path, tmp_path: Path
) -> None:
    """TRex gets the recorded command line in the ports' namespace, once for each set; nothing is left."""
    before = list(registry.entries)
    generator = choose.new("trex", {"server": None, "ports": (0, 1)}, registry, tmp_path / "generator.log")
    ports = list(bed.ports.values())
    first = generator.open(ports, [0])
    assert first[0]["sender"] == "TRex v3.08, net_af_packet"
    arguments, (config,), folder, interfaces = json.loads(launch_file.read_text())
    assert arguments[:3] == ["-i", "--stl", "--cfg"]
    assert arguments[4:] == ["--no-scapy-server", "--iom", "0", "--no-key", "--no-termio", "--no-watchdog"]
    assert folder == str(launch_file.parent / "trex")
    assert {p.interface for p in ports} <= set(interfaces)
    assert f"iface={ports[0].interface}," in config["interfaces"][0]
    assert config["port_info"][1] == {"src_mac": ports[1].mac, "dest_mac": ports[1].next_hop_mac}

    hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
    traffic = Traffic(((64, 1),), 4, "both-ways")
    offered = generator.offer(traffic.streams(bed, hops, 4000.0), 0.3, 0.0)
    assert [s.rx_frames for s in offered.streams] == [600, 600]
    assert tester_faults(offered, 0, {}) == []
    assert offered.senders_run_ms > 0

    pid = generator.pid()
    generator.open(ports, [0])
    assert generator.pid() != pid
    generator.close()
    assert registry.entries == before
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("launch_file", [{"holds": 7}], indirect=True)
def test_what_it_counts_as_sent_and_keeps_was_not_sent(
    registry: Registry, bed: Testbed, launch_file: Path, tmp_path: Path
) -> None:
    """The kernel knows; the server is started anew, or those frames would be the next trial's."""
    generator = TrexGenerator(registry, tmp_path / "generator.log")
    generator.open(list(bed.ports.values()), [])
    hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
    streams = Traffic(((64, 1),), 4, "one-way").streams(bed, hops, 1000.0)
    pid = generator.pid()
    offered = generator.offer(streams, 0.3, 0.0)
    (one,) = offered.streams
    assert (one.tx_frames, one.unsent, one.rx_frames, one.lost) == (293, 7, 293, 0)
    (reason,) = tester_faults(offered, 0, {})
    assert reason.text.endswith("frames (97.67 %): 7 that TRex counted as sent never left its port")
    generator.offer(streams, 0.1, 0.0)
    assert generator.pid() != pid
    generator.close()


def test_its_death_is_told_with_its_last_words(
    registry: Registry, bed: Testbed, launch_file: Path, tmp_path: Path
) -> None:
    """The next request says it, whichever that is."""
    generator = TrexGenerator(registry, tmp_path / "generator.log")
    generator.open(list(bed.ports.values()), [])
    os.killpg(generator.pid(), signal.SIGKILL)
    with pytest.raises(EspbenchError, match=r"TRex died \(signal 9\); it said: a stand-in for TRex"):
        generator.ping()
    generator.close()


def test_a_link_that_drops_for_a_moment_makes_the_trial_invalid(
    registry: Registry, bed: Testbed, launch_file: Path, tmp_path: Path
) -> None:
    """TRex does not see it of such a port; the kernel counts it."""
    generator = TrexGenerator(registry, tmp_path / "generator.log")
    generator.open(list(bed.ports.values()), [])
    west = bed.ports["west"]

    def flap(event: dict[str, object]) -> None:
        for state in ("down", "up"):
            subprocess.run(
                ["nsenter", f"--net={west.netns}", "ip", "link", "set", west.interface, state], check=True
            )

    hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
    streams = Traffic(((64, 1),), 4, "one-way").streams(bed, hops, 1000.0)
    offered = generator.offer(streams, 0.8, 0.0, on_progress=flap)
    generator.close()
    assert f"link of port west ({west.interface}) went down during the trial" in [
        *map(str, tester_faults(offered, 0, {}))
    ]


def test_ports_it_cannot_serve_are_refused(
    registry: Registry, bed: Testbed, launch_file: Path, tmp_path: Path
) -> None:
    """The initial namespace, two namespaces, frames its ring cannot hold."""
    west, east = bed.ports.values()
    for ports, words in (
        ([replace(west, netns=None), replace(east, netns=None)], "in the initial one"),
        ([west, replace(east, netns="/proc/1/ns/net")], "in one network namespace"),
        ([replace(west, mtu=9000), east], "MTU of at most 1500, got 9000"),
    ):
        generator = TrexGenerator(registry, tmp_path / "generator.log")
        with pytest.raises(EspbenchError, match=words):
            generator.open(ports, [])
        generator.close()


@pytest.mark.parametrize("where", [None, "/nonexistent"])
def test_without_trex_the_remedy_is_named(where: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """But a server of the user's own needs nothing here."""
    monkeypatch.delenv("TREX_DIR", raising=False)
    if where:
        monkeypatch.setenv("TREX_DIR", where)
    with pytest.raises(MachineLacks, match="export TREX_DIR="):
        choose.require("trex", {"server": None, "ports": (0, 1)})
    choose.require("trex", {"server": ("192.0.2.9", 4501), "ports": (0, 1)})
