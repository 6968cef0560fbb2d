# SPDX-License-Identifier: Apache-2.0
"""Writes numbers and loss goals for reports, with thousands separators and only significant digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from espbench.terms import Status, goal_name

NONE = "–"
# The statuses, in the order of their importance to a reader.
STATUSES: tuple[Status, ...] = ("VIOLATED", "INVALID", "UNRESOLVABLE", "BELOW_MINIMUM", "LOWER_BOUND", "OK")

__all__ = [
    "NONE", "at_least", "count", "figure", "flat", "goal_name", "number", "plural", "ratio_at_most", "seconds",
    "worst",
]  # fmt: skip


def count(value: float | None) -> str:
    """Return a whole number: `1,234`."""
    return NONE if value is None else f"{value:,.0f}"


def number(value: float | None, significant: int = 4) -> str:
    """Return a figure with this many significant digits, never in powers of ten: `1,298`, `56.73`, `0.0123`."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    decimals = max(0, significant - whole)
    return f"{value:,.{min(decimals, 6)}f}"


def figure(value: float | None, significant: int = 4) -> str:
    """Return a figure as `number` does, but keep the digits of small figures, without powers of ten: `0.00001234`."""
    if value is None or value == 0 or abs(value) >= 1:
        return number(value, significant)
    digits = significant - 1 - math.floor(math.log10(abs(value)))
    return f"{value:.{digits}f}".rstrip("0")


def instructions(home: float | None, office: float | None) -> str:
    """Return the instructions per frame of Home and Office: `9,009 / 7,744`; only those that are known."""
    return " / ".join(count(value) for value in (home, office) if value is not None)


def at_least(text: str, *, is_bound: bool) -> str:
    """Return `≥ 12,345` if the figure is a lower bound, else the text itself."""
    return f"≥\N{NO-BREAK SPACE}{text}" if is_bound else text


def ratio_at_most(bound: float) -> str:
    """Return an upper bound of a loss ratio, per cent to two digits, never rounded down: `0.0014 %`."""
    if bound <= 0:
        return "0 %"
    unit = max(10.0 ** (math.floor(math.log10(bound)) - 1), 1e-12)  # goal_name writes no more digits
    return goal_name(math.ceil(round(bound / unit, 6)) * unit)


def plural(n: int, word: str) -> str:
    """Return `1 case` or `2 cases`."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def worst(statuses: Sequence[Status]) -> Status | None:
    """Return the worst status of several repeats; None if all are OK."""
    return next((status for status in STATUSES[:-1] if status in statuses), None)


def flat(value: object) -> str:
    """Return a value of the manifest as text; lists and tables as their items."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {flat(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        items = [flat(item) for item in value]
        return ("; " if any(" " in item for item in items) else ", ").join(items)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None or value == "" else str(value)


def seconds(value: float) -> str:
    """Return the length of a trial, s, rounded to hundredths: `5` of a measured 4.999994 s."""
    return f"{round(value, 2):g}"
