# SPDX-License-Identifier: Apache-2.0
"""Writes and reads profiles as a CSV file: a row for each function and context, the most expensive first."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, cast

from espbench.errors import UsageError
from espbench.profile.attribution import WHERES, Profile, Where
from espbench.profile.symbols import Function, known_by
from espbench.results.outcome_files import as_it_was, table_text

FILE = "profile.csv"
COLUMNS = (
    "case", "gateway", "frames", "function", "module", "where", "instructions", "instructions_per_frame", "known_by",
)  # fmt: skip
_FIRST_COLUMNS = COLUMNS[:-1]  # of the first files, which did not say by what a function is known
_DIGITS = 6


def text_of(profiles: Iterable[Profile]) -> str:
    """Return the text of the CSV file."""
    return table_text(COLUMNS, (_cells(row) for profile in profiles for row in rows(profile)))


def _cells(row: dict[str, Any]) -> list[object]:
    *others, per_frame, known = row.values()
    # The figure is a number and not text: a negative one as text would be escaped like a formula.
    return [*others, Decimal(f"{per_frame:.{_DIGITS}f}"), known]


def rows(profile: Profile) -> Iterator[dict[str, Any]]:
    """Yield the rows of one profile, each as column → value."""
    for (function, where), count in sorted(profile.costs.items(), key=lambda c: (-c[1], c[0])):
        values = (
            profile.case, profile.side, profile.frames, function.name, function.module, where, count,
            count / profile.frames, known_by(function),
        )  # fmt: skip
        yield dict(zip(COLUMNS, values, strict=True))


def read(text: str, where: str) -> list[Profile]:
    """Return the profiles in a file, without stacks; UsageError, which names `where`, for another kind of file."""
    costs: dict[tuple[str, str, int], dict[tuple[Function, Where], int]] = {}
    lines = csv.reader(io.StringIO(text))
    if (header := tuple(next(lines, ()))) not in (COLUMNS, _FIRST_COLUMNS):
        raise _no_profile(where, f"the columns {', '.join(header) or '(none)'}")
    for number, cells in enumerate(lines, 2):
        row = [as_it_was(cell) for cell in cells]
        try:
            costs_of = costs.setdefault((row[0], row[1], int(row[2])), {})
            ran: Sequence[str] = WHERES
            costs_of[Function(row[3], row[4]), cast("Where", ran[ran.index(row[5])])] = int(row[6])
        except (ValueError, IndexError):
            raise _no_profile(where, f"line {number}: {','.join(row)}") from None
    return [Profile(case, side, frames, of_gateway, {}) for (case, side, frames), of_gateway in costs.items()]


def _no_profile(where: str, got: str) -> UsageError:
    return UsageError(
        f"{where}: no profile\n  expected: a file that espbench profile wrote, with the columns {', '.join(COLUMNS)}\n"
        f"  got: {got}\n  what to do: run espbench profile again"
    )
