# SPDX-License-Identifier: Apache-2.0
"""Writes and reads the lines by which a run that disturbs itself (disturbed_run.py) announces each disturbance."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "DISTURBANCES"  # the environment variable with the file's path


@dataclass(frozen=True)
class Disturbance:
    """A disturbance, after_s seconds after its announcement; pair: number of the pair of gateways; 0: the tester."""

    pair: int
    after_s: float
    what: str


def write(file: Path, disturbance: Disturbance) -> None:
    """Append the line of a disturbance."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(disturbance)) + "\n")


def read(file: Path) -> list[Disturbance]:
    """Return the disturbances announced so far; none if there is no file. An incomplete last line is left out."""
    if not file.exists():
        return []
    whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
    return [Disturbance(**json.loads(line)) for line in whole.splitlines()]
