# SPDX-License-Identifier: Apache-2.0
"""Writes factors and their intervals as text, with the same digits in sentences, tables, charts and the terminal."""

from __future__ import annotations

from espbench.comparison.sorting.model import Estimate

_MOST_DECIMALS = 4


def factor(estimate: Estimate | float | None) -> str:
    """Return `1.35× [1.28, 1.43]`; without brackets for a plain number, or if repeats are too few for an interval."""
    return " ".join(filter(None, factor_and_interval(estimate)))


def factor_and_interval(estimate: Estimate | float | None) -> tuple[str, str]:
    """Return `1.35×` and `[1.28, 1.43]`; the second text is empty if there is no interval."""
    if estimate is None:
        return "–", ""
    if isinstance(estimate, float):
        return f"{estimate:,.{decimals(estimate, estimate)}f}×", ""
    shown = decimals(estimate.value, estimate.low, estimate.high)
    bounds = f"[{estimate.low:,.{shown}f}, {estimate.high:,.{shown}f}]" if estimate.n > 1 else ""
    return f"{estimate.value:,.{shown}f}×", bounds


def decimals(value: float, *bounds: float) -> int:
    """Return the number of decimals that show three digits.

    It is higher if the bounds do not enclose 1, but one of them would be rounded to 1.
    """
    shown = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    leaves_out_1 = bool(bounds) and (min(bounds) > 1 or max(bounds) < 1)
    while leaves_out_1 and shown < _MOST_DECIMALS and any(round(b, shown) == 1 for b in bounds):
        shown += 1
    return shown


def microseconds(estimate: Estimate) -> str:
    """Return `22.1 µs [20.3, 23.9]`."""
    bounds = f" [{_three(estimate.low)}, {_three(estimate.high)}]" if estimate.n > 1 else ""
    return f"{_three(estimate.value)} µs{bounds}"


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
