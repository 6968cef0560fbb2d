# SPDX-License-Identifier: Apache-2.0
"""Profiles the commit that a bisection found, and its parent: which functions became dearer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from espbench.cli.bisect.costs import Costs
from espbench.cli.profile.profiling import Profiling
from espbench.errors import EspbenchError
from espbench.gate.base import Point
from espbench.gate.commits.tree import Commit
from espbench.profile import csv_file
from espbench.profile.attribution import Profile
from espbench.profile.difference import difference
from espbench.results import RunDirectory

_MOST_SHOWN = 20


@dataclass(frozen=True)
class _Load:
    """The case that is profiled, the first repeat of the bisection's figure, and the load of this figure."""

    case: str
    point: Point
    repeat: int
    fps: float
    duration_s: float


def text_of(costs: Costs, parent: Commit, commit: Commit) -> str:
    """Profile both commits, if that is not done yet, and return the largest differences by function as Markdown.

    Raise EspbenchError if a commit cannot be profiled, and typer.Exit if one of the runs does not finish.
    """
    load = _load_of(costs)
    was_run, was = _profiled(costs, parent, "before", load)
    now_run, now = _profiled(costs, commit, "after", load)
    sides = {profile.side: profile for profile in was}
    pairs = [(sides[profile.side], profile) for profile in now if profile.side in sides]
    # The gateway of the bisection's figure comes first.
    pairs.sort(key=lambda pair: pair[1].side != costs.history.figure["side"])
    head = f"By function, {load.case} at {load.fps:,.0f} frames/s, instructions per frame:"
    runs = [
        f"* {word}, {of}: {_files(run, costs.how.work)}"
        for word, of, run in (("was", parent, was_run), ("is", commit, now_run))
    ]
    return "\n\n".join([head, *(_table(*pair) for pair in pairs), "\n".join(runs)]) + "\n"


def _load_of(costs: Costs) -> _Load:
    """Return what is profiled. The load is the base's lowest, at which the steps of the bisection were judged."""
    figure = costs.history.figure
    samples = [
        (sample.repeat, sample.share, point, sample)
        for point, case in costs.base.cases.items()
        for sample in case.samples
        if (str(point), sample.goal) == (figure["case"], figure["goal"])
    ]
    repeat, _, point, sample = min(samples, key=lambda each: each[:2])
    case = next(e.case for e in costs.entries if (Point.of(e), e.repeat) == (point, repeat))
    return _Load(case, point, repeat, sample.load_fps, sample.duration_s)


def _profiled(costs: Costs, commit: Commit, name: str, load: _Load) -> tuple[RunDirectory, list[Profile]]:
    """Return the profile of a commit with its run; one that an earlier start of the bisection made is only read."""
    how = Profiling(costs.how.work / "profiles" / name, [], half=False, chosen=[load.case])
    kept = costs.history.profiles.get(commit.name)
    if kept is not None and (Path(kept) / csv_file.FILE).is_file():
        run, profiles = how.of(Path(kept))
    else:
        costs.how.build(commit)
        run, profiles = how.of(costs.plan, {(load.point, load.repeat): (load.fps, load.duration_s)})
        costs.refuse_another_instrument(costs.base, run)
        costs.history.profiles[commit.name] = str(run.path)
        costs.history.save()
    counted = [profile for profile in profiles if isinstance(profile, Profile)]
    if not counted:
        raise EspbenchError(f"{run.path}: no profile of {load.case}")
    return run, counted


def _table(was: Profile, now: Profile) -> str:
    before, after = was.instructions / was.frames, now.instructions / now.frames
    lines = [
        f"{now.side}: {before:,.3f} → {after:,.3f} ({after - before:+,.3f})\n",
        "| function | module | was | is | change |",
        "|---|---|---:|---:|---:|",
        *_rows(was, now),
    ]
    return "\n".join(lines)


def _rows(was: Profile, now: Profile) -> Iterator[str]:
    """Yield the largest differences, and the sum of the others: together they are the difference of the gateway."""
    changed = [row for row in difference(was, now) if row.change]
    for row in changed[:_MOST_SHOWN]:
        name = row.function.name.replace("|", "\\|")  # a bar would end the cell
        yield f"| `{name}` | {row.function.module} | {row.was:,.3f} | {row.now:,.3f} | {row.change:+,.3f} |"
    if others := changed[_MOST_SHOWN:]:
        yield f"| {len(others)} others | | | | {sum(row.change for row in others):+,.3f} |"


def _files(run: RunDirectory, folder: Path) -> str:
    """Name the flame graph and the report of a run by their paths from a folder."""
    paths = [run.flame_graph, run.path / "report.html"]
    return " and ".join(os.path.relpath(path, folder) for path in paths if path.is_file())
