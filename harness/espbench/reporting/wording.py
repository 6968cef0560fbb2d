# SPDX-License-Identifier: Apache-2.0
"""Numbers and goals as a report writes them: thousands separated, no more digits than they mean."""

from __future__ import annotations

NONE = "–"


def goal_name(goal: float) -> str:
    """A loss goal in per cent: `0 %`, `0.001 %`."""
    return f"{goal * 100:.10f}".rstrip("0").rstrip(".") + " %"


def count(value: float | None) -> str:
    """A whole number: `1,234`."""
    return NONE if value is None else f"{value:,.0f}"


def number(value: float | None, significant: int = 4) -> str:
    """A figure to so many significant digits, never in powers of ten: `1,298`, `56.73`, `0.0123`."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    decimals = max(0, significant - whole)
    return f"{value:,.{min(decimals, 6)}f}"


def plural(n: int, word: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def flat(value: object) -> str:
    """A value of the manifest as text; lists and tables by their items."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {flat(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(flat, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None or value == "" else str(value)
