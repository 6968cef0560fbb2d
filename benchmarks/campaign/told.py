# SPDX-License-Identifier: Apache-2.0
"""The lines by which a run that disturbs itself (disturbed_run.py) tells the campaign what it does, and when."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "DISTURBANCES"  # of the environment: the file


@dataclass(frozen=True)
class Disturbance:
    """A disturbance of the pair of gateways with this number (0: of the tester), so many seconds from now."""

    pair: int
    after_s: float
    what: str


def write(file: Path, disturbance: Disturbance) -> None:
    """Append a line, whole or not at all."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(disturbance)) + "\n")


def read(file: Path) -> list[Disturbance]:
    """Return all that was told; nothing before there is a file. A line that is being written is not among it."""
    if not file.exists():
        return []
    whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
    return [Disturbance(**json.loads(line)) for line in whole.splitlines()]
