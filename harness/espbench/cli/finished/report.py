# SPDX-License-Identifier: Apache-2.0
"""`espbench report RUN`: writes the report of a run again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench.errors import UsageError
from espbench.results import RunDirectory

FORMATS = ("html", "md", "csv", "pdf", "junit", "csv-wide")
_DEFAULT = FORMATS[:3]


def report(
    run: Annotated[Path, typer.Argument(help="A run directory.")],
    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help=f"{', '.join(FORMATS)}; may be repeated. Default: {', '.join(_DEFAULT)}.",
        ),
    ] = None,
) -> None:
    """Write the report and tables of a run again, from its recorded trials."""
    from espbench.reporting.report import write_report  # noqa: PLC0415  (charts: slow to import)

    asked = set(format or _DEFAULT)
    if unknown := sorted(asked - set(FORMATS)):
        raise UsageError(f"--format: expected one of {', '.join(FORMATS)}, got {', '.join(unknown)}")
    wanted = [name for name in FORMATS if name in asked]
    directory = RunDirectory.open(run)
    for damage in directory.damage():
        print(f"{run / 'trials.jsonl'}: damaged: {damage}", file=sys.stderr)
    print(write_report(directory, formats=wanted))
