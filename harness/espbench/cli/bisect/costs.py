# SPDX-License-Identifier: Apache-2.0
"""Builds the commits of a bisection and measures what a frame costs with each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import typer

from espbench.cli.gate.bases import Building
from espbench.cli.gate.measuring import Measuring
from espbench.cli.gate.refusals import refuse_different
from espbench.errors import UsageError
from espbench.gate import baseline_file, conditions, from_check
from espbench.gate.base import Base, Point
from espbench.gate.commits.history import History, Step
from espbench.gate.commits.tree import BuildFailed, Commit
from espbench.gate.from_run import base_of
from espbench.gate.judging import judge
from espbench.gate.limits import Limit, Quantity
from espbench.gate.verdict import Row
from espbench.results import RunDirectory
from espbench.results.durable import write_atomically
from espbench.terms import CaseEntry


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
        good_written = True
        if not (self._file.exists() and self.history.is_kept):
            good_written = self.how.build(good)
            made = base_of(self.measuring.run(self.plan))
            base = self.measuring.with_low_loads(made, self.plan, self.entries)
            # The history says which command built the base. So there is never a base without it.
            self._file.unlink(missing_ok=True)
            self.history.save()
            write_atomically(self._file, baseline_file.text_of(base))
        base = self.base
        bad_written = self.how.build(bad)
        rows = self._rows(base)
        worse = [row for row in rows if row.word == "regressed" and row.quantity == "instructions"]
        if not (good_written and bad_written) and not self.problems and not any(row.change for row in rows):
            self._file.unlink()  # it is of what was there before, so it is no base of the good commit
            self.history.forget()
            where = ", ".join(map(str, self.how.paths)) or "but it names neither a prefix nor a kernel"
            raise UsageError(
                f"--build {self.how.command}: it installed nothing, and good and bad cost the same\n"
                f"  expected: files where the plan looks for what is tested: {where}\n"
                f"  got: no file written there by the build of {bad if good_written else good}\n"
                "  what to do: let the command install what it builds there (docs/ci.md)"
            )
        return max(worse, key=lambda row: row.share or 0.0, default=None)

    def of(self, commit: Commit) -> Step:
        """Build a commit, measure the figure of this bisection, and return it as a step; its cost may be None."""
        figure = self.history.figure
        base = self.base
        one = {point: case for point, case in base.cases.items() if str(point) == figure["case"]}
        try:
            has_written = self.how.build(commit)
        except BuildFailed as failed:
            return Step(commit.name, None, why=failed.what)
        if self.how.paths and not has_written:
            # The build of another commit still stands there.
            return Step(commit.name, None, why="--build: the command wrote nothing where the plan looks")
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
    def base(self) -> Base:
        """The base, which has the figures of the good commit; it is there once `figure_of` has measured them."""
        return baseline_file.read(self._file)

    def refuse_another_instrument(self, base: Base, run: RunDirectory) -> None:
        """Raise UsageError if a run differs from the base in more than the build: costs could not be compared."""
        now = conditions.of_run(run.manifest)
        refuse_different(
            base,
            now.instrument,
            free={*now.subject, *(key for case in base.cases.values() for key in case.subject)},
            partly=now.partly,
            remedy=f"put in place what the bisection began with, or remove {self.how.work} to begin it anew",
        )

    @property
    def _file(self) -> Path:
        return self.how.work / "baseline.json"

    def _rows(self, base: Base) -> list[Row]:
        """Measure the cases of the base; raise UsageError if not only the build differs from what the base had."""
        entries = [entry for entry in self.entries if Point.of(entry) in base.cases]
        run = self.measuring.run(self.plan, from_check.base_loads(base, entries, self.limits))
        self.refuse_another_instrument(base, run)
        measured, problems = from_check.measurements(run, base)
        self.run, self.problems = str(run.path), [f"{p.case}: {p.why}" for p in problems]
        return judge(base, measured, self.limits)
