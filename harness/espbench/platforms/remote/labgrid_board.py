# SPDX-License-Identifier: Apache-2.0
"""A box's power switch and serial console through labgrid, for tests that reset it (RFC 2544 26.6, RFC 6201).

labgrid is an optional extra (`pip install 'espbench[lab]'`). labgrid's own environment file defines the hardware, as
its manual describes it: a target with a driver of PowerProtocol, of ConsoleProtocol, or both. labgrid runs in separate
processes (labgrid_worker.py).
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from espbench.errors import EspbenchError, MachineLacks, UsageError, install_extra
from espbench.platforms.base import Side
from espbench.platforms.remote import labgrid_worker
from espbench.this_machine.registry import UNDO, Registry, Surroundings

# The longest time for an answer: labgrid may first wait for a resource of another machine.
ANSWER_S = 90.0
_MANUAL = "https://labgrid.readthedocs.io/ describes the file"


@dataclass(frozen=True)
class LabgridTarget:
    """A target of a labgrid environment file; back_within_s: its box must answer in this time after a power cycle."""

    config: Path
    name: str = "main"
    back_within_s: float = 300.0

    def __str__(self) -> str:
        return f"labgrid target {self.name} of {self.config}"


@dataclass(frozen=True)
class Drivers:
    """The drivers of a target, and whether it has a power driver and a console driver.

    None: the file imports its own drivers, and their kind is not known until they are opened.
    """

    names: list[str]
    power: bool | None
    console: bool | None


class Unsuitable(UsageError):
    """A labgrid file or target that cannot be used; key is the key of the profile that names it."""

    def __init__(self, key: Literal["config", "target"], expected: str, got: str, remedy: str) -> None:
        super().__init__(f"expected {expected}, got {got}; {remedy}")
        self.key, self.expected, self.got, self.remedy = key, expected, got, remedy


def examine(target: LabgridTarget) -> Drivers:
    """Return the drivers of a target, without opening them or executing code that its file imports.

    Raise Unsuitable if the file or the target cannot be used, MachineLacks if labgrid is not installed.
    """
    if not target.config.is_file() or not os.access(target.config, os.R_OK):
        there = "one that cannot be read" if target.config.exists() else "no such file"
        raise Unsuitable(
            "config",
            "a labgrid environment file",
            f"{target.config} ({there})",
            "check the path and its mode",
        )
    need_labgrid()
    answer = _run(target, "look")
    if why := answer.get("error"):
        raise Unsuitable("config", "a file that labgrid reads", f"{target.config} ({why})", _MANUAL)
    if target.name not in answer["targets"]:
        there = ", ".join(answer["targets"]) or "none"
        remedy = "choose one of them" if answer["targets"] else f"add targets: to the file; {_MANUAL}"
        raise Unsuitable("target", f"a target of {target.config} ({there})", target.name, remedy)
    has = f"{target.name} of {target.config} with {', '.join(answer['drivers']) or 'no driver'}"
    if answer["asks"]:
        raise Unsuitable(
            "target",
            "a power driver that needs nobody",
            has,
            f"replace {answer['asks'][0]}: a run asks no person",
        )
    if answer["unknown"] and not answer["imports"]:
        raise Unsuitable(
            "target", "drivers that labgrid has", has, f"check the spelling of {', '.join(answer['unknown'])}"
        )
    power, console = (
        bool(answer[kind]) or (None if answer["unknown"] else False) for kind in ("power", "console")
    )
    if power is console is False:
        raise Unsuitable(
            "target",
            "a target with a power driver (such as NetworkPowerDriver) or a console driver (such as SerialDriver)",
            has,
            f"add one; {_MANUAL}",
        )
    return Drivers(answer["drivers"], power, console)


def need_labgrid() -> None:
    """Raise MachineLacks if labgrid is not installed."""
    if importlib.util.find_spec("labgrid") is None:
        raise MachineLacks("a box's power switch and console need labgrid", install_extra("lab"))


class Board:
    """The power switch and the console of one box during a run; the registry closes both.

    From its creation on, the console is written to a file. Raise EspbenchError if labgrid cannot open one of them.
    """

    def __init__(self, registry: Registry, side: Side, target: LabgridTarget, console: Path) -> None:
        need_labgrid()
        self.target = target
        self._where = f"{side}: {target}"
        self._console = console
        listening = _start(registry, side, target, "console", str(console))
        self._switch = _start(registry, side, target, "power")
        self.has_console = self._answer(listening, "open its console")["driver"] is not None
        greeting = self._answer(self._switch, "open its power switch")
        self.has_power = greeting["driver"] is not None
        self.delay_s = float(greeting.get("delay_s", 0.0))
        """The time for which the box stays off, s: `delay` of labgrid's driver."""

    def off(self) -> None:
        """Switch the box off. Raise EspbenchError, which quotes labgrid, if that fails."""
        self._to("off")

    def on(self) -> None:
        """Switch the box on; a box that is on does not change. Raise the errors of `off`."""
        self._to("on")

    def _to(self, state: Literal["off", "on"]) -> None:
        assert self._switch.stdin is not None
        try:
            os.write(self._switch.stdin.fileno(), f"{state}\n".encode())
        except OSError:
            raise EspbenchError(
                f"{self._where}: cannot switch it {state}: labgrid's process has ended"
            ) from None
        self._answer(self._switch, f"switch it {state}")
        if self.has_console:
            with self._console.open("ab", buffering=0) as log:
                labgrid_worker.mark(log, f"switched {state}")

    def _answer(self, process: subprocess.Popen[bytes], what: str) -> dict[str, Any]:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], ANSWER_S)
        line = process.stdout.readline() if ready else b""
        answer = _decoded(line) if line else {}
        if not line:
            answer["error"] = "labgrid's process has ended" if ready else f"no answer within {ANSWER_S:g} s"
        if why := answer.get("error"):
            raise EspbenchError(f"{self._where}: cannot {what}: {why}")
        return answer


def _start(
    registry: Registry, side: Side, target: LabgridTarget, task: str, *rest: str
) -> subprocess.Popen[bytes]:
    process = registry.spawn(
        _command(target, task, *rest),
        f"labgrid, {task} of {side}",
        Surroundings(own_pids=os.geteuid() == 0),  # so that programs that labgrid starts end too
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        grace_s=0,
    )
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        registry.closing(f"pipe to labgrid, {task} of {side}", pipe.close)
    return process


def _command(target: LabgridTarget, task: str, *rest: str) -> Sequence[str]:
    worker = [sys.executable, "-P", "-m", labgrid_worker.__name__]
    return [*worker, task, str(target.config), target.name, *rest]


def _run(target: LabgridTarget, task: str, stdin: bytes = b"") -> dict[str, Any]:
    """Execute one task in a new process, and return its last answer."""
    try:
        done = subprocess.run(
            _command(target, task),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=ANSWER_S,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {ANSWER_S:g} s"}
    lines = done.stdout.splitlines()
    return _decoded(lines[-1]) if lines else {"error": f"labgrid's process ended with exit {done.returncode}"}


def _decoded(line: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(line)
    return answer


def _switch_on_left(record: dict[str, Any]) -> None:
    """Switch on a box that was off when its controller was killed; for `espbench clean`."""
    target = LabgridTarget(Path(record["config"]), record["target"])
    need_labgrid()
    if why := _run(target, "power", b"on\n").get("error"):
        raise EspbenchError(f"{target}: cannot switch it on: {why}")


UNDO["power"] = _switch_on_left
