# SPDX-License-Identifier: Apache-2.0
"""Makes the rows that a comparison's charts draw: points, intervals, and marks for points without a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from espbench.comparison.sorting.model import Estimate, Panel, PointVerdict
from espbench.reporting.compared.comparison_wording import (
    has_interval,
    microseconds,
    rate_interval,
    ratio_or_bound,
    repeats_note,
)
from espbench.reporting.parts.chart_parts import MARKS, Spec
from espbench.reporting.parts.wording import NONE, number
from espbench.terms import WITH_FIGURE, Status

GATEWAYS = ("Home + Office", "Home", "Office")
_CPU_FIELDS = dict(zip(GATEWAYS, ("cpu_us", "cpu_home_us", "cpu_office_us"), strict=True))


def series_of(panel: Panel, arms: Sequence[str]) -> list[str]:
    """Return the curves of a panel: the arms in their order, then the baselines."""
    return [name for name in arms if name in panel.curves] + [n for n in panel.curves if n not in arms]


def rate_rows(panel: Panel, series: Sequence[str]) -> list[Spec]:
    """Return a row for each curve and x; `fps` is None where no repeat has a figure."""
    rows = []
    for name in series:
        for x in panel.x:
            point = panel.curves[name].get(x)
            fps = point.fps if point else None
            rows.append(
                _row(name, x, None if point is None or point.at_least else fps)
                | {
                    "fps": _plain(fps.value if fps else None),
                    "sign": "↑" if point and point.at_least else "",
                    "interval": rate_interval(point) or "none",
                    "mbps": number(point.mbps.value) if point and point.mbps else "",
                    "note": repeats_note(point) or "every repeat OK",
                }
            )
    return rows


def ratio_rows(panel: Panel) -> list[Spec]:
    """Return a row for each pair and x; B's name is the series. `ratio` is None if there is only a bound or nothing."""
    rows = []
    for pair in panel.pairs:
        by_x = {point.x: point for point in pair.points}
        for x in panel.x:
            point = by_x.get(x)
            rows.append(
                _row(pair.b, x, point.ratio if point else None)
                | {
                    "ratio": _plain(point.ratio.value if point and point.ratio else None),
                    "verdict": point.word if point else "not compared",
                    "words": ratio_or_bound(point) if point else "",
                    "bound": _plain((point.at_least or point.at_most) if point else None),
                    "sign": _sign(point) if point else NONE,
                    "why": point.why if point else "",
                    "pair": f"{pair.b} / {pair.a}",
                }
            )
    return rows


def cpu_rows(panel: Panel, series: Sequence[str], arms: Sequence[str]) -> list[Spec]:
    """Return a row for each curve, gateway and x; of baselines only the sum. Empty if no CPU figure is known."""
    rows = []
    for name in series:
        for gateway, field in _CPU_FIELDS.items():
            if name not in arms and gateway != GATEWAYS[0]:
                continue
            for x in panel.x:
                point = panel.curves[name].get(x)
                us: Estimate | None = getattr(point, field) if point else None
                rows.append(
                    _row(name, x, us)
                    | {
                        "cpu": _plain(us.value if us else None),
                        "gateway": gateway,
                        "words": microseconds(us),
                    }
                )
    return rows if any(row["cpu"] is not None for row in rows) else []


def _sign(point: PointVerdict) -> str:
    """Return the sign that stands for a ratio without a figure: an arrow from the bound to the true value."""
    return "↑" if point.at_least is not None else "↓" if point.at_most is not None else NONE


def unplotted(
    panel: Panel, rows: Sequence[Spec], field: Literal["fps", "ratio"], domain: tuple[float, float]
) -> list[Spec]:
    """Return the rows that are not points, each with a mark and its height in `field`, on a logarithmic axis.

    A bound gets an arrow: above the point of a figure, or at the bound of a ratio. Everything else gets a mark at the
    foot, stacked by curve so that none hides another: a rate without a figure by its status, a ratio without one by its
    verdict.
    """
    low, high = domain
    names = list(dict.fromkeys(row["series"] for row in rows))
    marks = []
    for row in rows:
        at_foot = low * (high / low) ** (0.05 * (names.index(row["series"]) + 0.6))
        point = panel.curves.get(row["series"], {}).get(row["key"])
        if field == "ratio":
            if row["ratio"] is None:
                marks.append(row | {"mark": row["sign"], "ratio": row["bound"] or at_foot})
        elif row["fps"] is not None:
            if row["sign"]:
                marks.append(row | {"mark": row["sign"], "fps": row["fps"] * (high / low) ** 0.05})
        elif point is not None:
            failed = [status for status in point.statuses if status not in WITH_FIGURE]
            sign = NONE
            if failed:
                sign = MARKS[_decisive(failed, point.statuses)]
            marks.append(row | {"mark": sign, "fps": at_foot})
    return marks


def _decisive(failed: Sequence[Status], statuses: Mapping[Status, int]) -> Status:
    """Return the status because of which a point has no figure; if several could be, the most frequent."""
    if "VIOLATED" in failed:
        return "VIOLATED"
    if "BELOW_MINIMUM" in failed and any(statuses.get(status) for status in WITH_FIGURE):
        return "BELOW_MINIMUM"
    return max(failed, key=statuses.__getitem__)


def _row(name: str, x: int | str, estimate: Estimate | None) -> dict[str, Any]:
    """Return the fields that every row has, with bounds only if there is an interval."""
    interval = estimate is not None and has_interval(estimate)
    return {
        "series": name,
        "x": str(x),
        "key": x,
        "low": _plain(estimate.low) if estimate and interval else None,
        "high": _plain(estimate.high) if estimate and interval else None,
    }


def _plain(value: float | None) -> float | None:
    """Return a number that both JSON and the chart library can represent; None for one that is not finite."""
    return None if value is None or not math.isfinite(value) else round(value, 6)
