# SPDX-License-Identifier: Apache-2.0
"""Builds a test bed in virtual time whose DUT is known to the nanosecond and to the frame; needs no root or network.

generator ── west ── truth_dut.c ── east ── generator        (links in shared memory; harness/emulator/LINK.md)

with truth_dut.set_up(tmp_path, service_ns=10_000, buffer=64) as dut:
record = measure(dut.setup, ...)
assert record.lost == dut.counts()["full"][0]
"""

from __future__ import annotations

import atexit
import functools
import json
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from espbench.generators import native
from espbench.generators.base import Noise, Offered, OnProgress, Stream
from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.setup import Setup
from espbench.platforms import link_errors
from espbench.platforms.base import Port, PortName, Testbed
from espbench.platforms.link_errors import LinkErrors
from espbench.platforms.virtual import virtual_pair
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY

ROOT = Path(__file__).parents[3]
LATENCY_NS = link_errors.LATENCY_NS
# Learning frames and warm-ups are shorter than this, so that the settings for trials do not apply to them.
TRIAL_S = 0.5


@functools.cache
def program() -> Path:
    """Return the DUT's program, compiled once in a session."""
    folder = Path(tempfile.mkdtemp(prefix="truth-dut-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source = Path(__file__).with_name("truth_dut.c")
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'harness/emulator/qemu'}"]
    subprocess.run(["gcc", *flags, "-o", folder / "truth_dut", source], check=True)
    return folder / "truth_dut"


def wire_ns(size: int, mbps: int = 1000) -> int:
    """Return the time from the first bit of a frame of this size to its last, preamble and FCS included, ns."""
    return (8 + size) * 8_000 // mbps


def latency_ns(size: int, *, delay_ns: int = 0, service_ns: int = 0, mbps: int = 1000) -> int:
    """Return the latency of a frame that finds the DUT idle, as the generator measures it, ns.

    It is the sum of the times of both wires, both links, and the DUT between them.
    """
    return 2 * (wire_ns(size, mbps) + LATENCY_NS) + service_ns + delay_ns


def served(arrivals: Sequence[int], service_ns: int, buffer: int) -> list[int | None]:
    """Return the time at which each frame that arrives at these times has been served; None if the buffer is full."""
    done: list[int] = []
    all_of_them: list[int | None] = []
    for now in arrivals:
        if len(done) >= buffer and done[-buffer] > now:
            all_of_them.append(None)
            continue
        done.append(max(now, done[-1] if done else 0) + service_ns)
        all_of_them.append(done[-1])
    return all_of_them


class Generator(NativeGenerator):
    """A generator that sends settings to the DUT just before each trial."""

    in_each_trial = ""

    def offer(
        self,
        streams: list[Stream],
        duration_s: float,
        residue_s: float,
        quiet_s: float | None = None,
        on_progress: OnProgress | None = None,
        noise: Sequence[Noise] = (),
    ) -> Offered:
        if self.in_each_trial and duration_s >= TRIAL_S:
            self.ask_dut(self.in_each_trial)
        return super().offer(streams, duration_s, residue_s, quiet_s, on_progress, noise)

    def ask_dut(self, line: str) -> str:
        """Send a line to the DUT, and return its answer."""
        answer = self.console("west", line, "{", 1.0)[-1]
        assert "not understood" not in answer, answer
        return answer


class Bed(Testbed):
    """A test bed in which each trial begins in the state in which the first one began."""

    generator: Generator

    def attached(self, generator: object) -> None:
        """Keep the generator, which is the clock of the trials."""
        assert isinstance(generator, Generator)
        self.generator = generator

    def begin_trial(self, chance: str = "") -> None:
        self.generator.branch([])

    def close(self) -> None:
        """Do nothing: the registry removes everything."""


@dataclass
class TruthDut:
    """The DUT, with the set-up and the generator to measure it."""

    setup: Setup
    generator: Generator

    def counts(self) -> dict[str, list[int]]:
        """Return the numbers of frames by what happened to them, from west and from east.

        They count from the start of the DUT, or of the trial's branch.
        """
        counts: dict[str, list[int]] = json.loads(self.generator.ask_dut("counts"))
        return counts

    def set(self, **known: int) -> None:
        """Set the DUT from now on (and, before the first trial, for all trials); names as in truth_dut.c."""
        self.generator.ask_dut(_words(known))

    def drop_all(self, after_s: float, for_s: float) -> None:
        """Let the DUT drop all frames for for_s in each trial, from after_s after the first frame."""
        known = {"outage_after_ns": round(after_s * 1e9), "outage_for_ns": round(for_s * 1e9)}
        self.generator.in_each_trial = _words(known)


def _words(known: dict[str, int]) -> str:
    return " ".join(f"{name}={number}" for name, number in known.items())


@contextmanager
def set_up(
    folder: Path, *, mbps: int = 1000, errors: LinkErrors | None = None, **known: int
) -> Iterator[TruthDut]:
    """Yield a DUT between a generator's ports; known: its settings (names in truth_dut.c); folder: for its logs.

    errors: those of both links, in branches with a seed.
    """
    with Registry(secrets.token_hex(3)) as registry:
        bed = build(registry, folder, mbps=mbps, errors=errors, **known)
        generator = bed.generator = Generator(registry, folder / "generator.log")
        generator.open(list(bed.ports.values()), [])
        hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
        yield TruthDut(Setup(bed, generator, None, hops), generator)


def build(
    registry: Registry, folder: Path, *, mbps: int = 1000, errors: LinkErrors | None = None, **known: int
) -> Bed:
    """Build the DUT and its links to the generator's ports, which are not open yet; folder: for its log."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    made = Path(tempfile.mkdtemp(prefix=f"espbench-{registry.run_id}-", dir=memory))
    registry.add("directory", str(made))
    links: dict[PortName, Path] = {"west": made / "west", "east": made / "east"}
    for link in links.values():
        options = ["--mbps", str(mbps), *(errors or LinkErrors()).flags]
        subprocess.run([native.binary(), "link", link, *options], check=True)
    with (folder / "truth_dut.log").open("ab") as log:
        command = [str(program()), *map(str, links.values()), *_words(known).split()]
        registry.spawn(command, "truth DUT", stdout=log, stderr=log)
    return Bed(
        platform="truth",
        dut="known-truth",
        ports={name: _port(name, link, mbps) for name, link in links.items()},
        gateways={},
        placement=virtual_pair.placement(),
        queues={},
        virtual_time=True,
    )


def _port(name: PortName, link: Path, mbps: int) -> Port:
    a = GATEWAY_TO_GATEWAY
    own, other = (a.tester_west, a.home_lan) if name == "west" else (a.tester_east, a.office_lan)
    return Port(
        name=name,
        interface="",
        netns=None,
        tx_cpus=(),
        rx_cpu=0,
        mac=own.mac,
        next_hop_mac=f"02:00:00:00:01:0{1 if name == 'west' else 2}",
        address={version: own.host(version) for version in own.addresses},
        gateway={version: other.host(version) for version in other.addresses},
        line_rate_bps=mbps * 1e6,
        mtu=a.mtu,
        link=link,
    )
