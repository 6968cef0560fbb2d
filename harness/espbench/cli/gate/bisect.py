# SPDX-License-Identifier: Apache-2.0
"""`espbench bisect PLAN --good A --bad B --build CMD`: finds the commit that made a frame cost more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli.gate.bases import Building, building
from espbench.cli.gate.measuring import Measuring
from espbench.cli.gate.refusals import refuse_different
from espbench.errors import UsageError
from espbench.gate import baseline_file, conditions, from_check
from espbench.gate.base import Base, Point
from espbench.gate.commits.bisecting import Answer, Bisection
from espbench.gate.commits.history import History, Step, open_history
from espbench.gate.commits.tree import BuildFailed, Commit
from espbench.gate.from_run import GATED, base_of
from espbench.gate.judging import judge
from espbench.gate.limits import Limit, Quantity
from espbench.gate.limits import limits as read_limits
from espbench.gate.verdict import NOT_JUDGED, Row
from espbench.plan import load_plan
from espbench.results.durable import write_atomically
from espbench.runs.beds import cases_of, choose, virtual
from espbench.terms import CaseEntry, kind_of_test

_DIGITS = 12  # of a commit's name, in the name of a folder


def bisect(
    plan: Annotated[Path, typer.Argument(help="The plan, in virtual time.")],
    good: Annotated[str, typer.Option(help="A revision without the regression.")],
    bad: Annotated[str, typer.Option(help="A later revision with the regression.")],
    build: Annotated[
        str,
        typer.Option(help="The command that builds a revision and installs it where the plan looks for it."),
    ],
    limit: Annotated[
        list[str] | None, typer.Option(help="What counts as worse: instructions=0.1% or instructions=50.")
    ] = None,
    tree: Annotated[Path | None, typer.Option(help="The git tree. Default: the current folder.")] = None,
    out: Annotated[Path, typer.Option(help="The folder for its own folder.")] = Path("runs"),
) -> None:
    """Find the commit that made a frame cost more. After an interruption, the same command continues."""
    limits = read_limits(limit or [])
    resolved = load_plan(plan)
    choices = choose(resolved)
    if not virtual(choices):
        raise UsageError(
            f"{plan}: expected a plan in virtual time, where a commit's cost is a number, got "
            f"{choices[0].platform.name}; name a dut that keeps virtual time"
        )
    listed = cases_of(resolved, choices)
    entries = [case.entry() for case in listed if kind_of_test(case.test) == GATED]
    how = building(resolved, tree, build, Path())
    span = how.tree.between(how.tree.commit(good), how.tree.commit(bad))
    folder = out / f"bisect-{span[0].name[:_DIGITS]}-{span[-1].name[:_DIGITS]}-{resolved.plan.name}"
    asked = {
        "plan": resolved.text, "tree": str(how.tree.path), "good": span[0].name, "bad": span[-1].name, "build": build,
        "limits": ", ".join(f"{name} {value}" for name, value in limits.items()),
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    history = open_history(folder / "bisect.json", asked)
    costs = Costs(
        replace(how, work=folder), Measuring(folder / "runs"), plan, entries, limits, history
    )  # fmt: skip
    try:
        answer = search(span, history, costs.of, costs.figure_of, _say)
        costs.how.close()
    finally:
        costs.how.tell()
    if answer is None:
        for problem in costs.problems:
            _say(f"not judged: {problem}")
        more = f"more than {span[0]} by more than the limit"
        if costs.problems:
            _say(f"no answer: what could be measured of {span[-1]} does not cost {more}")
        else:
            _say(f"no single commit: {span[-1]} does not cost {more}")
        raise typer.Exit(NOT_JUDGED)
    text = as_markdown(span, answer, history)
    write_atomically(folder / "bisect.md", text)
    print(text)
    print(folder / "bisect.md")
    if not answer.single:
        raise typer.Exit(NOT_JUDGED)


@dataclass
class Costs:
    """Builds commits and measures them: first the good one, whose throughputs give the loads of all, then others.

    run, problems: the directory of the last run, and why cases of it could not be judged.
    """

    how: Building
    measuring: Measuring
    plan: Path
    entries: Sequence[CaseEntry]
    limits: dict[Quantity, Limit]
    history: History
    run: str = ""
    problems: list[str] = field(default_factory=list)

    def figure_of(self, good: Commit, bad: Commit) -> Row | None:
        """Return the figure in which bad is worst compared with good; None if it is worse in none.

        Raise BuildFailed if one of them cannot be built, and UsageError if the command installed nothing.
        """
        has_written = False
        if not self._file.exists():
            has_written = self.how.build(good)
            made = base_of(self.measuring.run(self.plan))
            base = self.measuring.with_halves(made, self.plan, self.entries)
            write_atomically(self._file, baseline_file.text_of(base))
        base = baseline_file.read(self._file)
        has_written = self.how.build(bad) or has_written
        rows = self._rows(base)
        worse = [row for row in rows if row.word == "regressed" and row.quantity == "instructions"]
        if not has_written and not self.problems and not any(row.change for row in rows):
            self._file.unlink()  # it is of what was there before, so it is no base of the good commit
            where = ", ".join(map(str, self.how.paths)) or "but it names neither a prefix nor a kernel"
            raise UsageError(
                f"--build {self.how.command}: it installed nothing, and good and bad cost the same\n"
                f"  expected: files where the plan looks for what is tested: {where}\n"
                "  got: no file written there by the builds of the good and the bad commit\n"
                "  what to do: let the command install what it builds there (docs/ci.md)"
            )
        return max(worse, key=lambda row: row.share or 0.0, default=None)

    def of(self, commit: Commit) -> Step:
        """Build a commit, measure the figure of this bisection, and return it as a step; its cost may be None."""
        figure = self.history.figure
        base = baseline_file.read(self._file)
        one = {point: case for point, case in base.cases.items() if str(point) == figure["case"]}
        try:
            self.how.build(commit)
        except BuildFailed as failed:
            return Step(commit.name, None, why=failed.what)
        try:
            rows = self._rows(replace(base, cases=one))
        except typer.Exit as ended:
            if ended.exit_code != UsageError.exit_code:
                raise
            # The same plan was measured with good and bad, so it is this build that `espbench run` refuses.
            return Step(commit.name, None, why=f"espbench run refused it with exit code {ended.exit_code}")
        for row in rows:
            if (row.goal, row.side) == (figure["goal"], figure["side"]) and row.now is not None:
                return Step(commit.name, row.now, run=self.run)
        return Step(commit.name, None, run=self.run, why="; ".join(self.problems) or "no figure")

    @property
    def _file(self) -> Path:
        """The file of the base, which has the figures of the good commit."""
        return self.how.work / "baseline.json"

    def _rows(self, base: Base) -> list[Row]:
        """Measure the cases of the base; raise UsageError if not only the build differs from what the base had."""
        entries = [entry for entry in self.entries if Point.of(entry) in base.cases]
        run = self.measuring.run(self.plan, from_check.base_loads(base, entries, self.limits))
        now = conditions.of_run(run.manifest)
        refuse_different(
            base,
            now.instrument,
            free={*now.subject, *(key for case in base.cases.values() for key in case.subject)},
            partly=now.partly,
            remedy=f"put in place what the bisection began with, or remove {self.how.work} to begin it anew",
        )
        measured, problems = from_check.measurements(run, base)
        self.run, self.problems = str(run.path), [f"{p.case}: {p.why}" for p in problems]
        return judge(base, measured, self.limits)


def search(
    span: Sequence[Commit],
    history: History,
    cost_of: Callable[[Commit], Step],
    figure_of: Callable[[Commit, Commit], Row | None],
    say: Callable[[str], None],
) -> Answer | None:
    """Continue a bisection until it has an answer, and save each step; return None if bad is not worse than good."""
    if not history.figure:
        row = figure_of(span[0], span[-1])
        if row is None or row.now is None:
            return None
        history.figure = {"case": row.case, "goal": row.goal, "side": row.side, "name": row.name}
        history.steps = [Step(span[0].name, row.base), Step(span[-1].name, row.now)]
        history.save()
    places = {commit.name: place for place, commit in enumerate(span)}
    known = {places[name]: step.cost for name, step in history.known.items()}
    say(
        f"{history.figure['case']}: {history.figure['name']}: good {known[0]:,.3f}, bad {known[len(span) - 1]:,.3f}"
    )
    bisection = Bisection(len(span) - 1, known)
    number = len(history.steps) - 2
    while (place := bisection.next()) is not None:
        number += 1
        say(f"step {number} of about {number - 1 + bisection.steps_left}: {span[place]}")
        step = cost_of(span[place])
        history.add(step)
        bisection.add(place, step.cost)
        say("  left out: " + step.why if step.cost is None else f"  {step.cost:,.3f} instructions per frame")
    return bisection.answer()


def as_markdown(span: Sequence[Commit], answer: Answer, history: History) -> str:
    """Return the answer with all measured steps, as Markdown."""
    figure = f"{history.figure['case']}: {history.figure['name']}"
    first, last = span[answer.first], span[answer.last]
    if answer.single:
        head = f"{last} costs {answer.cost:+,.3f} instructions per frame"
    elif answer.first == answer.last:
        head = f"no single commit: {answer.why}; of {answer.whole:+,.3f} in all, {last} costs {answer.cost:+,.3f}"
    else:
        head = f"no single commit: {answer.why}; {first} to {last} cost {answer.cost:+,.3f} together"
    places = {commit.name: place for place, commit in enumerate(span)}
    lines = []
    for step in sorted(history.steps, key=lambda step: places[step.commit]):
        cost = step.why if step.cost is None else f"{step.cost:,.3f}"
        lines.append(f"| {places[step.commit]} | {span[places[step.commit]]} | {cost} |")
    table = "\n".join(["| place | commit | instructions per frame |", "|---:|---|---:|", *lines])
    return f"{head}\n\n{figure}\n\n{table}\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr)
