# SPDX-License-Identifier: Apache-2.0
"""Profiles as a CSV file: a row for each function and where it ran, the dearest first."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import cast

from espbench.errors import UsageError
from espbench.profile.attribution import WHERES, Profile, Where
from espbench.profile.symbols import Function

COLUMNS = (
    "case", "gateway", "frames", "function", "module", "where", "instructions", "instructions_per_frame",
)  # fmt: skip
_DIGITS = 6


def text_of(profiles: Iterable[Profile]) -> str:
    """The file's text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for profile in profiles:
        for (function, where), count in sorted(profile.costs.items(), key=lambda c: (-c[1], c[0])):
            per_frame = f"{count / profile.frames:.{_DIGITS}f}"
            writer.writerow(
                [
                    profile.case, profile.side, profile.frames, function.name, function.module, where, count,
                    per_frame,
                ]
            )  # fmt: skip
    return out.getvalue()


def read(text: str, where: str) -> list[Profile]:
    """The profiles of a file, without stacks; UsageError, which names `where`, for one that is none."""
    costs: dict[tuple[str, str, int], dict[tuple[Function, Where], int]] = {}
    rows = csv.reader(io.StringIO(text))
    if (header := tuple(next(rows, ()))) != COLUMNS:
        raise _no_profile(where, f"the columns {', '.join(header) or '(none)'}")
    for number, row in enumerate(rows, 2):
        try:
            costs_of = costs.setdefault((row[0], row[1], int(row[2])), {})
            ran: Sequence[str] = WHERES
            costs_of[Function(row[3], row[4]), cast("Where", ran[ran.index(row[5])])] = int(row[6])
        except (ValueError, IndexError):
            raise _no_profile(where, f"line {number}: {','.join(row)}") from None
    return [Profile(case, side, frames, found, {}) for (case, side, frames), found in costs.items()]


def _no_profile(where: str, got: str) -> UsageError:
    return UsageError(
        f"{where}: no profile\n  expected: a file that espbench profile wrote, with the columns {', '.join(COLUMNS)}\n"
        f"  got: {got}\n  what to do: run espbench profile again"
    )
