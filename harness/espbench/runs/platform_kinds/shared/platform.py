# SPDX-License-Identifier: Apache-2.0
"""Defines the interface of a platform: it builds test beds for one device under test, and describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from espbench.errors import MachineLacks
from espbench.plan import Case
from espbench.platforms.base import Placement, Readiness, Testbed
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.build import Kit
from espbench.this_machine.registry import Registry

OnNote = Callable[[str], None]


@dataclass(frozen=True)
class Workspace:
    """The tools for a run's test beds: the registry that undoes them, the folder of their logs, the CPUs of each part.

    profiled: the gateways' instructions are counted by address (virtual time), or their CPUs are sampled (real time);
    the files are beside the logs.
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

    virtual_time: the gateways' clocks count instructions, so the host has no influence on them. Then every case has
    gateways of its own, each trial begins in the state in which they became ready, and the generator's ceiling is the
    line rate. takes_cpus: the gateways run on CPUs of this machine. line_rate_bps is the rate of the tester's ports,
    bit/s; 0 if it is not known.
    """

    name: str
    virtual_time: bool
    takes_cpus: bool

    @property
    def line_rate_bps(self) -> float: ...

    @property
    def kits(self) -> list[Kit[Any]]:
        """List the kits of which the guests are built."""

    def require(self, on_note: OnNote) -> None:
        """Raise MachineLacks or UsageError if the plan cannot be run on this platform; nothing is made yet."""

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        """Build the gateways between the tester's ports, without a stack: two, or one; none if they are the user's.

        If that fails, what was made stays in the registry.
        """

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        """Connect the same kind of ports without a device under test; None if the platform cannot do that."""

    def memory_mb(self) -> float:
        """Return the memory that one test bed takes on this machine, MiB; infinite if there is one pair of boxes."""

    def links_mb(self) -> float:
        """Return the space that one test bed takes of virtual_pair's memory for links, MB; 0 without such links."""

    def notes(self) -> list[str]:
        """List the remarks that apply to every figure of the device."""

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Ask gateways whose stack is up; return facts for the Security Context, and the mismatches with the plan."""

    def own_files(self) -> list[OwnFiles]:
        """Pack the user's own files that the guests boot, for workers on other machines."""

    def use_copies(self, copies: Mapping[str, Path]) -> None:
        """Use these copies of packed files instead of the user's; copies: OwnFiles.path → the copy on this machine."""


class Defaults:
    """Gives empty answers to questions that concern only a few platforms. Kinds derive from this."""

    @property
    def kits(self) -> list[Kit[Any]]:
        return []

    def memory_mb(self) -> float:
        return 0.0

    def links_mb(self) -> float:
        return 0.0

    def notes(self) -> list[str]:
        return []

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        return {}, []

    def own_files(self) -> list[OwnFiles]:
        return []

    def use_copies(self, copies: Mapping[str, Path]) -> None:
        return


def demand(needs: list[Readiness]) -> None:
    """Raise MachineLacks if any of these needs is not met; the error names all of those."""
    lacking = [need for need in needs if not need.ready]
    if lacking:
        what = "; ".join(need.missing for need in lacking)
        raise MachineLacks(what, "; ".join(dict.fromkeys(need.install for need in lacking)))


def kits_of(platforms: Iterable[Platform]) -> list[Kit[Any]]:
    """Return the kits of which the guests of these platforms are built, each once."""
    return [*{kit.name: kit for platform in platforms for kit in platform.kits}.values()]


def own_files_of(platforms: Iterable[Platform]) -> list[OwnFiles]:
    """Return the user's own files that the guests of these platforms boot, each path once."""
    return [*{files.path: files for platform in platforms for files in platform.own_files()}.values()]
