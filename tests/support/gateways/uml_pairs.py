# SPDX-License-Identifier: Apache-2.0
"""Helps tests that build pairs of User-Mode Linux gateways themselves: CPUs, processes, and frames to send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from espbench.platforms.base import Placement
from espbench.platforms.uml.uml_platform import UmlTestbed
from espbench.this_machine.processes import descendants

FRAMES = Path(__file__).parents[1] / "generators" / "frames.py"
CPUS = sorted(os.sched_getaffinity(0))
PLACEMENT = Placement(
    cpus={"tester tx": [CPUS[0]], "tester rx": [CPUS[0]], "home": [CPUS[0]], "office": [CPUS[-1]]},
    policy="SCHED_OTHER",
)


def guest_pids(bed: UmlTestbed) -> list[int]:
    """Return the ids of all processes of both guests."""
    return [
        pid
        for entry in bed.made
        if entry.kind == "process"
        for pid in [entry.detail["pid"], *descendants(entry.detail["pid"])]
    ]


def send(
    bed: UmlTestbed,
    version: int,
    count: int,
    size: int = 78,
    wait_s: float = 60.0,
    pause_s: float = 0.001,
) -> dict[str, int]:
    """Send frames from west to east; return the counts of frames.py.

    wait_s: missing frames count as lost after this time without a frame.
    """
    west = bed.ports["west"]
    assert west.netns is not None
    assert west.next_hop_mac is not None
    command = ["ip", "netns", "exec", Path(west.netns).name, sys.executable, "-I", "-S", str(FRAMES)]
    command += [west.interface, bed.ports["east"].interface, west.mac, west.next_hop_mac]
    command += [str(version), str(count), str(size), str(wait_s), str(pause_s)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, int] = json.loads(done.stdout)
    return result
