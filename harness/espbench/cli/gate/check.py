# SPDX-License-Identifier: Apache-2.0
"""`espbench check PLAN --against BASE`: says by its exit code whether a frame costs more than in the base."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from espbench.cli.gate.baseline import band
from espbench.cli.gate.bases import Building, building, unknown
from espbench.cli.gate.measuring import Measuring
from espbench.cli.gate.options import Wait
from espbench.cli.gate.outputs import Outputs
from espbench.cli.gate.refusals import (
    Judged,
    refuse_different,
    refuse_limit_of_cpu,
    refuse_numbers,
    refuse_other_cases,
    refuse_too_large,
    refuse_unfit,
)
from espbench.cli.gate.table import show
from espbench.comparison import compare
from espbench.errors import UsageError
from espbench.gate import baseline_file, conditions, from_check, real_time
from espbench.gate.base import Base, Point
from espbench.gate.commits.tree import Commit
from espbench.gate.from_run import GATED, base_of
from espbench.gate.judging import judge
from espbench.gate.limits import Limit, Quantity, limited
from espbench.gate.limits import limits as read_limits
from espbench.gate.verdict import Check, Problem
from espbench.own_code import own_code
from espbench.plan import Case, ResolvedPlan, Throughput, load_plan
from espbench.plan import conditions as plan_conditions
from espbench.plan.resolved.arms import arms
from espbench.results import RunDirectory
from espbench.runs.beds import Choice, cases_of, choose, profiles_of, virtual
from espbench.terms import CaseEntry, kind_of_test
from espbench.version import __version__

_NO_LOW_LOADS = (
    "the base has no load but the throughputs, where a gateway that is busy all the time hides what a frame costs; "
    "a file of espbench baseline has a tenth of each too"
)
_SAME_BUILDS = (
    "both builds gave the same: in what is under test, the gateways report no difference between the revision "
    "and the tree"
)
_PIPED_WIDTH = 180


@dataclass(frozen=True)
class Asked:
    """The request for one check.

    limited: the quantities whose limit the user gave. allowed: keys or words of conditions that may differ. repeats:
    how many repeats are measured; None: all of the plan.
    """

    plan: Path
    resolved: ResolvedPlan
    choices: Sequence[Choice]
    limits: Mapping[Quantity, Limit]
    limited: Collection[Quantity]
    allowed: Collection[str]
    measuring: Measuring
    repeats: int | None = None

    @property
    def cases(self) -> list[Case]:
        """The plan's cases whose throughput is measured."""
        listed = cases_of(self.resolved, self.choices)
        return [case for case in listed if kind_of_test(case.test) == GATED]

    @property
    def entries(self) -> list[CaseEntry]:
        """The same cases, as a manifest lists them."""
        return [case.entry() for case in self.cases]

    @property
    def judged(self) -> set[Judged]:
        """The throughputs of these cases: one for each loss goal."""
        return {
            (Point.of(case.entry()), case.repeat, goal)
            for case in self.cases
            if isinstance(case.settings, Throughput)
            for goal in case.settings.loss_goals
        }


def check(  # noqa: PLR0913
    plan: Annotated[Path, typer.Argument(help="The plan, a YAML file.")],
    against: Annotated[
        str,
        typer.Option(
            help="What to compare with: a file of espbench baseline, a run directory, the reference of the plan's "
            "compare, or with --build a git revision."
        ),
    ],
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="How much worse a figure may get: instructions=0.1%, instructions=50 or throughput=2%."
        ),
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(help="The command that builds a revision and installs it where the plan looks for it."),
    ] = None,
    tree: Annotated[
        Path | None, typer.Option(help="The git tree of the revision. Default: the current folder.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder for new run directories.")] = Path("runs"),
    json: Annotated[Path | None, typer.Option(help="Write the verdict as JSON.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the verdict as JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a summary for a pull request.")] = None,
    allow_different: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-different",
            help="A condition that may differ from the base, such as kernel; cases: the base may have more cases.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="In virtual time: measure N cases at once.")
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option("--repeats", min=1, help="In virtual time: measure only the plan's first N repeats."),
    ] = None,
    wait: Wait = False,
) -> None:
    """Check a plan for regressions. Exit code 0: none; 5: some; 3: a case could not be judged."""
    outputs = Outputs(json, junit, markdown)
    outputs.clear({"the plan": plan, "the base": Path(against)})
    texts = limit or []
    limits, given = read_limits(texts), limited(texts)
    resolved = load_plan(plan)
    options = [*(["--wait"] if wait else []), *(["--jobs", str(jobs)] if jobs else [])]
    measuring, allowed = Measuring(out, options), allow_different or []
    asked = Asked(plan, resolved, choose(resolved), limits, given, allowed, measuring, repeats)
    verdict = _verdict(asked, against, build, tree)
    outputs.write(verdict)
    show(verdict, _console())
    raise typer.Exit(verdict.exit_code)


def _console() -> Console:
    console = Console(highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, emoji=False, markup=False, width=_PIPED_WIDTH)


def _verdict(asked: Asked, against: str, command: str | None, tree: Path | None) -> Check:
    of_run = asked.resolved.plan.compare is not None and against == _reference(asked.resolved)
    if (command is not None or tree is not None) and (of_run or Path(against).exists()):
        raise _nothing_to_build(against, "--build" if command is not None else "--tree")
    if not asked.entries:
        return _empty(asked, against)
    in_virtual_time = virtual(asked.choices)
    if not in_virtual_time:
        refuse_numbers(asked.limits)
        if cpu := _cpu_not_judged(asked, of_run=of_run):
            refuse_limit_of_cpu(asked.limited, cpu)
        if asked.repeats is not None:
            raise _repeats_in_real_time(asked)
    if of_run and not in_virtual_time:
        return _between_arms(asked, against)
    path = Path(against)
    if path.is_dir():
        run = RunDirectory.open(path)
        if in_virtual_time:
            return _in_virtual_time(asked, base_of(run))
        refuse_unfit(run)
        return _in_real_time(asked, run)
    if path.exists():
        if not in_virtual_time:
            raise _no_file_in_real_time(path)
        return _in_virtual_time(asked, baseline_file.read(path))
    if command is None:
        raise unknown(against)
    how = building(asked.resolved, tree, command, asked.measuring.out / "check")
    return _against_revision(asked, against, how)


def _against_revision(asked: Asked, revision: str, how: Building) -> Check:
    try:
        return _built_and_checked(asked, how.tree.commit(revision), how)
    finally:
        how.tell()


def _built_and_checked(asked: Asked, commit: Commit, how: Building) -> Check:
    """Build and measure the commit, then the tree as it stands, and return the verdict on the second."""
    try:
        base_written = how.build(commit)
    finally:
        how.close()
    run = asked.measuring.run(asked.plan)
    if virtual(asked.choices):
        base = asked.measuring.with_low_loads(base_of(run), asked.plan, asked.entries)
        now_written = how.build(None)
        verdict = _in_virtual_time(asked, replace(base, commit=str(commit)))
    else:
        now_written = how.build(None)
        verdict = _in_real_time(asked, run)
        of_base = [Problem(f"base, {problem.case}", problem.why) for problem in real_time.problems(run)]
        verdict = replace(verdict, base=str(commit), problems=[*of_base, *verdict.problems])
    if any(was != now for was, now in verdict.subjects.values()):
        return verdict
    if base_written and now_written:
        return replace(verdict, notes=[*verdict.notes, _SAME_BUILDS]) if verdict.subjects else verdict
    why = (
        "after both builds the gateways are the same, and the command wrote nothing where the plan looks: "
        f"{', '.join(map(str, how.paths)) or 'it names neither a prefix nor a kernel'}"
    )
    return replace(verdict, problems=[*verdict.problems, Problem("the build", why)])


# -- in virtual time ----------------------------------------------------------------------------


def _in_virtual_time(asked: Asked, base: Base) -> Check:
    """Check that the base is of this plan, measure the plan at the base's loads, and return the verdict."""
    known = _of_plan(asked)
    # The user's own kernels may be what is tested, so their paths may differ; the gateways report the kernels later.
    own = conditions.own_kernels(known)
    refuse_different(base, known, free={*asked.allowed, *own})
    entries = asked.entries
    in_base = {(point, s.repeat, s.goal) for point, case in base.cases.items() for s in case.samples}
    refuse_other_cases(base.where, in_base, asked.judged, asked.allowed)
    held = _judged_of(base, asked.judged)
    refuse_too_large(held, asked.limits)
    wanted = _first_repeats(held, asked.repeats)
    loads = from_check.base_loads(wanted, entries, asked.limits)
    run = asked.measuring.run(asked.plan, loads)
    recorded = conditions.of_run(run.manifest)
    free = {*asked.allowed, *recorded.subject, *(key for case in base.cases.values() for key in case.subject)}
    refuse_different(base, recorded.instrument, free=free, partly=recorded.partly)
    measured, problems = from_check.measurements(run, wanted)
    return Check(
        plan=asked.resolved.plan.name,
        base=base.commit or base.where,
        provenance=base.provenance,
        run=str(run.path),
        espbench=__version__,
        virtual=True,
        rows=judge(held, measured, asked.limits),
        problems=problems,
        subjects=_subjects(held, recorded),
        allowed_differences=conditions.differences(
            base.conditions, recorded.instrument, free={*free} - {*asked.allowed}, partly=recorded.partly
        ),
        notes=_notes(held, asked),
    )


def _judged_of(base: Base, judged: Collection[Judged]) -> Base:
    """Return the base without the throughputs that the plan does not have: other cases, repeats and loss goals."""
    cases = {
        point: replace(case, samples=kept)
        for point, case in base.cases.items()
        if (kept := [s for s in case.samples if (point, s.repeat, s.goal) in judged])
    }
    return replace(base, cases=cases)


def _first_repeats(base: Base, repeats: int | None) -> Base:
    """Return the base with the samples of the first repeats alone, which are measured; the others are in its bands."""
    if repeats is None:
        return base
    cases = {
        point: replace(case, samples=[s for s in case.samples if s.repeat <= repeats])
        for point, case in base.cases.items()
    }
    return replace(base, cases=cases)


def _of_plan(asked: Asked) -> dict[str, str]:
    profiles = profiles_of(asked.choices)
    line_rate = asked.choices[0].platform.line_rate_bps
    known = plan_conditions(asked.resolved, profiles)
    code = own_code()["measuring"]
    return conditions.of_plan(__version__, asked.resolved.plan.topology, line_rate, known, code)


def _subjects(base: Base, now: conditions.Recorded) -> dict[str, tuple[str, str]]:
    """Return the versions under test by key: (in the base, now)."""
    was: dict[str, list[str]] = {}
    for case in base.cases.values():
        for key, value in case.subject.items():
            was.setdefault(key, []).append(value)
    before = {key: " / ".join(dict.fromkeys(values)) for key, values in was.items()}
    every = {**now.instrument, **now.subject}
    keys = sorted(before.keys() | now.subject.keys())
    return {
        key: (before.get(key) or base.conditions.get(key, "nothing"), every.get(key, "nothing"))
        for key in keys
    }


def _notes(base: Base, asked: Asked) -> list[str]:
    """Return the notes that a reader of the figures needs."""
    fewer = asked.repeats is not None and asked.repeats < base.repeats
    return [
        "virtual time: a clock that counts instructions knows neither caches nor branch prediction",
        band(base.repeats),
        *([f"measured now: the first {asked.repeats} of the {base.repeats} repeats"] if fewer else []),
        *([] if base.has_low_loads else [_NO_LOW_LOADS]),
        *_not_gated(asked),
    ]


def _not_gated(asked: Asked) -> list[str]:
    """Return a note that names the tests of the plan whose figures are not judged, if there are any."""
    others = [name for name, _ in asked.resolved.plan.traffic_tests if kind_of_test(name) != GATED]
    return [f"not gated: {', '.join(dict.fromkeys(others))}"] if others else []


# -- in real time -------------------------------------------------------------------------------


def _cpu_not_judged(asked: Asked, *, of_run: bool) -> str:
    """Say why CPU per frame is not judged; empty if it is. of_run: two arms of one run are compared."""
    if not of_run:
        return real_time.CPU_OF_TWO_RUNS
    return real_time.CPU_OF_SEARCHES if asked.resolved.plan.fixed_loads is None else ""


def _in_real_time(asked: Asked, base: RunDirectory) -> Check:
    """Measure the plan as it is, compare its repeats with those of the base run, unpaired, and return the verdict."""
    was = conditions.of_run(base.manifest, virtual=False)
    if not real_time.has_throughput(base):
        raise UsageError(
            f"{base.path}: expected a base with a throughput, got none; let it finish, or name another"
        )
    known = _of_plan(asked)
    as_base = Base(str(base.path), was.instrument, {})
    refuse_different(as_base, known, free={*asked.allowed, *conditions.own_kernels(known), *was.subject})
    in_base = {(Point.of(outcome), outcome.repeat, outcome.loss_goal) for outcome in base.outcomes()}
    refuse_other_cases(as_base.where, in_base, asked.judged, asked.allowed)
    run = asked.measuring.run(asked.plan)
    now = conditions.of_run(run.manifest, virtual=False)
    refuse_different(
        as_base, now.instrument, free={*asked.allowed, *was.subject, *now.subject}, partly=now.partly
    )
    # The conditions were compared above; `compare` would refuse another version of what is under test.
    comparison = compare([base, run], "run", allow_different=True)
    arm = comparison.arms[1].name
    keys = sorted(was.subject.keys() | now.subject.keys())
    return Check(
        plan=asked.resolved.plan.name,
        base=str(base.path),
        provenance=[f"{base.path.resolve().name}, begun {base.manifest.started}"],
        run=str(run.path),
        espbench=__version__,
        virtual=False,
        rows=real_time.rows(comparison, arm, asked.limits),
        problems=real_time.problems(run),
        subjects={key: (was.subject.get(key, "nothing"), now.subject.get(key, "nothing")) for key in keys},
        allowed_differences=conditions.differences(
            was.instrument, now.instrument, free={*was.subject, *now.subject}, partly=now.partly
        ),
        notes=[
            "real time: two runs are not paired; for pairs let one plan compare both arms",
            real_time.CPU_OF_TWO_RUNS,
            comparison.method,
            *real_time.differing(comparison),
            *real_time.unseen(comparison, [arm], asked.limits),
            *comparison.warnings,
            *_not_gated(asked),
        ],
    )


def _between_arms(asked: Asked, reference: str) -> Check:
    """Measure the plan as it is, compare its arms with its reference, in pairs if possible, and return the verdict."""
    run = asked.measuring.run(asked.plan)
    comparison = compare([run], reference=reference)
    # The arms of kernels have other names than in the plan: those that the gateways reported.
    first, *others = comparison.arms
    names = [arm.name for arm in others]
    return Check(
        plan=asked.resolved.plan.name,
        base=f"{reference}, of the same run",
        provenance=[f"{run.path.resolve().name}, begun {run.manifest.started}"],
        run=str(run.path),
        espbench=__version__,
        virtual=False,
        rows=[row for arm in names for row in real_time.rows(comparison, arm, asked.limits)],
        problems=[*real_time.problems(run), *real_time.unjudged(comparison, names)],
        subjects={arm.name: (first.name, arm.detail) for arm in others},
        allowed_differences=[],
        notes=[
            *([cpu] if (cpu := _cpu_not_judged(asked, of_run=True)) else []),
            comparison.method,
            *real_time.unseen(comparison, names, asked.limits),
            *comparison.warnings,
            *_not_gated(asked),
        ],
    )


def _reference(resolved: ResolvedPlan) -> str:
    compared = resolved.plan.compare
    assert compared is not None
    return compared.reference or next(iter(arms(resolved)), "")


def _empty(asked: Asked, against: str) -> Check:
    print("the plan has no case with a throughput: there is nothing to judge", file=sys.stderr)
    return Check(
        asked.resolved.plan.name, against, [], "", __version__, virtual(asked.choices), [], [], {}, [],
        ["the plan has no case with a throughput"],
    )  # fmt: skip


def _nothing_to_build(against: str, option: str) -> UsageError:
    return UsageError(
        f"{option}: nothing to build for --against {against}\n"
        "  expected: a git revision, which is built and measured before the tree as it stands\n"
        "  got: something that was measured, or is measured in this run\n"
        f"  what to do: build before the check and leave {option} out, or name a revision"
    )


def _repeats_in_real_time(asked: Asked) -> UsageError:
    return UsageError(
        f"--repeats {asked.repeats}: not for a plan in real time\n"
        "  expected: all repeats of the plan, whose scatter decides there\n  got: the first ones alone\n"
        "  what to do: leave --repeats out"
    )


def _no_file_in_real_time(path: Path) -> UsageError:
    return UsageError(
        f"{path}: no base for a plan in real time\n"
        "  expected: a run directory, whose repeats show how much its figures scatter\n  got: a file\n"
        "  what to do: name a run, or let the plan compare two arms (docs/ci.md)"
    )
