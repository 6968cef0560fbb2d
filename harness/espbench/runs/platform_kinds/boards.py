# SPDX-License-Identifier: Apache-2.0
"""Gateways that are emulated boards in virtual time (`platform: qemu_e500`)."""

from __future__ import annotations

from typing import Any

from espbench.generators import native
from espbench.plan import Case, Profile, ResolvedPlan
from espbench.plan.duts.boards import Board
from espbench.platforms.base import Readiness, Testbed
from espbench.platforms.chance import Chance
from espbench.platforms.e500 import qemu_e500
from espbench.platforms.virtual import virtual_pair
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts.build import Kit
from espbench.platforms.virtual.parts.kits import E500_KIT, E500_STRONGSWAN_KIT
from espbench.procedures.boards import emulated
from espbench.runs.platform_kinds.shared import stack_files
from espbench.runs.platform_kinds.shared.from_profile import FromProfile
from espbench.runs.platform_kinds.shared.platform import OnNote, Workspace, demand


def readiness() -> list[Readiness]:
    """List what boards need on this machine: their kit."""
    return [E500_KIT.readiness()]


class Boards(FromProfile):
    """Gateways that are emulated boards in virtual time."""

    name = "qemu_e500"
    virtual_time = True

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._builder = qemu_e500.QemuE500Platform(
            self._profile.name, self._addressing, native.binary, E500_KIT.require, E500_STRONGSWAN_KIT.require,
            self._errors, self._own_paths(),
        )  # fmt: skip

    @property
    def kits(self) -> list[Kit[Any]]:
        """List the kits of which the guests are built; strongSwan's only if a stack of the plan has a daemon."""
        daemons = any(stack.daemons for stack in self._plan.stacks)
        return [E500_KIT, *([E500_STRONGSWAN_KIT] if daemons else [])]

    def require(self, on_note: OnNote) -> None:
        """Require the kits of the boards; UsageError if a board cannot boot the user's kernel."""
        demand([kit.readiness() for kit in self.kits])
        self._builder.examine()

    def own_files(self) -> list[OwnFiles]:
        """Pack the user's kernels for workers on other machines."""
        return self._builder.own_files()

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w, board = workspace, self._profile.board
        assert board is not None
        return self._named(
            self._builder.build(
                w.registry, w.logs, w.placement,
                _machine(self._profile, board, case, self._chance(case)), _facts_of(board),
                single=self._single, line_rate_bps=self.line_rate_bps,
                profile=w.profile(case),
            )
        )  # fmt: skip

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # the generator's ceiling in virtual time is the line rate

    def memory_mb(self) -> float:
        return (1 if self._single else 2) * self._profile.memory

    def links_mb(self) -> float:
        return virtual_pair.links_mb(single=self._single)

    def notes(self) -> list[str]:
        """Say where the board's core is not of the device's own kind."""
        return [self._profile.core_note] if self._profile.core_note else []

    def inspect(self, bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Ask the boards how they use their crypto engine; return facts, and the mismatches with the plan."""
        return emulated.engines(bed, case)


def _machine(profile: Profile, board: Board, case: Case, chance: Chance) -> qemu_e500.Machine:
    return qemu_e500.Machine(
        memory_mb=profile.memory,
        ns_per_instruction=board.ns_per_instruction,
        sec_version=board.sec.version,
        sec_clock_hz=case.engine_mhz * 1_000_000 if case.engine_mhz else board.sec.clock,
        sec_costs=board.sec.costs,
        sec_at_once=board.sec.at_once,
        crypto=case.stack.crypto or "",
        coalescing=_coalescing(board),
        bus_bytes_per_second=board.bus_bytes_per_second,
        images=stack_files.userland_of(case.stack),
        chance=chance,
    )


def _coalescing(board: Board) -> qemu_e500.Coalescing:
    rx, tx = board.coalescing.receive, board.coalescing.transmit
    return qemu_e500.Coalescing(
        rx_frames=rx.frames if rx else 0,
        rx_us=rx.time if rx else 0,
        tx_frames=tx.frames if tx else 0,
        tx_us=tx.time if tx else 0,
    )


def _facts_of(board: Board) -> dict[str, str]:
    """Return the emulated board's properties, for the Security Context."""
    said = board.model_dump(mode="json")
    return {
        "device": board.device,
        "core": board.core,
        "core clock": said["core_clock"],
        "memory clock": said["memory_clock"],
        "time per instruction": f"{said['ns_per_instruction']} ns",
        "security engine": f"SEC {board.sec.version} at {said['sec']['clock']}",
        "its cycles": ", ".join(f"{name} {price}" for name, price in said["sec"]["cycles"].items()),
        "interrupts": "; ".join(
            f"{direction}: one for {gathered or 'each frame'}"
            for direction, gathered in (
                ("receiving", board.coalescing.receive),
                ("sending", board.coalescing.transmit),
            )
        ),
    } | _facts_of_options(board)


def _facts_of_options(board: Board) -> dict[str, str]:
    facts = {}
    if board.sec.at_once > 1:
        facts["requests served at once"] = f"{board.sec.at_once}, with execution units for each"
    if board.bus is not None:
        facts["memory's bus"] = f"{board.bus}; {(board.bus_bytes_per_second or 0) / 1e6:g} MB/s for devices"
    return facts
