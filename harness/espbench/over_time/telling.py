# SPDX-License-Identifier: Apache-2.0
"""Words a change: which series, from which figure to which, at or near which run, and what else changed there."""

from __future__ import annotations

from espbench.over_time.records import Change, Series

_MOST_SHOWN = 4
_DIGITS = 8  # of a machine's fingerprint: enough to tell machines apart


def series_name(series: Series) -> str:
    """Return `throughput of uml xfrm aes128gcm16 64 B one-way, loss goal 0 % (plan quick)`."""
    return f"{series.figure} of {case_name(series)} (plan {series.plan})"


def case_name(series: Series) -> str:
    """Return the case; if other series have the same name, also what tells this one from them: machine, conditions."""
    if not series.namesakes:
        return series.case
    machine = f"machine {series.machine[:_DIGITS]}, " if series.machine else ""
    return f"{series.case} [{machine}conditions {series.conditions}]"


def number(value: float | None, status: str = "") -> str:
    """Return a figure with four digits, or all digits before the point; without a figure, the status."""
    if value is None:
        return status or "no figure"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def newest(series: Series) -> str:
    """Return the newest figure with its unit, and the status of the newest run if that has none."""
    figure = f"{number(series.newest)} {series.unit}" if series.newest is not None else "–"
    return f"{figure} (newest run: {series.newest_status})" if series.newest_status else figure


def percent(change: Change) -> str:
    """Return `+3.1 %`; empty if there is no ratio."""
    return f"{100 * (change.ratio - 1):+.3g} %" if change.ratio is not None else ""


def move(change: Change) -> str:
    """Return a change as `81,274 → 83,112 frames/s (+2.26 %, better)`, with enough digits to show the difference."""
    was, now = number(change.was, change.was_status), number(change.now, change.now_status)
    if was == now and change.was is not None and change.now is not None:
        was, now = f"{change.was:,.12g}", f"{change.now:,.12g}"
    more = [word for word in (percent(change), change.word if change.word != "other" else "") if word]
    return f"{was} → {now} {change.series.unit}" + (f" ({', '.join(more)})" if more else "")


def where(change: Change) -> str:
    """Return `at 2026…-quick` for an exact series, `near 2026…-quick` for a noisy one."""
    return f"{'at' if change.exactly else 'near'} {change.run}"


def what_else(change: Change) -> str:
    """Say what else differs between the first changed run and the run that it is compared with."""
    if not change.differs:
        return f"nothing else in its manifest differs from that of {change.before}"
    differences = [f"{what}: {was} → {now}" for what, was, now in change.differs[:_MOST_SHOWN]]
    more = len(change.differs) - _MOST_SHOWN
    return "; ".join([*differences, *([f"and {more} more"] if more > 0 else [])])
