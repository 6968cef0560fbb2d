# SPDX-License-Identifier: Apache-2.0
"""`espbench profile RUN|PLAN`: where the instructions of each frame go, by function of the gateways' kernels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from espbench.cli.gate import profile_table
from espbench.cli.gate.measuring import Measuring
from espbench.errors import UsageError
from espbench.gate import instructions
from espbench.gate.base import HALF, Point
from espbench.gate.from_run import GATED
from espbench.plan import cases, load_plan
from espbench.profile import csv_file, flame, from_run
from espbench.profile.attribution import Profile
from espbench.results import RunDirectory
from espbench.results.durable import write_atomically
from espbench.runs.beds import choose, virtual
from espbench.terms import BaseLoad, CaseEntry, Outcome, kind_of_test

CSV, GRAPH = "profile.csv", "profile.html"
_PIPED_WIDTH = 160
_ANY_LOSS = 1.0  # of a load's goal: the trial is as it is
_PERF = (
    "in real time nobody counts a gateway's instructions one by one; sample them with perf on the gateway itself "
    "(perf record -a -g, then perf report), or name a dut that keeps virtual time, such as virt-x86"
)
_PROFILED = "qemu_x86"  # the platform whose kernels tell their functions
_UNNAMED = (
    "a kernel that tells its functions: dut: virt-x86; those of other machines in virtual time do not yet"
)
Loads = dict[tuple[Point, int], tuple[float, float]]
"""Of each point and repeat: the load, frames/s, and how long the trial lasts, s."""


def profile(
    subject: Annotated[
        Path, typer.Argument(metavar="RUN|PLAN", help="A run directory, or a plan, in virtual time.")
    ],
    case: Annotated[list[str] | None, typer.Option(help="Only this case of it; may be repeated.")] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            help="What to hold it against, at whose loads it is measured: a run, or what profile left."
        ),
    ] = None,
    half: Annotated[
        bool,
        typer.Option("--half", help="At half of the throughput, where no gateway is busy all the time."),
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="How many functions are shown of each gateway.")] = 20,
    out: Annotated[Path, typer.Option(help="Where run directories go.")] = Path("runs"),
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="How many cases are measured at once.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until no other measurement uses this machine's CPUs.")
    ] = False,
) -> None:
    """Count the instructions of the final trials' frames by function: a table, a CSV file and a flame graph."""
    options = [*(["--wait"] if wait else []), *(["--jobs", str(jobs)] if jobs else [])]
    how = Profiling(out, options, half=half, chosen=case or [])
    console = Console(highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, emoji=False, markup=False, width=_PIPED_WIDTH)
    if against is None:
        run, found = how.of(subject)
        profile_table.show(found, console, top)
    else:
        _refuse_real_time(subject)
        other, was = how.of(against)
        run, found = how.of(subject, loads=_loads_used(other))
        profile_table.show_differences(_pairs(other, was, run, found), console, top)
    print(run.path / GRAPH)


class Profiling:
    """Makes profiles of runs and plans, or reads those that are there."""

    def __init__(self, out: Path, options: Sequence[str], *, half: bool, chosen: Sequence[str]) -> None:
        self._out = out
        self._options = options
        self._half = half
        self._chosen = chosen

    def of(self, subject: Path, loads: Loads | None = None) -> tuple[RunDirectory, list[Profile]]:
        """The run that was measured with its profiles; loads: those to measure at in place of its own.

        UsageError for what is neither a run nor a plan in virtual time, or has no such case.
        """
        if (subject / CSV).is_file() and loads is None:
            return self._kept(subject)
        if subject.is_dir():
            run = _open(subject)
            plan, beside = run.path / "plan.yaml", run.manifest.plan_path
            entries = run.manifest.cases
        else:
            plan, beside = subject, ""
            entries = _entries(subject)
            if loads is None:
                run = Measuring(self._out, self._options).run(plan)
        own = loads is None
        if loads is None:
            loads = _loads_of(run, HALF if self._half else 1.0)
        wanted = self._wanted(entries, loads, subject)
        words = ["--profiled", *(["--beside", beside] if beside else []), *self._options]
        made = Measuring(self._out, words).run(plan, wanted)
        found = from_run.profiles(made)
        write_atomically(made.path / CSV, csv_file.text_of(found))
        write_atomically(made.path / GRAPH, flame.page(f"espbench: {made.manifest.name}", found))
        if own and not self._half:
            _say_if_another(run, made)
        return made, found

    def _kept(self, subject: Path) -> tuple[RunDirectory, list[Profile]]:
        file = subject / CSV
        run = _open(subject)
        entries = [entry for entry in run.manifest.cases if entry.case in run.manifest.base_loads]
        names = {entry.case for entry in self._choose(entries, subject)}
        return run, [p for p in csv_file.read(file.read_text(), str(file)) if p.case in names]

    def _wanted(self, entries: Sequence[CaseEntry], loads: Loads, subject: Path) -> dict[str, list[BaseLoad]]:
        found = {}
        gated = [entry for entry in entries if kind_of_test(entry.test) == GATED]
        for entry in self._choose(gated, subject):
            if (at := loads.get((Point.of(entry), entry.repeat))) is not None:
                load = BaseLoad(goal=_ANY_LOSS, load_fps=at[0], duration_s=at[1], floor_fps=at[0])
                found[entry.case] = [load]
        if not found:
            raise UsageError(
                f"{subject}: nothing to profile\n  expected: a case with a throughput, at whose load it is measured\n"
                "  got: none of these cases has one\n  what to do: name another run, or other cases"
            )
        return found

    def _choose(self, entries: Sequence[CaseEntry], subject: Path) -> list[CaseEntry]:
        names = [entry.case for entry in entries]
        if unknown := [name for name in self._chosen if name not in names]:
            raise UsageError(
                f"{subject}: --case {unknown[0]}: no such case\n  expected: one of {', '.join(names) or '(none)'}\n"
                f"  got: {unknown[0]}"
            )
        return [entry for entry in entries if not self._chosen or entry.case in self._chosen]


def _open(path: Path) -> RunDirectory:
    run = RunDirectory.open(path)
    if not instructions.are_counted(run.manifest):
        raise UsageError(
            f"{path}: no instructions to profile\n  expected: a run in virtual time\n"
            f"  got: one on {run.manifest.platform}\n  what to do: {_PERF}"
        )
    _demand_names(path, run.manifest.platform)
    return run


def _entries(plan: Path) -> list[CaseEntry]:
    resolved = load_plan(plan)
    choices = choose(resolved)
    if not virtual(choices):
        raise UsageError(
            f"{plan}: no instructions to profile\n  expected: a plan in virtual time\n"
            f"  got: one on {choices[0].platform.name}\n  what to do: {_PERF}"
        )
    _demand_names(plan, choices[0].platform.name)
    listed = cases(resolved, [choice.dut for choice in choices], mtu=min(choice.mtu for choice in choices))
    return [case.entry() for case in listed]


def _demand_names(where: Path, platform: str) -> None:
    if platform != _PROFILED:
        raise UsageError(f"{where}: no names to profile\n  expected: {_UNNAMED}\n  got: {platform}")


def _refuse_real_time(subject: Path) -> None:
    """Before anything else is measured."""
    if subject.is_dir():
        _open(subject)
    else:
        _entries(subject)


def _loads_of(run: RunDirectory, share: float) -> Loads:
    """The throughputs of a run: of several loss goals the strictest that has one."""
    found: Loads = {}
    for outcome in sorted(run.outcomes(), key=lambda outcome: outcome.loss_goal):
        at = (Point.of(outcome), outcome.repeat)
        if kind_of_test(outcome.test) == GATED and outcome.final_trial is not None and at not in found:
            trial = run.trials_of(outcome.case)[outcome.final_trial]
            found[at] = (round(share * trial.intended_fps, 3), trial.intended_duration_s)
    return found


def _loads_used(profiled: RunDirectory) -> Loads:
    """Those at which a run of ours was measured."""
    entries = {entry.case: entry for entry in profiled.manifest.cases}
    found: Loads = {}
    for name, loads in profiled.manifest.base_loads.items():
        at = Point.of(entries[name]), entries[name].repeat
        found[at] = (loads[0].load_fps, loads[0].duration_s)
    return found


def _pairs(
    other: RunDirectory, was: Sequence[Profile], run: RunDirectory, now: Sequence[Profile]
) -> list[tuple[Profile, Profile]]:
    """The profiles of the same point and gateway in both."""

    def at(of: RunDirectory) -> dict[str, tuple[Point, int]]:
        return {entry.case: (Point.of(entry), entry.repeat) for entry in of.manifest.cases}

    before, after = at(other), at(run)
    known = {(before[p.case], p.side): p for p in was}
    return [(known[key], p) for p in now if (key := (after[p.case], p.side)) in known]


def _say_if_another(run: RunDirectory, made: RunDirectory) -> None:
    """Whether the profiled trials are the run's own ones; they are not where its gateways were others."""
    finals: dict[str, Outcome] = {}
    for outcome in sorted(run.outcomes(), key=lambda outcome: -outcome.loss_goal):
        finals[outcome.case] = outcome
    for name in made.manifest.base_loads:
        outcome = finals[name]
        assert outcome.final_trial is not None
        was = instructions.per_frame(run.trials_of(name)[outcome.final_trial])
        now = instructions.per_frame(made.trials_of(name)[0])
        if was != now:
            print(
                f"note: {name}: the run's own trial had {_told(was)} instructions per frame, this one {_told(now)}: "
                "it was measured on other gateways (kernel, QEMU, program) than there are now",
                file=sys.stderr,
            )


def _told(counted: dict[str, float]) -> str:
    return " and ".join(f"{value:,.3f} ({side})" for side, value in counted.items())
