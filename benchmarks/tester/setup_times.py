#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how long pairs of gateways take to build and to close, and how much memory a gateway and a run take.

Needs root. Run it from anywhere: `python benchmarks/tester/setup_times.py [builds of each kind]`.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from asked_number import asked_number

import espbench.cli.main  # noqa: F401  (so that this process has the size of a controller)
from espbench.generators.native import NativeGenerator
from espbench.plan import load_topology
from espbench.platforms import netns, placement
from espbench.platforms.base import Testbed
from espbench.platforms.uml import uml_platform
from espbench.runs.platform_kinds.shared.addressing import addressing_of
from espbench.this_machine import machine_lock
from espbench.this_machine.processes import descendants
from espbench.this_machine.registry import Registry

BUILDS = 5
ADDRESSING = addressing_of(load_topology("gateway-to-gateway"), mtu=1500)


def main() -> None:
    """Print the table."""
    builds = asked_number(__doc__, "builds", BUILDS, "builds of each kind")
    placed = placement.choose()
    with (
        machine_lock.held(),
        tempfile.TemporaryDirectory() as folder,
        Registry(secrets.token_hex(3)) as registry,
    ):
        logs = Path(folder)
        kinds: dict[str, Callable[[], Testbed]] = {}
        if all(need.ready for need in netns.readiness()):
            kinds["netns"] = lambda: netns.NetnsPlatform(ADDRESSING).build(registry, logs, placed)
        if all(need.ready for need in uml_platform.readiness()):
            kinds["uml"] = lambda: uml_platform.UmlPlatform(uml_platform.UmlProfile(), ADDRESSING).build(
                registry, logs, placed
            )
        print(f"median of {builds}       build, s   close, s   memory of a gateway, MiB")
        for name, build in kinds.items():
            times = [timed(registry, build) for _ in range(builds)]
            built, closed, memory = (median(column) for column in zip(*times, strict=True))
            print(f"{name:17} {built:8.2f}   {closed:8.2f}   {memory:24.0f}")

        bed = netns.NetnsPlatform(ADDRESSING).calibration_bed(registry, placed)
        generator = NativeGenerator(registry, logs / "generator.log")
        generator.open(list(bed.ports.values()), [])
        # The report's charts are drawn by another process, which is not counted.
        for name, pids in (("controller", ["self"]), ("generator", [str(generator.pid())])):
            print(f"{name} resident: {figure('status', 'VmRSS', pids):.0f} MiB")
        generator.close()
        bed.close()


def timed(registry: Registry, build: Callable[[], Testbed]) -> tuple[float, float, float]:
    """Return the seconds to build a pair and to close it, and the memory (PSS) of Home's processes, MiB."""
    begun = time.monotonic()
    bed = build()
    built = time.monotonic()
    home = next(e for e in registry.entries if e.kind == "process" and "home" in e.name)
    pids = [home.detail["pid"], *descendants(home.detail["pid"])]
    memory = figure("smaps_rollup", "Pss", [str(pid) for pid in pids])
    closing = time.monotonic()
    bed.close()
    return built - begun, time.monotonic() - closing, memory


def figure(file: str, field: str, pids: list[str]) -> float:
    """Return a field of /proc/PID/FILE, summed over processes, MiB."""
    total = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
        total += next((int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), 0)
    return total / 1024


if __name__ == "__main__":
    main()
