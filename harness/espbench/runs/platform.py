# SPDX-License-Identifier: Apache-2.0
"""Defines what a run asks of a platform: to build test beds for one device under test, and to tell about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from espbench.errors import MachineLacks
from espbench.plan import Case
from espbench.platforms.base import Placement, Readiness, Testbed
from espbench.this_machine.registry import Registry

OnNote = Callable[[str], None]


@dataclass(frozen=True)
class Workspace:
    """The tools for a run's test beds: the registry that undoes them, the folder of their logs, the CPUs of each part.

    profiled: in virtual time the gateways' instructions are counted by address, into files beside the logs.
    """

    registry: Registry
    logs: Path
    placement: Placement
    profiled: bool = False

    def profile(self, case: Case) -> Path | None:
        """Return the file for the instruction counts of the case, without the gateway's name; None if not profiled."""
        return self.logs / f"profile-{case.id}" if self.profiled else None


class Platform(Protocol):
    """The place where the gateways of one device under test run.

    virtual_time: the host has no influence on what they do. Then every case has gateways of its own, each trial begins
    in the state in which they became ready, and the generator's ceiling is the line rate. takes_cpus: they run on CPUs
    of this machine. line_rate_bps is that of the tester's ports; 0 if it is not known.
    """

    name: str
    virtual_time: bool
    takes_cpus: bool

    @property
    def line_rate_bps(self) -> float: ...

    def require(self, on_note: OnNote) -> None:
        """Raise MachineLacks or UsageError if the plan cannot be run there; nothing is made yet."""

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        """Build two gateways (or one, or none where they are the user's) between the tester's ports, without a stack.

        What was made before a failure stays registered.
        """

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        """Join the same kind of ports without a device under test; None where that cannot be had."""

    def memory_mb(self) -> float:
        """Say what one test bed takes of the machine's memory; infinite where its boxes exist but once."""

    def links_mb(self) -> float:
        """Say what the links of one test bed take of the room that virtual_pair has for links; 0 if there are none."""

    def notes(self) -> list[str]:
        """List what every figure of the device is to be read with."""

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Ask gateways whose stack is up: facts for the Security Context, and what is not as the plan asks."""


def demand(needs: list[Readiness]) -> None:
    """Raise MachineLacks naming everything of these that is not there."""
    lacking = [need for need in needs if not need.ready]
    if lacking:
        what = "; ".join(need.missing for need in lacking)
        raise MachineLacks(what, "; ".join(dict.fromkeys(need.install for need in lacking)))
