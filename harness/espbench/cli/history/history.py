# SPDX-License-Identifier: Apache-2.0
"""`espbench history DIR…`: lists the figures of runs over time, and where they changed."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli.history import tables
from espbench.errors import UsageError
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
    if html is not None and html.exists() and not html.is_dir():
        raise UsageError(f"--html {html}: expected a folder, got a file; name a folder, which may be new")
    with History.open(folders, index, lambda text: print(text, file=sys.stderr)) as runs_index:
        runs = []
        for run in runs_index.runs():
            if run.problem:
                print(f"left out: {run.path}: {run.problem}", file=sys.stderr)
            else:
                runs.append(run)
        if html is not None:
            from espbench.reporting.over_time.page import write  # noqa: PLC0415  (charts: slow to import)

            print(write(runs_index, html))
            return
        if runs and (none := _nothing_matches(runs_index, plan, case, figure)):
            print(none, file=sys.stderr)
        match what:
            case What.runs:
                listed = [run for run in runs if plan.lower() in run.plan.lower()]
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


def _nothing_matches(runs_index: History, plan: str, case: str, figure: str) -> str:
    """Return what there is, if no series has these texts in its names; empty if one has."""
    if not (plan or case or figure) or runs_index.series(plan, case, figure):
        return ""
    asked = {"--plan": plan, "--case": case, "--figure": figure}
    given = " ".join(f"{option} {shlex.quote(text)}" for option, text in asked.items() if text)
    plans = sorted({series.plan for series in runs_index.series("", "", "")})
    return (
        f"no series has these texts in its names: {given}; there are the plans {', '.join(plans) or '(none)'}"
    )
