# SPDX-License-Identifier: Apache-2.0
"""The figures of a row as text: one wording for the table, the summary and the JUnit file."""

from __future__ import annotations

from espbench.gate.instructions import DIGITS
from espbench.gate.verdict import Row
from espbench.sentences import goal_name

_DIGITS = {"instructions": DIGITS, "throughput": 0}


def load(row: Row) -> str:
    """`46,000 frames/s, 0 %`."""
    if row.load_fps is None or row.goal is None:
        return ""
    return f"{row.load_fps:,.0f} frames/s, {goal_name(row.goal)}"


def base(row: Row) -> str:
    """Return the base's figure; with the band where it has a width. Of a frame loss, return what is known of it."""
    if row.quantity == "frame loss" and row.goal is not None:
        return f"at most {goal_name(row.goal)}"
    band = f" ({_number(row, row.low)} to {_number(row, row.high)})" if row.high > row.low else ""
    return _number(row, row.base) + band


def now(row: Row) -> str:
    """Return the new figure; of a throughput in virtual time, what is known of it."""
    if row.now is not None:
        return _number(row, row.now) if row.quantity != "frame loss" else f"{100 * row.now:.3g} %"
    least = f"{row.base - row.allowed:,.0f}"
    return {"same": "not less", "moved": f"at least {least}", "regressed": f"less than {least}"}.get(
        row.word, ""
    )


def change(row: Row) -> str:
    """`+212.000 (+0.85 %)`, of a ratio `-1.2 %`; empty where it is not known."""
    if row.change is None:
        return ""
    share = "" if row.share is None else f"{100 * row.share:+.3g} %"
    return share if row.load_fps is None else f"{row.change:+,.{_digits(row)}f} ({share})"


def _number(row: Row, value: float) -> str:
    return f"{value:,.{_digits(row)}f}"


def _digits(row: Row) -> int:
    return 4 if row.load_fps is None else _DIGITS[row.quantity]
