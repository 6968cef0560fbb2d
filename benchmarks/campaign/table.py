# SPDX-License-Identifier: Apache-2.0
"""Writes the campaign's table, as text and between the markers of docs/reliability.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from campaign.row import Row
from campaign.state import Done, State

BEGIN, END = "<!-- campaign: begin -->", "<!-- campaign: end -->"
LONGEST_FAULT = 300
MOST_FAULTS = 5  # of a row in the document; the state file has all faults


def markdown(rows: Sequence[Row], state: State) -> str:
    """Return the table: a line for each row with its repetitions, outcomes and faults; then the faults as a list."""
    when = [done.when for done in state.done.values()]
    lines = [
        f"From {min(when)} to {max(when)} (UTC), seed {state.seed}." if when else "Not yet run.",
        "",
        "| row | what is done and expected | repetitions | moments | minutes | what came of it | faults | commit |",
        "|---|---|--:|--:|--:|---|--:|---|",
    ]
    all_faults: list[str] = []
    for row in rows:
        done = state.of(row.name)
        outcomes: Counter[str] = Counter()
        for d in done:
            outcomes.update(d.verdict.outcomes)
        lacks = "; ".join(dict.fromkeys(d.verdict.lacks for d in done if d.verdict.lacks))
        made = [d for d in done if not d.verdict.lacks]
        faults = [f"`{row.name}` {d.repetition}: {text}" for d in made for text in d.verdict.faults]
        came = (
            f"not tried: {lacks}" if lacks else ", ".join(f"{n} {what}" for what, n in outcomes.most_common())
        )
        moments = sum(d.verdict.moments for d in made)
        minutes = sum(d.seconds for d in made) / 60
        lines.append(
            f"| {row.name} | {row.what} | {len(made)} of {row.repetitions} | {moments:,} | {minutes:.1f} "
            f"| {came or 'not yet tried'} | {len(faults)} | {_commits(done)} |"
        )
        all_faults += faults[:MOST_FAULTS]
        if len(faults) > MOST_FAULTS:
            all_faults.append(f"`{row.name}`: {len(faults) - MOST_FAULTS} more")
    if all_faults:
        lines += ["", "Faults:", "", *(f"* {_short(text)}" for text in all_faults)]
    return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    """Return a fault on one line, cut and without control characters; the state file has the whole text."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return line if len(line) <= LONGEST_FAULT else f"{line[: LONGEST_FAULT - 1]}…"


def _commits(done: Sequence[Done]) -> str:
    """Return the commits of the repetitions as text; if there are several, each with its number of repetitions."""
    by_commit = Counter(d.commit for d in done)
    if len(by_commit) == 1:
        return f"`{next(iter(by_commit))}`"
    return ", ".join(f"{n} `{commit}`" for commit, n in by_commit.items())


def put_between(text: str, table: str) -> str:
    """Return the document with this table between its markers; ValueError if it has no markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"expected the lines {BEGIN} and {END}, got a document without them")
    return f"{before}{BEGIN}\n{table}{END}{after}"


def write(document: Path, rows: Sequence[Row], state: State) -> None:
    """Put the table into the document."""
    document.write_text(put_between(document.read_text(), markdown(rows, state)))


def faults(state: State) -> int:
    """Return the number of faults of all rows."""
    return sum(len(done.verdict.faults) for done in state.done.values())
