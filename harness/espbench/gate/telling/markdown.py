# SPDX-License-Identifier: Apache-2.0
"""`check --markdown`: the verdict as a summary for a pull request: what moved, what was not judged, which base."""

from __future__ import annotations

import re
from collections.abc import Sequence

from espbench.gate.telling import figures
from espbench.gate.verdict import UNJUDGED, Check, Row

_MOST_ROWS = 60
_SIGNS = {"passed": "✅", "not judged": "⚠️", "regressed": "❌"}


def text_of(check: Check) -> str:
    """Return the summary."""
    parts = [f"## {_SIGNS[check.word]} espbench: {_plain(check.sentence)}"]
    unjudged = [(f"{row.case}, {row.name}", row.why) for row in check.rows if row.word in UNJUDGED]
    if unjudged := [*((p.case, p.why) for p in check.problems), *unjudged]:
        parts.append(
            "Not judged:\n\n" + "\n".join(f"* {_plain(case)}: {_plain(why)}" for case, why in unjudged)
        )
    if check.moved:
        others = [row for row in check.moved if row.word != "regressed"]
        # Regressions come first, so that the end of a long table hides none of them.
        parts.append(_table([*check.regressed, *others]))
    lines = [
        *(f"{key}: {was} → {now}" for key, (was, now) in check.subjects.items()),
        *(f"allowed to differ: {key}: {was} → {now}" for key, was, now in check.allowed_differences),
        *(f"base: {text}" for text in check.provenance),
        f"run: {check.run}, espbench {check.espbench}",
        *check.notes,
    ]
    parts.append("\n".join(f"* {_plain(text)}" for text in lines))
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Row]) -> str:
    lines = [
        "| case | load | figure | base | now | change | limit | |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    for row in rows[:_MOST_ROWS]:
        cells = (
            row.case, figures.load(row), row.name, figures.base(row), figures.now(row), figures.change(row),
            row.limit, f"**{row.word}**" if row.word == "regressed" else row.word,
        )  # fmt: skip
        lines.append("| " + " | ".join(map(_plain, cells)) + " |")
    if len(rows) > _MOST_ROWS:
        lines.append(f"\nand {len(rows) - _MOST_ROWS} more, in the JSON file")
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return text in a cell or an item: one line, no bar that would end it, no HTML."""
    one_line = re.sub(r"\s+", " ", text)
    return one_line.replace("|", "\\|").replace("<", "&lt;")
