# SPDX-License-Identifier: Apache-2.0
"""Draws throughput and CPU against frame size as Vega-Lite charts.

Each group has two panels: frame rate with the theoretical line (RFC 2544 26.1, logarithmic), and Mbps with the
gateways' CPU on the second axis. A case without a valid result is a mark at the foot of the panel, never a point on a
line. A lower bound is an arrow up, which is not on a line either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from espbench.reporting.parts.chart_parts import (
    ARROW_UP,
    GREY,
    MARKS,
    PALETTE,
    Spec,
    decades,
    document,
    log_domain,
    opacity,
    size_axis,
    tip,
)
from espbench.reporting.parts.wording import goal_name
from espbench.terms import WITH_FIGURE, Outcome, for_median, layer2_mbps, line_rate_fps

Unit = Literal["fps", "mbps"]

THEORY = "theoretical (line rate)"
BASELINE = "plain (baseline)"
_DASHES: tuple[list[float], ...] = ([1, 0], [7, 4], [2, 3], [9, 3, 2, 3])
_TITLES = {"fps": "Throughput, frames/s (log)", "mbps": "Throughput, Mbps (layer 2)"}
_IN_RED = {"test": "datum.status == 'VIOLATED'", "value": "#c01c28"}
# Beyond this ratio the line rate would flatten every curve of a linear panel. It is left out, and the caption says so.
_THEORY_ROOM = 4.0


@dataclass(frozen=True)
class Group:
    """The outcomes that one figure and one table show: those of one test, DUT, stack, direction and IP version."""

    test: str
    dut: str
    stack: str
    direction: str
    ip_version: int
    outcomes: list[Outcome]
    baseline: list[Outcome]  # the plain stack's outcomes; empty if this is the plain stack

    @property
    def directions(self) -> int:
        """The number of directions that the summed rates cover."""
        return 2 if self.direction == "both-ways" else 1

    @property
    def sizes(self) -> list[int | str]:
        """Frame sizes in ascending order, mixes of sizes last."""
        return sorted({o.frame_size for o in self.outcomes}, key=lambda s: (isinstance(s, str), s))

    @property
    def series(self) -> list[str]:
        """The lines of the figure: the suites in the plan's order, then the baseline."""
        suites = list(dict.fromkeys(o.suite for o in self.outcomes))
        return suites + ([BASELINE] if self.baseline else [])

    @property
    def goals(self) -> list[float]:
        """The loss goals, strictest first."""
        return sorted({o.loss_goal for o in self.outcomes})

    @property
    def dashes(self) -> dict[str, list[float]]:
        """Loss goal by name → the dash pattern of its lines."""
        return {goal_name(goal): _DASHES[i % len(_DASHES)] for i, goal in enumerate(self.goals)}


def groups_of(outcomes: Sequence[Outcome]) -> list[Group]:
    """Return the outcomes in groups, in the order in which the cases ran."""
    keys = dict.fromkeys(_key(o) for o in outcomes)
    return [
        Group(
            *key,
            outcomes=[o for o in outcomes if _key(o) == key],
            baseline=[o for o in outcomes if key[2] != "plain" and _key(o) == (*key[:2], "plain", *key[3:])],
        )
        for key in keys
    ]


def _key(o: Outcome) -> tuple[str, str, str, str, int]:
    return (o.test, o.dut, o.stack, o.direction, o.ip_version)


def colours(suites: Sequence[str]) -> dict[str, str]:
    """Return one colour for each suite, the same in every figure of a report."""
    return {suite: PALETTE[i % len(PALETTE)] for i, suite in enumerate(suites)} | {BASELINE: GREY}


def theory_is_off_scale(group: Group, line_rate_bps: float) -> bool:
    """Return whether the Mbps panel leaves out the theoretical line, because it is far above every result."""
    top = max((row["mbps"] for row in _points(group) if row["mbps"] is not None), default=0.0)
    lowest = min((row["mbps"] for row in _theory(group, line_rate_bps)), default=0.0)
    return 0 < top * _THEORY_ROOM < lowest


def panel(group: Group, unit: Unit, line_rate_bps: float, colour_of: dict[str, str], *, legend: bool) -> Spec:
    """Return one panel as a Vega-Lite document.

    legend: True for a picture, which has its own legend and a fixed width. A panel in a page has neither: the page has
    the legend, and the panel is as wide as the page.
    """
    points = _points(group)
    theory = _theory(group, line_rate_bps)
    if unit == "mbps" and theory_is_off_scale(group, line_rate_bps):
        theory = []
    low, high = _domain(points, theory, unit)
    sheet = _Sheet(group, unit, colour_of, (low, high), legend=legend)
    marks = _unplotted(group, (low, high), unit)
    rates = [
        sheet.theory_line(theory),
        sheet.lines(points),
        sheet.points(points),
        sheet.bounds(points),
        sheet.marks(marks),
    ]
    cpu = _cpu(group) if unit == "mbps" else []
    layers = [{"layer": rates}, *([sheet.cpu(cpu)] if cpu else [])]
    both = {"resolve": {"scale": {"y": "independent"}}}
    return document(sheet.datasets, layers, as_picture=legend) | both


def theme(*, dark: bool) -> Spec:
    """Return the Vega configuration for a light or dark page."""
    ink, faint, grid = ("#d5d9df", "#9aa1ab", "#333941") if dark else ("#1f2328", "#59616b", "#e4e7eb")
    text = {"labelColor": faint, "titleColor": ink, "labelFontSize": 11, "titleFontSize": 12}
    return {
        "font": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif",
        "background": "transparent" if dark else "#ffffff",
        "axis": {**text, "titleFontWeight": 500, "gridColor": grid, "domainColor": faint, "tickColor": faint},
        "legend": {**text, "titleFontWeight": 600, "symbolStrokeWidth": 2},
        "view": {"stroke": None},
        "padding": 4,
    }


class _Sheet:
    """The layers of one panel as Vega-Lite, over the same axes and colours, and the rows they draw."""

    def __init__(
        self,
        group: Group,
        unit: Unit,
        colour_of: dict[str, str],
        domain: tuple[float, float],
        *,
        legend: bool,
    ) -> None:
        self.datasets: dict[str, list[Spec]] = {}
        names = group.series
        sizes = [str(size) for size in group.sizes]
        ticks: Spec = (
            {"values": decades(*domain), "labelOverlap": False} if unit == "fps" else {"tickCount": 6}
        )
        self.alone = len(sizes) == 1  # then there are no lines, and points are larger
        self.x = size_axis(sizes)
        self.y: Spec = {
            "field": unit,
            "type": "quantitative",
            "scale": {"type": "log" if unit == "fps" else "linear", "domain": list(domain), "nice": False},
            "axis": {"title": _TITLES[unit], "format": ",~f", **ticks},
        }
        self.colour: Spec = {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": names, "range": [colour_of[name] for name in names]},
            "legend": {"title": "Suite"} if legend else None,
        }
        self.dash: Spec = {
            "field": "goal",
            "type": "nominal",
            "scale": {"domain": list(group.dashes), "range": list(group.dashes.values())},
            "legend": {"title": "Loss goal", "symbolType": "stroke", "symbolSize": 700} if legend else None,
        }
        self.shape: Spec = {
            "field": "gateway",
            "type": "nominal",
            "scale": {"domain": ["Home", "Office"], "range": ["square", "triangle-up"]},
            "legend": {"title": "CPU (right axis)"} if legend else None,
        }

    def theory_line(self, rows: list[Spec]) -> Spec:
        """Return the layer of the line rate, which RFC 2544 26.1 wants to be shown with the results."""
        mark = {
            "type": "line",
            "color": GREY,
            "strokeWidth": 1.2,
            "point": {"size": 60 if self.alone else 12, "color": GREY},
        }
        tooltip = [
            tip("series", "line"),
            _SIZE,
            tip("fps", "frames/s", ",.0f"),
            tip("mbps", "Mbps", ",.1f"),
        ]
        return self._layer("theory", rows, mark, x=self.x, y=self.y, tooltip=tooltip)

    def lines(self, rows: list[Spec]) -> Spec:
        """Return the layer of lines; a size without a result, or with only a bound, breaks its line."""
        sized = [row | {"fps": None, "mbps": None} if row["bound"] else row for row in rows if not row["mix"]]
        mark = {"type": "line", "strokeWidth": 1.9, "invalid": "break-paths-show-domains"}
        return self._layer(
            "lines", sized, mark,
            x=self.x, y=self.y, color=self.colour, strokeDash=self.dash, opacity=opacity(1.0),
        )  # fmt: skip

    def points(self, rows: list[Spec]) -> Spec:
        """Return the layer of results that are no bounds, with all their values in the tooltip."""
        known = [row for row in rows if row["fps"] is not None and not row["bound"]]
        mark = {"type": "point", "filled": True, "size": 130 if self.alone else 34}
        return self._figures("points", known, mark, "throughput")

    def bounds(self, rows: list[Spec]) -> Spec:
        """Return the layer of lower bounds: arrows towards the throughput; the tooltip says why it is not known."""
        bounds = [row for row in rows if row["fps"] is not None and row["bound"]]
        mark = {"type": "point", "filled": True, "shape": ARROW_UP, "size": 260, "strokeWidth": 0}
        return self._figures("bounds", bounds, mark, "at least")

    def _figures(self, name: str, rows: list[Spec], mark: Spec, what: str) -> Spec:
        tooltip = [
            *_WHICH,
            tip("fps", f"{what}, frames/s", ",.0f"),
            tip("mbps", f"{what}, Mbps", ",.2f"),
            tip("pct", "% of line rate", ".2f"),
            tip("words", "in words"),
        ]
        return self._layer(
            name, rows, mark,
            x=self.x, y=self.y, color=self.colour, opacity=opacity(1.0), tooltip=tooltip,
        )  # fmt: skip

    def marks(self, rows: list[Spec]) -> Spec:
        """Return the layer of points without a figure, at the foot of the panel; their height there means nothing."""
        tooltip = [*_WHICH, tip("status", "status"), tip("words", "in words")]
        mark = {"type": "text", "fontSize": 13, "fontWeight": "bold"}
        return self._layer(
            "marks", rows, mark,
            x=self.x, y=self.y, color={"condition": _IN_RED} | self.colour, opacity=opacity(1.0), tooltip=tooltip,
            text={"field": "mark", "type": "nominal"},
        )  # fmt: skip

    def cpu(self, rows: list[Spec]) -> Spec:
        """Return the layer of the gateways' CPU at the throughput of the strictest goal, on the second axis."""
        known = [row for row in rows if row["cpu"] is not None]
        y: Spec = {
            "field": "cpu",
            "type": "quantitative",
            "scale": {"domain": [0, max(100.0, *(row["cpu"] for row in known))]},
            "axis": {
                "title": "CPU at the throughput, % (□ Home  △ Office)",
                "orient": "right",
                "grid": False,
                "tickCount": 5,
            },
        }
        faint = {"x": self.x, "y": y, "color": self.colour, "opacity": opacity(0.55)}
        tooltip = [*_WHICH, tip("gateway", "gateway"), tip("cpu", "CPU, %", ".1f")]
        sized = [row for row in rows if not row["mix"]]
        gateway = {"field": "gateway", "type": "nominal"}
        line = {"type": "line", "strokeWidth": 0.9, "invalid": "break-paths-show-domains"}
        return {
            "layer": [
                self._layer("cpu lines", sized, line, **faint, detail=gateway),
                self._layer(
                    "cpu", known, {"type": "point", "size": 90 if self.alone else 48, "strokeWidth": 1.2},
                    **faint, shape=self.shape, tooltip=tooltip,
                ),
            ]
        }  # fmt: skip

    def _layer(self, name: str, rows: list[Spec], mark: Spec, **encoding: Any) -> Spec:
        self.datasets[name] = rows
        return {"data": {"name": name}, "mark": mark, "encoding": encoding}


_SIZE = tip("size", "frame size, B")
_WHICH = (tip("series", "suite"), _SIZE, tip("goal", "loss goal"))


def _points(group: Group) -> list[Spec]:
    """Return a row for each series, goal and size: the median of the repeats; None if none has a figure.

    bound: some repeat's figure is a lower bound, and so is the median.
    """
    named = [(o.suite, o) for o in group.outcomes] + [(BASELINE, o) for o in group.baseline]
    cells: dict[tuple[str, float, int | str], list[Outcome]] = {}
    for name, outcome in named:
        cells.setdefault((name, outcome.loss_goal, outcome.frame_size), []).append(outcome)
    order = group.sizes
    rows = []
    for (name, goal, size), of_cell in cells.items():
        if size not in order:
            continue
        usable = for_median(of_cell)
        rows.append(
            {
                "series": name,
                "goal": goal_name(goal),
                "size": str(size),
                "mix": isinstance(size, str),
                "fps": _median([o.throughput_fps for o in usable]),
                "mbps": _median([o.throughput_mbps for o in usable]),
                "pct": _median([o.line_rate_pct for o in usable]),
                "bound": any(o.status == "LOWER_BOUND" for o in usable),
                "words": " / ".join(dict.fromkeys(o.words for o in of_cell)),
            }
        )
    # A line is drawn in the order of its rows.
    return sorted(rows, key=lambda row: [str(size) for size in order].index(row["size"]))


def _unplotted(group: Group, domain: tuple[float, float], unit: Unit) -> list[Spec]:
    """Return one mark for each outcome without a figure, stacked by series so that none hides another."""
    low, high = domain
    names = group.series
    rows = []
    for outcome in group.outcomes:
        if outcome.status in WITH_FIGURE:
            continue
        step = 0.05 * (names.index(outcome.suite) + 0.6)
        rows.append(
            {
                "series": outcome.suite,
                "size": str(outcome.frame_size),
                "goal": goal_name(outcome.loss_goal),
                "status": outcome.status,
                "words": outcome.words,
                "mark": MARKS[outcome.status],
                unit: low + (high - low) * step if unit == "mbps" else low * (high / low) ** step,
            }
        )
    return rows


def _cpu(group: Group) -> list[Spec]:
    """Return a row for each suite, size and gateway: the median CPU of the repeats at the strictest goal with a figure.

    It is the median, as the throughput in the same panel is: both are then of the same repeats.
    """
    cells: dict[tuple[str, int | str, float], list[Outcome]] = {}
    for outcome in sorted(group.outcomes, key=lambda o: o.loss_goal):
        cells.setdefault((outcome.suite, outcome.frame_size, outcome.loss_goal), []).append(outcome)
    strictest: dict[tuple[str, int | str], list[Outcome]] = {}
    for (suite, size, _), repeats in cells.items():
        if usable := for_median(repeats):
            strictest.setdefault((suite, size), usable)
    rows = []
    for suite in dict.fromkeys(o.suite for o in group.outcomes):
        for size in group.sizes:  # a line is drawn in the order of its rows, and broken by None
            best = strictest.get((suite, size), [])
            readings = (_median([o.cpu_home_pct for o in best]), _median([o.cpu_office_pct for o in best]))
            for gateway, cpu in zip(("Home", "Office"), readings, strict=True):
                rows.append(
                    {
                        "series": suite,
                        "size": str(size),
                        "mix": isinstance(size, str),
                        "goal": goal_name(best[0].loss_goal) if best else "",
                        "gateway": gateway,
                        "cpu": None if cpu is None else round(cpu, 2),
                    }
                )
    return rows if any(row["cpu"] is not None for row in rows) else []


def _theory(group: Group, line_rate_bps: float) -> list[Spec]:
    rows = []
    for size in group.sizes:
        if isinstance(size, int) and line_rate_bps:  # a mix of sizes has no single line rate
            fps = group.directions * line_rate_fps(size, line_rate_bps)
            mbps = layer2_mbps(fps, size)
            rows.append({"series": THEORY, "size": str(size), "fps": round(fps, 1), "mbps": round(mbps, 2)})
    return rows


def _domain(points: list[Spec], theory: list[Spec], unit: Unit) -> tuple[float, float]:
    values = [row[unit] for row in (*points, *theory) if row[unit]]
    if not values:
        return (1.0, 10.0) if unit == "fps" else (0.0, 1.0)
    if unit == "mbps":
        return 0.0, max(values) * 1.06
    return log_domain(values)


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 4) if known else None
