# SPDX-License-Identifier: Apache-2.0
"""`espbench baseline RUN`: write what a run cost into a file that one commits."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench.errors import UsageError
from espbench.gate import baseline_file
from espbench.gate.from_run import base_of
from espbench.results import RunDirectory
from espbench.results.durable import write_atomically


def baseline(
    run: Annotated[Path, typer.Argument(help="A run directory, in virtual time.")],
    out: Annotated[Path, typer.Option(help="The file.")] = Path("baseline.json"),
) -> None:
    """Write the base for espbench check: at each case's throughput the load and the instructions per frame.

    Cases of a base that is there already keep their lines where nothing was found to be otherwise.
    """
    base = base_of(RunDirectory.open(run))
    if out.is_file():
        with contextlib.suppress(UsageError):  # what is no base is replaced as a whole
            base = baseline_file.keeping(base, baseline_file.read(out))
    write_atomically(out, baseline_file.text_of(base))
    print(f"{len(base.cases)} cases, {band(base.repeats)}", file=sys.stderr)
    print(out)


def band(repeats: int) -> str:
    """What a base of so many repeats can say of scatter."""
    if repeats == 1:
        return "one repeat: its band has no width, and the limit alone decides what is a regression"
    return f"bands of {repeats} repeats"
