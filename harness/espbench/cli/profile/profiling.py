# SPDX-License-Identifier: Apache-2.0
"""Makes profiles of runs and plans: their trials are measured again, at the same loads, by gateways that count."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from espbench.cli.gate.measuring import Measuring, write_report
from espbench.errors import EspbenchError, UsageError
from espbench.gate import instructions
from espbench.gate.base import Point
from espbench.gate.from_run import GATED
from espbench.plan import load_plan
from espbench.profile import csv_file, flame, from_run, from_samples, sampled_file
from espbench.profile.attribution import Profile
from espbench.profile.sampled import SampledProfile
from espbench.results import RunDirectory
from espbench.results.durable import write_atomically
from espbench.runs.beds import cases_of, choose, virtual
from espbench.terms import BaseLoad, CaseEntry, Outcome, Trial, kind_of_test

_ANY_LOSS = 1.0  # a loss goal that every trial meets
_COUNTED = ("qemu_x86", "qemu_e500")  # the platforms whose kernels tell their functions
_SAMPLED = ("netns", "remote")  # those that perf can sample
_ELSEWHERE = (
    "name a dut in virtual time, such as virt-x86, whose instructions are counted; or gateways that are namespaces "
    "(netns) or boxes over SSH, whose functions perf samples"
)
_UNNAMED = (
    "gateways whose kernels tell their functions: dut: virt-x86, or a PowerQUICC board such as mpc8548e"
)
Loads = dict[tuple[Point, int], tuple[float, float]]
"""Loads in frames/s with the duration of the trial in s, by point and repeat."""
Profiles = list[Profile] | list[SampledProfile]
"""Profiles of virtual time, which are counted; or of real time, which are sampled."""


class Profiling:
    """Makes profiles of runs and plans, or reads those that are there."""

    def __init__(self, out: Path, options: Sequence[str], *, half: bool, chosen: Sequence[str]) -> None:
        self._out = out
        self._options = options
        self._half = half
        self.chosen = chosen
        self.problems: list[str] = []  # why some cases have no profile
        # The cases that were not measured, because the other run has no load of them.
        self.unpaired: list[str] = []

    def of(self, subject: Path, loads: Loads | None = None) -> tuple[RunDirectory, Profiles]:
        """Return the run that was measured with its profiles; loads: those to measure at in place of its own.

        The table of an earlier profile stands for its run. UsageError for what is neither a run nor a plan, whose
        gateways cannot be profiled, or has no such case.
        """
        if subject.name in (csv_file.FILE, sampled_file.FILE):
            subject = subject.parent
        if loads is None and (kept := self._kept(subject)) is not None:
            return kept
        if subject.is_dir():
            run = open_run(subject)
            _demand_whole(run)
            plan, beside = run.path / "plan.yaml", run.manifest.plan_path
            entries = run.manifest.cases
        else:
            plan, beside = subject, ""
            entries = entries_of(subject)
            if loads is None:
                run = Measuring(self._out, self._options).run(plan)
        own = loads is None
        if loads is None:
            loads = _loads_of(run, 0.5 if self._half else 1.0)
        wanted = self._wanted(entries, loads, subject, own=own)
        words = ["--profiled", *(["--beside", beside] if beside else []), *self._options]
        made = Measuring(self._out, words).run(plan, wanted)
        title = f"espbench: {made.manifest.name}"
        if not made.manifest.is_virtual:
            sampled, problems = from_samples.profiles(made)
            if not sampled:
                raise EspbenchError("\n".join(problems))
            self.problems += problems
            write_atomically(made.path / sampled_file.FILE, sampled_file.text_of(sampled))
            write_atomically(made.flame_graph, flame.sampled_page(title, sampled))
            write_report(made)
            return made, sampled
        counted, problems = from_run.profiles(made)
        if not counted:
            raise EspbenchError("\n".join(problems))
        self.problems += problems
        write_atomically(made.path / csv_file.FILE, csv_file.text_of(counted))
        write_atomically(made.flame_graph, flame.page(title, counted))
        write_report(made)
        if own and not self._half:
            say_if_another(run, made)
        return made, counted

    def _kept(self, subject: Path) -> tuple[RunDirectory, Profiles] | None:
        """Return the profiles that this command left there, of the chosen cases; None if there are none.

        UsageError if another load is asked for than that at which they were measured.
        """
        counted, sampled = subject / csv_file.FILE, subject / sampled_file.FILE
        if not (counted.is_file() or sampled.is_file()):
            return None
        run = open_run(subject)
        if self._half:
            raise UsageError(
                f"{subject}: --half: the loads of this profile are fixed\n"
                "  expected: a run or a plan, which is measured at half of its throughput\n"
                "  got: a profile that was measured before, and is only shown\n"
                "  what to do: leave --half out, or name the run or the plan that the profile is of"
            )
        entries = [entry for entry in run.manifest.cases if entry.case in run.manifest.base_loads]
        names = {entry.case for entry in self._choose(entries, subject)}
        if sampled.is_file():
            return run, [p for p in sampled_file.read(sampled.read_text(), str(sampled)) if p.case in names]
        return run, [p for p in csv_file.read(counted.read_text(), str(counted)) if p.case in names]

    def _wanted(
        self, entries: Sequence[CaseEntry], loads: Loads, subject: Path, *, own: bool
    ) -> dict[str, list[BaseLoad]]:
        """Return the load of each case, and remember the cases without one; own: the loads are the subject's own."""
        wanted = {}
        gated = [entry for entry in entries if kind_of_test(entry.test) == GATED]
        for entry in self._choose(gated, subject):
            if (at := loads.get((Point.of(entry), entry.repeat))) is not None:
                load = BaseLoad(goal=_ANY_LOSS, load_fps=at[0], duration_s=at[1], floor_fps=at[0])
                wanted[entry.case] = [load]
            elif own:
                self.problems.append(f"{entry.case}: no throughput, at whose load it would be measured")
            else:
                self.unpaired.append(entry.case)
        if not wanted:
            raise UsageError(
                f"{subject}: nothing to profile\n  expected: a case with a throughput, at whose load it is measured\n"
                "  got: none of these cases has one\n  what to do: name another run, or other cases"
            )
        return wanted

    def _choose(self, entries: Sequence[CaseEntry], subject: Path) -> list[CaseEntry]:
        names = [entry.case for entry in entries]
        if unknown := [name for name in self.chosen if name not in names]:
            raise UsageError(
                f"{subject}: --case {unknown[0]}: no such case\n  expected: one of {', '.join(names) or '(none)'}\n"
                f"  got: {unknown[0]}"
            )
        return [entry for entry in entries if not self.chosen or entry.case in self.chosen]


def open_run(path: Path) -> RunDirectory:
    """Open a run; UsageError where its gateways can be neither counted nor sampled."""
    run = RunDirectory.open(path)
    _demand(path, "run", run.manifest.platform, counted=run.manifest.is_virtual)
    return run


def loads_of_profile(profiled: RunDirectory) -> dict[str, float]:
    """Return the load of each profiled case, frames/s."""
    return {case: loads[0].load_fps for case, loads in profiled.manifest.base_loads.items()}


def _demand_whole(run: RunDirectory) -> None:
    if damage := run.damage():
        raise UsageError(
            f"{run.path}: nothing to profile\n  expected: trials as they were written, at whose loads it is measured\n"
            f"  got: {damage[0]}\n  what to do: let espbench run --resume {run.path} measure the damaged cases again"
        )


def entries_of(plan: Path) -> list[CaseEntry]:
    """List a plan's cases; UsageError where its gateways could be neither counted nor sampled."""
    resolved = load_plan(plan)
    choices = choose(resolved)
    _demand(plan, "plan", choices[0].platform.name, counted=virtual(choices))
    return [case.entry() for case in cases_of(resolved, choices)]


def _demand(where: Path, what: str, platform: str, *, counted: bool) -> None:
    if counted and platform not in _COUNTED:
        raise UsageError(f"{where}: no names to profile\n  expected: {_UNNAMED}\n  got: {platform}")
    if not counted and platform not in _SAMPLED:
        raise UsageError(
            f"{where}: nothing to profile\n  expected: a {what} in virtual time, or on namespaces or boxes\n"
            f"  got: one on {platform}\n  what to do: {_ELSEWHERE}"
        )


def finals_of(run: RunDirectory) -> dict[str, tuple[Outcome, Trial]]:
    """Return each case's throughput with its final trial: of several loss goals the strictest that has one."""
    finals: dict[str, tuple[Outcome, Trial]] = {}
    for outcome in sorted(run.outcomes(), key=lambda outcome: outcome.loss_goal):
        if kind_of_test(outcome.test) == GATED and outcome.case not in finals:
            trials = [t for t in run.trials_of(outcome.case) if t.sequence == outcome.final_trial]
            if trials:
                finals[outcome.case] = outcome, trials[0]
    return finals


def _loads_of(run: RunDirectory, share: float) -> Loads:
    """Return the throughputs of a run."""
    return {
        (Point.of(outcome), outcome.repeat): (round(share * final.intended_fps, 3), final.intended_duration_s)
        for outcome, final in finals_of(run).values()
    }


def say_if_another(run: RunDirectory, made: RunDirectory) -> None:
    """Warn if the profiled trials are not the run's own ones, because its gateways differed."""
    finals = finals_of(run)
    for name in made.manifest.base_loads:
        trials = made.trials_of(name)
        if not trials or trials[-1].validity != "VALID":
            continue  # it has no profile, and the reason is told
        was = instructions.per_frame(finals[name][1])
        now = instructions.per_frame(trials[-1])
        if was != now:
            print(
                f"note: {name}: the run's own trial had {_shown(was)} instructions per frame, this one {_shown(now)}: "
                "it was measured on other gateways (kernel, QEMU, program) than there are now",
                file=sys.stderr,
            )


def _shown(counted: dict[str, float]) -> str:
    return " and ".join(f"{value:,.3f} ({side})" for side, value in counted.items())
