# SPDX-License-Identifier: Apache-2.0
"""The client of espbench-ixp, the simulator that runs a program on the engines of a network processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from espbench import paths
from espbench.errors import EspbenchError, MachineLacks
from espbench.npcrypt.processes import Processes
from espbench.platforms.base import Readiness

_BINARY = "espbench-ixp"


class Spent(BaseModel):
    """The cycles of all engines together, by what the engines did in them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    executing: int
    aborted: int
    idle: int
    stalled: int

    @property
    def total(self) -> int:
        """The sum of all cycles."""
        return self.executing + self.aborted + self.idle + self.stalled


class Use(BaseModel):
    """The use of one memory in a run; busy is in thousandths of a cycle."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reads: int
    writes: int
    transfers: int
    busy: int
    refused: int
    waited: int


class Answer(BaseModel):
    """The machine's answer to a run (harness/network_processor/machine/src/machine.rs)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cycles: int
    spent: Spent
    dynamic: dict[str, int]
    cycles_of: dict[str, int]
    code: dict[str, int]
    storage: dict[str, int]
    scratch: Use
    sram: Use
    dram: Use
    output: list[int]


def binary() -> Path:
    """Return the path of espbench-ixp, from ESPBENCH_IXP or `paths.program`; raise MachineLacks if there is none."""
    try:
        return paths.program(_BINARY, "ESPBENCH_IXP")
    except FileNotFoundError:
        raise MachineLacks(f"the network processor {_BINARY} is not built", paths.how_to_build()) from None


def readiness() -> Readiness:
    """Return the answer of `espbench doctor`: whether espbench-ixp is built."""
    try:
        binary()
    except MachineLacks as lack:
        return Readiness("ixp", False, lack.what, lack.install)
    return Readiness("ixp", True)


def run(program: Path, request: dict[str, Any], processes: Processes) -> Answer:
    """Run a program to its end. Raise EspbenchError if it did something that an engine cannot do."""
    text = json.dumps({"program": str(program), **request})
    ended = processes.run([str(binary())], _BINARY, text)
    if ended.code:
        raise EspbenchError(ended.err.strip() or f"{_BINARY}: ended with {ended.code}")
    return Answer.model_validate_json(ended.out)
