# SPDX-License-Identifier: Apache-2.0
"""Makes links with errors outside of virtual time: each is a process of this machine that transfers the frames.

    one end ── espbench-traffic wire ── the other end

The program decides which frames get errors from the same seeds as links in virtual time (harness/emulator/LINK.md).
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from espbench.errors import EspbenchError
from espbench.platforms.chance import Chance
from espbench.platforms.link_errors import Errors
from espbench.platforms.placement import NICE
from espbench.this_machine.registry import Registry, Surroundings

WireEnd = str | socket.socket
"""An end of a wire: the name of a tap, or a socket of type SOCK_SEQPACKET."""


def link_number(link: str, *, single: bool) -> int:
    """Return a link's number for its seed: the generator numbers those between guests first (LINK.md, Branches)."""
    return (["west", "east"] if single else ["middle", "west", "east"]).index(link) + 1


class Wire:
    """A running wire; each of its answers is a line of JSON."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self._name = name
        self._process = process

    @classmethod
    def start(
        cls,
        registry: Registry,
        name: str,
        command: Sequence[str],
        ends: tuple[WireEnd, WireEnd],
        netns: str,
        cpus: Sequence[int],
    ) -> Wire:
        """Connect two ends by the program `command`, on these CPUs; netns: the file of the taps' network namespace.

        Raise EspbenchError, which quotes the program, if it does not start.
        """
        fds = [end.fileno() for end in ends if isinstance(end, socket.socket)]
        a, b = (end if isinstance(end, str) else f"fd:{end.fileno()}" for end in ends)
        process = registry.spawn(
            [*command, "--a", a, "--b", b, "--netns", netns],
            name,
            Surroundings(cpus=cpus, nice=NICE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=fds,
            grace_s=0,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        registry.closing(f"input of {name}", process.stdin.close)
        registry.closing(f"output of {name}", process.stdout.close)
        wire = cls(name, process)
        wire._hear("wired")
        return wire

    def begin(self, seed: int) -> dict[str, int]:
        """Restart the errors from this seed (0: no errors); return the lost, damaged and late frames until now."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"seed": seed}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # the next read raises an error with the program's last output
        return {key: n for key, n in self._hear("erred").items() if key != "event"}

    def _hear(self, event: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode().strip()
        said: dict[str, Any] = json.loads(line) if line.startswith("{") else {"message": line or "it ended"}
        if said.get("event") != event:
            raise EspbenchError(f"{self._name}: {said.get('message', line)}")
        return said


@dataclass
class ErringLinks:
    """The links of a test bed with errors, by name, and their counts of errors in the last trial that ended."""

    errors: Errors = field(default_factory=Errors)
    wires: Mapping[str, Wire] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)

    def begin(self, chance: Chance, trial: str) -> None:
        """Begin a trial: the links' seed, the chance and the trial determine its errors."""
        seed = self.errors.seed_for(chance, trial)
        self.counts = {}
        for wire in self.wires.values():
            wire.begin(seed)

    def end(self) -> None:
        """End a trial: read the counts of errors; from now on the links have no errors."""
        self.counts = {name: wire.begin(0) for name, wire in self.wires.items()}
