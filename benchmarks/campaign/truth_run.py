# SPDX-License-Identifier: Apache-2.0
"""Runs `espbench` unchanged, except that the plan's external boxes are the truth DUT in virtual time (truth_dut.c).

    python -m campaign.truth_run run plan.yaml --out runs

Environment variables define the DUT: TRUTH_PROGRAM is the path of its program; TRUTH_DUT is a JSON object with

known           the settings from the start, with the names of truth_dut.c
each_trial      the settings that change just before each trial
only_trial      the only trial to which each_trial applies, counted from 0 since the start of the process
encrypts        true: the DUT has two gateways that report counters of SAs, as if they encrypted all but leaked frames
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import campaign  # noqa: F401  (finds truth_dut)
from espbench.cli import run as command
from espbench.cli.main import main
from espbench.errors import EspbenchError
from espbench.generators import choose
from espbench.generators.base import Offered, Stream
from espbench.plan import Case
from espbench.platforms.base import LinkCounters, Side
from espbench.runs import beds
from espbench.runs.platform_kinds.shared.platform import Workspace
from espbench.runs.workers import process, worker
from espbench.stacks.base import SaCounters
from espbench.this_machine.registry import Registry
from support.virtual import truth_dut
from support.virtual.truth_dut import Bed, Generator, build

LINE_BPS = 1e9
ASKED: dict[str, Any] = json.loads(os.environ.get("TRUTH_DUT", "{}"))


def _words(known: dict[str, int]) -> str:
    return " ".join(f"{name}={number}" for name, number in known.items())


class Teller(Generator):
    """A generator that changes the DUT's settings before a trial."""

    trials = 0

    def offer(self, streams: list[Stream], duration_s: float, *rest: Any, **named: Any) -> Offered:
        if duration_s >= truth_dut.TRIAL_S:
            chosen = ASKED.get("only_trial") in (None, self.trials)
            self.in_each_trial = _words(ASKED.get("each_trial", {})) if chosen else ""
            self.trials += 1
        return super().offer(streams, duration_s, *rest, **named)


class ToldGateway:
    """One of two gateways with the DUT's own counters; frames are dropped before encryption, and leaked after it."""

    lan, wan = "lan", "wan"
    byte_order = "little"

    def __init__(self, side: Side, counts: Callable[[], dict[str, list[int]]]) -> None:
        self.side = side
        self._counts = counts

    def link_counters(self) -> dict[str, LinkCounters]:
        """Return counters: frames from this side entered by LAN, and those that were forwarded left by WAN.

        Frames from the other side that were forwarded entered by WAN and left by LAN.
        """
        counts = self._counts()
        mine = 0 if self.side == "home" else 1
        spoilt = ("leaked", "damaged")
        entered = sum(of[mine] for name, of in counts.items() if name not in spoilt)
        out, back = counts["forwarded"][mine], counts["forwarded"][1 - mine]
        return {
            "lan": LinkCounters(entered, back, 0, 0, 0, 0),
            "wan": LinkCounters(back, out, 0, 0, 0, 0),
        }

    def sas(self) -> SaCounters:
        """Return counters with the forwarded frames, except those that leaked."""
        counts = self._counts()
        passed = [a - b for a, b in zip(counts["forwarded"], counts["leaked"], strict=True)]
        mine = 0 if self.side == "home" else 1
        return SaCounters(passed[mine], passed[1 - mine], {}, frozenset({1, 2}))

    def read(self, paths: list[str]) -> dict[str, str | None]:
        """Return None for each path: the gateway has no files."""
        return dict.fromkeys(paths)

    def cpu_ns(self) -> int:
        """Return 0: the gateway takes no CPU time."""
        return 0

    def waited_ns(self) -> int:
        """Return 0: the gateway does not wait for a CPU."""
        return 0

    def alive(self) -> bool:
        """Return True: a truth DUT never dies by itself."""
        return True

    def last_words(self) -> str:
        """Return an empty text: a truth DUT has no last words."""
        return ""


class ToldStack:
    """A stack without tunnels that only blocks or unblocks the DUT."""

    name, encrypts, sas = "truth", True, 2

    def __init__(self, bed: Bed) -> None:
        self._bed = bed

    def block(self) -> None:
        """Let no frame pass the DUT."""
        self._bed.generator.ask_dut("blocked=1")

    def establish(self) -> None:
        """Let all frames pass the DUT."""
        self._bed.generator.ask_dut("blocked=0")

    def counters(self, side: Side) -> SaCounters:
        """Return the counters that the gateway reports."""
        gateway = self._bed.gateways[side]
        assert isinstance(gateway, ToldGateway)
        return gateway.sas()

    def rest(self) -> None:
        """Do nothing: the stack has no state."""

    def security_context(self) -> dict[str, Any]:
        """Return a Security Context without mismatches."""
        return {"protocol": "truth", "mismatches": []}

    def secrets(self) -> list[dict[str, Any]]:
        """Return no keys: there are none."""
        return []


class TruthLab:
    """Stands in for Beds; its test beds are the truth DUT for every case."""

    virtual_time = True
    profiled = False

    def __init__(self, registry: Registry, logs: Path) -> None:
        self._registry = registry
        self._logs = logs

    def build(self, case: Case) -> Bed:
        """Build a new truth DUT, which ends when its bed is closed."""
        first = len(self._registry.entries)
        bed = build(self._registry, self._logs, mbps=int(LINE_BPS / 1e6), **ASKED.get("known", {}))
        made = self._registry.entries[first:]
        bed.close = lambda: self._registry.undo(made)  # type: ignore[method-assign]
        if ASKED.get("encrypts"):
            for side in ("home", "office"):
                bed.gateways[side] = ToldGateway(side, lambda: _counts(bed))  # type: ignore[assignment]
        return bed

    def notes(self, case: Case) -> list[str]:
        """Return no remarks."""
        return []

    def calibration_bed(self) -> None:
        """Return None: in virtual time the ceiling is the line rate."""

    def capturing(self, bed: Bed, file: Path) -> AbstractContextManager[None]:
        """Raise EspbenchError: the truth DUT has no link that could be captured."""
        raise EspbenchError(f"expected no capture into {file}, got one: the truth DUT has no middle link")

    def stack(self, bed: Bed, case: Case) -> ToldStack | None:
        """Return a stack that reports encryption, if this run wants one."""
        return ToldStack(bed) if ASKED.get("encrypts") else None

    def inspect(self, bed: Bed, case: Case) -> tuple[dict[str, Any], list[str]]:
        """Return no facts and no mismatches."""
        return {}, []

    def tunnel_bits(self, case: Case) -> int:
        """Return 0: there is at most one tunnel."""
        return 0


def _counts(bed: Bed) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = json.loads(bed.generator.ask_dut("counts"))
    return counts


def _lab(resolved: object, platforms: object, workspace: Workspace, on_note: object) -> TruthLab:
    return TruthLab(workspace.registry, workspace.logs)


def _generator(name: str, settings: object, registry: Registry, log: Path, *, esp: bool = False) -> Teller:
    return Teller(registry, log)


def put_in_place() -> None:
    """Replace espbench's test beds and generators, in its own process and in its workers'."""
    if "TRUTH_PROGRAM" in os.environ:
        truth_dut.program = lambda: Path(os.environ["TRUTH_PROGRAM"])  # type: ignore[assignment]
    command.Beds = worker.Beds = _lab  # type: ignore[assignment, attr-defined]
    # The truth DUT's ports are links in memory, so nothing is required of this machine.
    command.require = lambda *asked: None  # type: ignore[attr-defined]
    # Otherwise this process, and so all its workers, would be pinned to the tester's CPU.
    command.virtual = beds.virtual = lambda choices: True  # type: ignore[attr-defined]
    choose.new = _generator
    process.COMMAND = (sys.executable, "-m", "campaign.truth_worker")


if __name__ == "__main__":
    put_in_place()
    main()
