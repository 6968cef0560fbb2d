# SPDX-License-Identifier: Apache-2.0
"""Estimates and verdicts of a comparison as text: the same digits, signs and symbols everywhere."""

from __future__ import annotations

import math

from espbench.comparison.model import ArmPoint, Comparison, Estimate, Overhead, Panel, PointVerdict
from espbench.reporting.wording import NONE, count, goal_name, number, plural

NO_VERDICT = "no verdict"  # there were no two figures that can be compared
SYMBOLS = {"B faster": "▲", "A faster": "▼", "no difference shown": "○", NO_VERDICT: "–"}
_MOST_DECIMALS = 4


def slowdown(overhead: Overhead | None) -> str:
    """A factor to three digits: `3.21×`, `0.98×`, `12.3×`; `≥ 3.21×` where it is a bound."""
    if overhead is None or overhead.slowdown is None:
        return NONE
    sign = {"at least": "≥\N{NO-BREAK SPACE}", "at most": "≤\N{NO-BREAK SPACE}"}.get(overhead.bound, "")
    return f"{sign}{overhead.slowdown:,.{_decimals(overhead.slowdown)}f}×"


def rate(point: ArmPoint | None) -> str:
    """`147,310` frames/s; `≥ 147,310` where the tester or the search allowed no more."""
    if point is None or point.fps is None:
        return NONE
    return ("≥\N{NO-BREAK SPACE}" if point.at_least else "") + count(point.fps.value)


def ratio(estimate: Estimate | None) -> str:
    """`1.35× [1.28, 1.43]`; without brackets where one repeat gives no interval."""
    if estimate is None:
        return NONE
    decimals = _decimals(estimate.value, estimate.low, estimate.high)
    bounds = f" [{estimate.low:.{decimals}f}, {estimate.high:.{decimals}f}]" if has_interval(estimate) else ""
    return f"{estimate.value:.{decimals}f}×{bounds}"


def ratio_or_bound(point: PointVerdict) -> str:
    """The ratio with its interval; `≥ 1.20×` where one figure is only a lower bound."""
    for sign, bound in (("≥", point.at_least), ("≤", point.at_most)):
        if point.ratio is None and bound is not None:
            return f"{sign}\N{NO-BREAK SPACE}{bound:.{_decimals(bound, bound)}f}×"
    return ratio(point.ratio)


def _decimals(value: float, *bounds: float) -> int:
    """As many as three digits need, and more where rounding would put 1 between bounds it is not between."""
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    leaves_out_1 = bool(bounds) and (min(bounds) > 1 or max(bounds) < 1)
    while leaves_out_1 and decimals < _MOST_DECIMALS and any(round(b, decimals) == 1 for b in bounds):
        decimals += 1
    return decimals


def has_interval(estimate: Estimate) -> bool:
    """Whether there are repeats enough to say how far off the value may be."""
    return estimate.n > 1


def rate_interval(point: ArmPoint | None) -> str:
    """`121,000 – 126,000` frames/s; empty where there is none. The interval of a lower bound means nothing."""
    if point is None or point.fps is None or point.at_least or not has_interval(point.fps):
        return ""
    return f"{count(point.fps.low)} – {count(point.fps.high)}"


def microseconds(estimate: Estimate | None) -> str:
    """`4.21 (4.11 – 4.31)` µs a frame, to three digits."""
    if estimate is None:
        return NONE
    value = number(estimate.value, 3)
    if not has_interval(estimate):
        return value
    return f"{value} ({number(estimate.low, 3)} – {number(estimate.high, 3)})"


def rounded(value: float | None, significant: int = 3) -> str:
    """A large figure to so many digits, the rest zeros: `12,300` cycles."""
    if value is None or value == 0:
        return NONE if value is None else "0"
    places = significant - 1 - math.floor(math.log10(abs(value)))
    return f"{round(value, places):,.{max(0, places)}f}"


def repeats_note(point: ArmPoint | None) -> str:
    """What a figure rests on where that is not every repeat: `INVALID 3×`, `4 of 5 repeats OK`."""
    if point is None:
        return "not measured"
    total = sum(point.statuses.values())
    valid = point.statuses.get("OK", 0)
    failed = ", ".join(f"{status} {n}×" for status, n in point.statuses.items() if status != "OK" and n)
    if point.fps is None:
        return failed or "no figure"
    notes = ["the tester's or the search's limit"] if point.at_least else []
    if valid < total:
        notes.append(f"{valid} of {total} repeats OK ({failed})")
    elif not has_interval(point.fps):
        notes.append("1 repeat, no interval")
    return "; ".join(notes)


def verdict_word(point: PointVerdict) -> str:
    """The verdict, `no verdict` where nothing could be compared: that is no finding of equality."""
    known = point.ratio is not None or point.at_least is not None or point.at_most is not None
    return point.word if known or point.word != "no difference shown" else NO_VERDICT


def confidence(comparison: Comparison) -> str:
    """`95 %, simultaneous over 14 verdicts`."""
    per_cent = f"{comparison.confidence * 100:.6f}".rstrip("0").rstrip(".")
    together = f", simultaneous over {plural(comparison.family, 'verdict')}" if comparison.family > 1 else ""
    return f"{per_cent} %{together}"


def panel_title(panel: Panel, comparison: Comparison) -> str:
    """What is fixed in a panel: `suite aes128gcm16 · loss goal 0 %`."""
    parts = [f"{name} {value}" for name, value in panel.conditions.items()]
    if not any("loss goal" in told for told in (panel.conditions, comparison.common)):
        parts.append(f"loss goal {goal_name(panel.loss_goal)}")
    title = " · ".join(parts) or "Throughput"
    return title[:1].upper() + title[1:]


def x_title(panel: Panel) -> str:
    """The name of the x axis with its unit."""
    if panel.x_name == "frame size":
        return "Frame size, bytes with FCS"
    return panel.x_name[:1].upper() + panel.x_name[1:]
