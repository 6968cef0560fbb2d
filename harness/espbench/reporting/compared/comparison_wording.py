# SPDX-License-Identifier: Apache-2.0
"""Writes a comparison's estimates and verdicts as text, with the same digits, signs and symbols everywhere."""

from __future__ import annotations

import math

from espbench.comparison.sorting.model import (
    ArmPoint,
    Comparison,
    Estimate,
    Name,
    Overhead,
    Panel,
    PointVerdict,
    Word,
)
from espbench.comparison.telling.numbers import factor, factor_and_interval
from espbench.reporting.parts.wording import NONE, count, goal_name, instructions, number, plural
from espbench.terms import WITH_FIGURE

SYMBOLS: dict[Word, str] = {"B faster": "▲", "A faster": "▼", "no difference shown": "○", "no verdict": "–"}


def rate(point: ArmPoint | None) -> str:
    """Return the throughput, frames/s: `147,310`; `≥ 147,310` if it is a lower bound."""
    if point is None or point.fps is None:
        return NONE
    return ("≥\N{NO-BREAK SPACE}" if point.at_least else "") + count(point.fps.value)


def instructions_of(point: ArmPoint | None) -> str:
    """Return the instructions per frame of Home and Office: `9,009 / 7,744`; empty in real time."""
    if point is None:
        return ""
    home, office = point.instructions_home, point.instructions_office
    return instructions(home.value if home else None, office.value if office else None)


def has_instructions(panel: Panel) -> bool:
    """Return whether instructions per frame are known anywhere in a panel."""
    return any(instructions_of(point) for curve in panel.curves.values() for point in curve.values())


def ratio_or_bound(point: PointVerdict | Overhead) -> str:
    """Return B / A, or a slowdown, with its interval; `≥ 1.20×` if it is only a bound."""
    return " ".join(filter(None, ratio_and_interval(point)))


def ratio_and_interval(point: PointVerdict | Overhead) -> tuple[str, str]:
    """Return the two parts of `ratio_or_bound`; a bound has no interval."""
    for sign, bound in (("≥", point.at_least), ("≤", point.at_most)):
        if bound is not None:
            return f"{sign}\N{NO-BREAK SPACE}{factor(bound)}", ""
    return factor_and_interval(point.ratio if isinstance(point, PointVerdict) else point.slowdown)


def has_interval(estimate: Estimate) -> bool:
    """Return whether there are enough repeats to say how far off the value may be."""
    return estimate.n > 1


def rate_interval(point: ArmPoint | None) -> str:
    """Return the interval of the throughput, frames/s: `121,000 – 126,000`.

    It is empty if there is no interval, or if the throughput is a lower bound, whose interval means nothing.
    """
    if point is None or point.fps is None or point.at_least or not has_interval(point.fps):
        return ""
    return f"{count(point.fps.low)} – {count(point.fps.high)}"


def microseconds(estimate: Estimate | None) -> str:
    """Return CPU time per frame with its interval, µs to three digits: `4.21 (4.11 – 4.31)`."""
    if estimate is None:
        return NONE
    value = number(estimate.value, 3)
    if not has_interval(estimate):
        return value
    low, high = number(estimate.low, 3), number(estimate.high, 3)
    return f"{value} ({low} to {high})" if estimate.low < 0 else f"{value} ({low} – {high})"


def rounded(value: float | None, significant: int = 3) -> str:
    """Return a figure with this many significant digits, and zeros after them: `12,300` cycles."""
    if value is None or value == 0:
        return NONE if value is None else "0"
    places = significant - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(0, places)}f}"


def repeats_note(point: ArmPoint | None) -> str:
    """Say which repeats a figure is based on, if not on all: `INVALID 3×`, `4 of 5 repeats OK`."""
    if point is None:
        return "not measured"
    total = sum(point.statuses.values())
    valid = sum(point.statuses.get(status, 0) for status in WITH_FIGURE)
    failed = ", ".join(
        f"{status} {n}×" for status, n in point.statuses.items() if status not in WITH_FIGURE and n
    )
    bounds = point.statuses.get("LOWER_BOUND", 0)
    if point.fps is None:
        no_mean = valid and "VIOLATED" not in point.statuses and "BELOW_MINIMUM" in point.statuses
        return f"{failed} of {total}: no mean" if no_mean else failed or "no figure"
    notes = [f"lower bound in {bounds} of {total}"] if bounds else []
    if point.at_least and not bounds:
        notes = ["slow CPUs may have lowered it" if point.slowed else "the tester's or the search's limit"]
    if valid < total:
        notes.append(f"{valid} of {total} repeats OK ({failed})")
    elif not has_interval(point.fps):
        notes.append("1 repeat, no interval")
    return "; ".join(notes)


def confidence(comparison: Comparison) -> str:
    """Return `95 %, simultaneous over 14 verdicts`."""
    per_cent = f"{comparison.confidence * 100:.6f}".rstrip("0").rstrip(".")
    together = f", simultaneous over {plural(comparison.family, 'verdict')}" if comparison.family > 1 else ""
    return f"{per_cent} %{together}"


def panel_title(panel: Panel, comparison: Comparison) -> str:
    """Return a panel's title, which names its fixed conditions: `Suite aes128gcm16 · loss goal 0 %`."""
    parts = [f"{name} {value}" for name, value in panel.conditions.items()]
    if not any(Name.LOSS_GOAL in named for named in (panel.conditions, comparison.common)):
        parts.append(f"loss goal {goal_name(panel.loss_goal)}")
    title = " · ".join(parts) or "Throughput"
    return title[:1].upper() + title[1:]


def x_title(panel: Panel) -> str:
    """Return the name of the x axis with its unit."""
    if panel.x_name == Name.FRAME_SIZE:
        return "Frame size, bytes with FCS"
    return panel.x_name[:1].upper() + panel.x_name[1:]
