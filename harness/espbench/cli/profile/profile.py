# SPDX-License-Identifier: Apache-2.0
"""`espbench profile RUN|PLAN`: where the instructions or the CPU time of each frame go, by function."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from espbench.cli.gate.options import Wait
from espbench.cli.profile import pairs, sampled_tables, tables
from espbench.cli.profile.profiling import (
    Loads,
    Profiles,
    Profiling,
    entries_of,
    loads_of_profile,
    open_run,
)
from espbench.errors import UsageError
from espbench.gate.base import Point
from espbench.profile.attribution import Profile
from espbench.profile.sampled import SampledProfile
from espbench.results import RunDirectory
from espbench.terms import CaseEntry

_PIPED_WIDTH = 160
_STACKS = ("reference", "other")  # the columns of two stacks
_INCOMPLETE = 3  # as a run whose case is INVALID


def profile(  # noqa: PLR0913  (its options)
    subject: Annotated[Path, typer.Argument(metavar="RUN|PLAN", help="A run directory, or a plan.")],
    case: Annotated[list[str] | None, typer.Option(help="Only this case; may be repeated.")] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Compare with this run or earlier profile, at its loads."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="STACK", help="Show which functions of the other stacks differ from this one's."
        ),
    ] = None,
    half: Annotated[
        bool,
        typer.Option("--half", help="Measure at half of the throughput, where no gateway is always busy."),
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="How many functions of each gateway to show.")] = 20,
    out: Annotated[Path, typer.Option(help="The folder for new run directories.")] = Path("runs"),
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Measure N cases at once.")] = None,
    wait: Wait = False,
) -> None:
    """Show which functions each frame costs: table, CSV file, flame graph. Counted in virtual time, else sampled."""
    options = [*(["--wait"] if wait else []), *(["--jobs", str(jobs)] if jobs else [])]
    how = Profiling(out, options, half=half, chosen=case or [])
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, emoji=False, markup=False, width=_PIPED_WIDTH)
    if against is not None and reference is not None:
        raise UsageError("--reference: expected either --against or --reference, got both; leave one out")
    if against is not None:
        run = _against(how, subject, against, console, top)
    elif reference is not None:
        run = _by_stack(how, subject, reference, console, top)
    else:
        run, profiles = how.of(subject)
        counted, sampled = _kinds(profiles)
        loads = loads_of_profile(run)
        tables.show(counted, loads, console, top)
        sampled_tables.show(sampled, loads, console, top)
    print(run.flame_graph)
    if how.problems:
        print("\n".join(["not profiled:", *how.problems]), file=sys.stderr)
        raise typer.Exit(_INCOMPLETE)


def _against(how: Profiling, subject: Path, against: Path, console: Console, top: int) -> RunDirectory:
    """Show how the subject differs from another run or plan, at the loads of the other one."""
    _refuse_early(subject)
    other, was = how.of(against)
    run, profiles = how.of(subject, loads=_loads_used(other))
    (was_counted, was_sampled), (counted, sampled) = _kinds(was), _kinds(profiles)
    if bool(was_sampled) != bool(sampled):
        raise UsageError(
            f"{against}: expected a profile of the same kind as {subject}, got one that is sampled in real time "
            "and one that is counted in virtual time; their figures have nothing in common"
        )
    at = loads_of_profile(other) | loads_of_profile(run)
    of_counted = pairs.of_two_runs(other, was_counted, run, counted)
    of_sampled = pairs.of_two_runs(other, was_sampled, run, sampled)
    tables.show_differences(of_counted, at, console, top)
    sampled_tables.show_differences(of_sampled, at, console, top)
    compared: list[pairs.Pair] = [*of_counted, *of_sampled]
    _say_not_compared(other, pairs.without_partner(was, compared))
    _say_not_compared(run, [*how.unpaired, *pairs.without_partner(profiles, compared)])
    return run


def _by_stack(how: Profiling, subject: Path, reference: str, console: Console, top: int) -> RunDirectory:
    """Show how each other stack of the subject differs from the reference."""
    pairs.demand_stacks(_refuse_early(subject), how.chosen, reference)
    run, profiles = how.of(subject)
    entries, loads = run.manifest.cases, loads_of_profile(run)
    counted, sampled = _kinds(profiles)
    of_counted = pairs.of_stacks(entries, counted, reference)
    of_sampled = pairs.of_stacks(entries, sampled, reference)
    tables.show_differences(of_counted, loads, console, top, _STACKS)
    sampled_tables.show_differences(of_sampled, loads, console, top, _STACKS)
    _say_not_compared(run, pairs.without_partner(profiles, [*of_counted, *of_sampled]))
    if len(set(loads.values())) > 1:
        each = ", ".join(f"{case} {load:,.0f}" for case, load in loads.items())
        console.print(
            f"Each case was measured at its own load, in frames/s: {each}. A part of a difference may come from that.",
            soft_wrap=True,
        )
    return run


def _say_not_compared(run: RunDirectory, cases: Sequence[str]) -> None:
    """Name cases that have nothing to be compared with."""
    if cases:
        why = "not compared, since there is no other profile at the same point"
        print(f"{why}: {run.path}: {', '.join(cases)}", file=sys.stderr)


def _kinds(profiles: Profiles) -> tuple[list[Profile], list[SampledProfile]]:
    """Return those that were counted and those that were sampled."""
    counted = [profile for profile in profiles if isinstance(profile, Profile)]
    return counted, [profile for profile in profiles if isinstance(profile, SampledProfile)]


def _refuse_early(subject: Path) -> list[CaseEntry]:
    """Say what is wrong with the subject before anything else is measured; return its cases."""
    return list(open_run(subject).manifest.cases) if subject.is_dir() else entries_of(subject)


def _loads_used(profiled: RunDirectory) -> Loads:
    """Return the loads at which a run of ours was measured."""
    entries = {entry.case: entry for entry in profiled.manifest.cases}
    used: Loads = {}
    for name, loads in profiled.manifest.base_loads.items():
        at = Point.of(entries[name]), entries[name].repeat
        used[at] = (loads[0].load_fps, loads[0].duration_s)
    return used
