# SPDX-License-Identifier: Apache-2.0
"""Pairs of User-Mode Linux gateways that tests build themselves: where they run, and which processes they are."""

from __future__ import annotations

import os

from espbench.platforms.base import Placement
from espbench.platforms.uml.uml_platform import UmlTestbed
from espbench.this_machine.processes import descendants

CPUS = sorted(os.sched_getaffinity(0))
PLACEMENT = Placement(
    cpus={"tester tx": [CPUS[0]], "tester rx": [CPUS[0]], "home": [CPUS[0]], "office": [CPUS[-1]]},
    policy="SCHED_OTHER",
)


def guest_pids(bed: UmlTestbed) -> list[int]:
    """Return every process of both guests."""
    return [
        pid
        for entry in bed.made
        if entry.kind == "process"
        for pid in [entry.detail["pid"], *descendants(entry.detail["pid"])]
    ]
