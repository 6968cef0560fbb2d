# SPDX-License-Identifier: Apache-2.0
"""`espbench bisect PLAN --good A --bad B --build CMD`: finds the commit that made a frame cost more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli.bisect import by_function
from espbench.cli.bisect.costs import Costs
from espbench.cli.gate.bases import building
from espbench.cli.gate.measuring import Measuring
from espbench.errors import EspbenchError, Interrupted, UsageError
from espbench.gate.commits.bisecting import Answer, Bisection
from espbench.gate.commits.history import History, Step, open_history
from espbench.gate.commits.tree import Commit
from espbench.gate.from_run import GATED
from espbench.gate.limits import limits as read_limits
from espbench.gate.verdict import NOT_JUDGED, Row
from espbench.plan import load_plan
from espbench.results.durable import write_atomically
from espbench.runs.beds import cases_of, choose, virtual
from espbench.terms import kind_of_test

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
    no_profile: Annotated[
        bool, typer.Option("--no-profile", help="Do not measure the cost of the commit by function.")
    ] = False,
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
        if answer is not None:
            _tell(costs, span, answer, no_profile=no_profile)
        costs.how.close()
    finally:
        costs.how.tell()
    if answer is None:
        _tell_that_there_is_none(costs, span)
    if answer is None or not answer.single:
        raise typer.Exit(NOT_JUDGED)


def _tell(costs: Costs, span: Sequence[Commit], answer: Answer, *, no_profile: bool) -> None:
    """Print the answer and write it into bisect.md; then, of a single commit, its cost by function too."""
    file = costs.how.work / "bisect.md"
    text = as_markdown(span, answer, costs.history)
    write_atomically(file, text)
    print(text, flush=True)  # before the profile, which may fail
    wanted = answer.single and not no_profile
    if wanted and (more := _by_function(costs, span[answer.first - 1], span[answer.first])):
        write_atomically(file, f"{text}\n{more}")
        print(more)
    print(file)


def _by_function(costs: Costs, parent: Commit, commit: Commit) -> str:
    """Return the cost of the commit by function as Markdown. If it cannot be profiled, say why, and return nothing."""
    try:
        return by_function.text_of(costs, parent, commit)
    except typer.Exit as ended:
        if ended.exit_code == Interrupted.exit_code:
            raise
        why = f"espbench run ended with exit code {ended.exit_code}"
    except EspbenchError as error:
        why = str(error)
    _say(
        f"no cost by function: {why}\n  what to do: the same command tries again, --no-profile leaves it out"
    )
    return ""


def _tell_that_there_is_none(costs: Costs, span: Sequence[Commit]) -> None:
    """Say that the bad commit is not worse than the good one, or that nobody knows."""
    for problem in costs.problems:
        _say(f"not judged: {problem}")
    more = f"more than {span[0]} by more than the limit"
    if costs.problems:
        _say(f"no answer: what could be measured of {span[-1]} does not cost {more}")
    else:
        _say(f"no single commit: {span[-1]} does not cost {more}")


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
        # Within its band and the limit, the check would call another commit's figure the same, or moved.
        near = row.allowed + max(row.high - row.base, row.base - row.low)
        history.figure = {
            "case": row.case, "goal": row.goal, "side": row.side, "name": row.name, "near": near,
        }  # fmt: skip
        history.steps = [Step(span[0].name, row.base), Step(span[-1].name, row.now)]
        history.save()
    places = {commit.name: place for place, commit in enumerate(span)}
    known = {places[name]: step.cost for name, step in history.known.items()}
    say(
        f"{history.figure['case']}: {history.figure['name']}: good {known[0]:,.3f}, bad {known[len(span) - 1]:,.3f}"
    )
    bisection = Bisection(len(span) - 1, known, history.figure.get("near", 0.0))  # older bisections have none
    number = len(history.steps) - 2
    while (place := bisection.next() or bisection.to_confirm()) is not None:
        number += 1
        if bisection.next() is None:
            say(f"to confirm the answer, {span[place]}")
        else:
            say(f"step {number} of about {number - 1 + bisection.steps_left}: {span[place]}")
        # A commit that is tried again may lead to one that was measured before.
        step = history.known.get(span[place].name)
        if step is None:
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
        head = f"{last} costs {answer.cost:+,.3f} instructions per frame, of {answer.whole:+,.3f} in all"
        if answer.unconfirmed:
            head += (
                f"\n\nnot confirmed: {answer.unconfirmed} builds failed between it and {span[-1]}, or could not be "
                "measured; if one of them undid the commit, a later one made it again"
            )
    elif answer.first == answer.last:
        head = f"no single commit: {answer.why}; of {answer.whole:+,.3f} in all, {last} costs {answer.cost:+,.3f}"
    else:
        head = (
            f"no single commit: {answer.why}; of {answer.whole:+,.3f} in all, {first} to {last} cost "
            f"{answer.cost:+,.3f} together"
        )
    places = {commit.name: place for place, commit in enumerate(span)}
    lines = []
    for step in sorted(history.steps, key=lambda step: places[step.commit]):
        cost = step.why if step.cost is None else f"{step.cost:,.3f}"
        lines.append(f"| {places[step.commit]} | {span[places[step.commit]]} | {cost} |")
    table = "\n".join(["| place | commit | instructions per frame |", "|---:|---|---:|", *lines])
    count = (
        f"{len(lines)} of {len(span)} commits were measured, those of the table. Others may cost something else, if a "
        "later one undid it."
    )
    return f"{head}\n\n{figure}\n\n{count}\n\n{table}\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr)
