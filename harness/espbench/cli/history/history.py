# SPDX-License-Identifier: Apache-2.0
"""`espbench history DIR…`: lists the figures of runs over time, and where they changed."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli.history import tables
from espbench.over_time import History


class What(StrEnum):
    """The kinds of things that this command can list."""

    changes = "changes"
    series = "series"
    runs = "runs"


def history(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders that contain run directories, at any depth.", metavar="DIR…")
    ],
    what: Annotated[What, typer.Option("--list", help="What to list.")] = What.changes,
    plan: Annotated[str, typer.Option(help="Only plans with this text in their name.")] = "",
    case: Annotated[
        str, typer.Option(help="Only cases with this text in their name: `aes128gcm16 64 B`.")
    ] = "",
    figure: Annotated[
        str, typer.Option(help="Only figures with this text in their name: `throughput`.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="List as JSON, one object per line.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with everything into this folder; list nothing.")
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="The file of the index. Default: in the cache. You can delete it at any time."),
    ] = None,
) -> None:
    """List where figures changed from run to run, the newest change first; or list series or runs."""
    with History.open(folders, index, lambda text: print(text, file=sys.stderr)) as runs_index:
        runs = runs_index.runs()
        for run in runs:
            if run.problem:
                print(f"left out: {run.problem}", file=sys.stderr)
        if html is not None:
            from espbench.reporting.over_time.page import write  # noqa: PLC0415  (charts: slow to import)

            print(write(runs_index, html))
            return
        match what:
            case What.runs:
                listed = [run for run in runs if plan.lower() in run.plan.lower() and not run.problem]
                tables.json_of_runs(listed) if as_json else tables.show_runs(listed)
            case What.series:
                series = runs_index.series(plan, case, figure)
                tables.json_of_series(runs_index, series) if as_json else tables.show_series(series)
            case What.changes:
                changes = runs_index.changes(plan, case, figure)
                if as_json:
                    tables.json_of_changes(changes)
                else:
                    tables.show_changes(changes, len(runs), runs_index.series(plan, case, figure))
