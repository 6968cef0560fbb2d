# SPDX-License-Identifier: Apache-2.0
"""Draws a comparison as Vega-Lite charts: throughput, ratio to the reference, CPU per frame.

Arms differ in colour and shape, and gateways in the dashes of their lines. A hollow point of a ratio is one at which no
arm is shown to be faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from espbench.comparison.sorting.model import Panel
from espbench.reporting.compared.comparison_rows import (
    GATEWAYS,
    cpu_rows,
    rate_rows,
    ratio_rows,
    series_of,
    unplotted,
)
from espbench.reporting.compared.comparison_wording import x_title
from espbench.reporting.parts.chart_parts import Spec
from espbench.reporting.parts.figures import colours

Kind = Literal["fps", "ratio", "cpu"]
KINDS: tuple[Kind, ...] = ("fps", "ratio", "cpu")

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHES = dict(zip(GATEWAYS, ([1, 0], [6, 3], [2, 3]), strict=True))
_BASELINE_GREYS = ("#8a8f98", "#5f6b7a", "#a8957d")
_GREY = "#8a8f98"
_HEIGHT = 300
_SVG_WIDTH = 560
_MOST_TICKS = 9
_BESIDE, _MOST_BESIDE = 5.0, 9.0  # pixels: between two arms at one x, and the most from the middle
_RATIO_ROOM = 1.06  # between the outermost interval and the edge of the panel
_WORD_ANGLE = -30  # degrees: names of suites or kernels are too long to stand side by side


def styles(arms: Sequence[str], baselines: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return each curve's colour and shape, the same in every figure of a comparison."""
    hues = colours(arms)
    by_name = {name: (hues[name], SHAPES[i % len(SHAPES)]) for i, name in enumerate(arms)}
    for i, name in enumerate(n for n in baselines if n not in by_name):
        grey = _BASELINE_GREYS[i % len(_BASELINE_GREYS)]
        by_name[name] = (grey, SHAPES[(len(arms) + i) % len(SHAPES)])
    return by_name


def figures(
    panel: Panel, arms: Sequence[str], style: dict[str, tuple[str, str]], *, legend: bool
) -> dict[Kind, Spec]:
    """Return the charts of a panel that have something to show.

    legend: True for pictures, which have their own legend and a fixed width. Charts in a page have neither: the page
    has the legend, and they are as wide as the page.
    """
    series = series_of(panel, arms)
    sheet = _Sheet(panel, style, legend=legend)
    charts: dict[Kind, Spec] = {}
    rates, ratios = rate_rows(panel, series), ratio_rows(panel)
    if any(row["fps"] for row in rates):
        charts["fps"] = sheet.rates(rates, series)
    if any(row["ratio"] or row["bound"] for row in ratios):
        charts["ratio"] = sheet.ratios(ratios)
    if cpu := cpu_rows(panel, series, arms):
        charts["cpu"] = sheet.cpu(cpu, series)
    return charts


class _Sheet:
    """The charts of one panel over the same x axis, colours and shapes."""

    def __init__(self, panel: Panel, style: dict[str, tuple[str, str]], *, legend: bool) -> None:
        self.panel = panel
        self.style = style
        self.legend = legend
        self.alone = len(panel.x) == 1  # then there are no lines, and points are larger

    def rates(self, rows: list[Spec], series: list[str]) -> Spec:
        """Return the chart of the throughput with its intervals, on a logarithmic scale."""
        known = [row for row in rows if row["fps"]]
        domain, ticks = _rate_scale(known)
        y = _y("fps", "Throughput, frames/s (log)", "log", domain, {"values": ticks, "format": ",~f"})
        which = [_tip("series", "arm"), _tip("x", self.panel.x_name)]
        figures_of = [_tip("fps", "frames/s", ",.0f"), _tip("interval", "interval"), _tip("mbps", "Mbps")]
        note = _tip("note", "repeats")
        return self._chart(
            rows,
            known,
            _with_interval(known),
            [
                self._line(y, series),
                self._interval(y, series),
                self._points(y, series, [*which, *figures_of, note]),
                self._marks(y, series, [*which, note]),
            ],
            marks=unplotted(self.panel, rows, "fps", domain),
        )

    def ratios(self, rows: list[Spec]) -> Spec:
        """Return the chart of B / A with intervals and a line at 1; hollow points show no arm to be faster."""
        known = [row for row in rows if row["ratio"]]
        domain, ticks = _ratio_scale(rows)
        series = list(dict.fromkeys(row["series"] for row in rows))
        references = " or ".join(dict.fromkeys(pair.a for pair in self.panel.pairs))
        axis = {"values": ticks, "labelExpr": "format(datum.value, ',~f') + '×'"}
        y = _y("ratio", f"Ratio to {references} (log)", "log", domain, axis)
        which = [_tip("pair", "B / A"), _tip("x", self.panel.x_name)]
        verdict = [_tip("verdict", "verdict"), _tip("why", "why")]
        line_at_one: Spec = {
            "data": {"name": "one"},
            "mark": {"type": "rule", "color": _GREY, "strokeWidth": 1.4, "strokeDash": [5, 3]},
            "encoding": {"y": y},
        }
        return self._chart(
            rows,
            known,
            _with_interval(known),
            [
                line_at_one,
                self._line(y, series, width=0.8),
                self._interval(y, series),
                self._points(
                    y, series, [*which, _tip("words", "ratio"), *verdict],
                    hollow="datum.verdict != 'A faster' && datum.verdict != 'B faster'",
                ),
                self._marks(y, series, [*which, *verdict]),
            ],
            marks=unplotted(self.panel, rows, "ratio", domain),
            one=[{"ratio": 1}],
        )  # fmt: skip

    def cpu(self, rows: list[Spec], series: list[str]) -> Spec:
        """Return the chart of CPU time per frame, µs: the sum as a solid line, each gateway dashed and hollow."""
        known = [row for row in rows if row["cpu"] is not None]
        sums = [row for row in known if row["gateway"] == GATEWAYS[0]]
        top = max(max(row["cpu"], row["high"] or 0) for row in known) * 1.08
        y = _y("cpu", "CPU, µs per frame", "linear", (0, top), {"tickCount": 6, "format": ",~f"})
        dash: Spec = {
            "field": "gateway",
            "type": "nominal",
            "scale": {"domain": list(DASHES), "range": list(DASHES.values())},
            "legend": {"title": "CPU of", "symbolType": "stroke", "symbolSize": 700} if self.legend else None,
        }
        tooltip = [
            _tip("series", "arm"), _tip("x", self.panel.x_name), _tip("gateway", "CPU of"),
            _tip("words", "µs per frame"),
        ]  # fmt: skip
        return self._chart(
            rows,
            known,
            _with_interval(sums),
            [
                self._line(y, series, strokeDash=dash, strokeWidth=_of_sum(1.9, 1)),
                self._interval(y, series),
                self._points(
                    y, series, tooltip, hollow=f"datum.gateway != '{GATEWAYS[0]}'",
                    size=_of_sum(120 if self.alone else 46, 60 if self.alone else 22),
                ),
            ],
        )  # fmt: skip

    def _chart(
        self,
        rows: list[Spec],
        points: list[Spec],
        intervals: list[Spec],
        layers: list[Spec],
        **more: list[Spec],
    ) -> Spec:
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",  # only a name; it is never loaded
            "width": _SVG_WIDTH if self.legend else "container",
            "height": _HEIGHT,
            "params": [{"name": "chosen", "value": ""}],
            "datasets": {"lines": _sized(rows), "points": points, "intervals": intervals, **more},
            "layer": layers,
        }

    def _line(self, y: Spec, series: list[str], width: float = 1.9, **more: Any) -> Spec:
        mark = {"type": "line", "strokeWidth": width, "invalid": "break-paths-show-domains"}
        return self._layer("lines", mark, y, series, **more)

    def _interval(self, y: Spec, series: list[str]) -> Spec:
        """Return the layer of intervals, from the lower to the upper bound."""
        return self._layer(
            "intervals",
            {"type": "rule", "strokeWidth": 2},
            y | {"field": "low"},
            series,
            y2={"field": "high"},
        )

    def _points(self, y: Spec, series: list[str], tooltip: list[Spec], hollow: str = "", **more: Any) -> Spec:
        """Return the layer of points; hollow: a Vega expression that is true for points that are not filled."""
        mark = {"type": "point", "size": 120 if self.alone else 46, "strokeWidth": 1.4}
        shapes = [self.style[name][1] for name in series]
        shape = {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": series, "range": shapes},
            "legend": self._legend,
        }
        full: Spec = {"value": 1}
        opacity = full | ({"condition": {"test": hollow, "value": 0}} if hollow else {})
        return self._layer(
            "points", mark, y, series,
            fill=self._colour(series), fillOpacity=opacity, shape=shape, tooltip=tooltip, **more,
        )  # fmt: skip

    def _marks(self, y: Spec, series: list[str], tooltip: list[Spec]) -> Spec:
        """Return the layer of points without a figure, at the foot of the panel; their height there means nothing."""
        mark = {"type": "text", "fontSize": 13, "fontWeight": "bold"}
        text = {"field": "mark", "type": "nominal"}
        return self._layer("marks", mark, y, series, text=text, tooltip=tooltip)

    def _layer(self, rows: str, mark: Spec, y: Spec, series: list[str], **more: Any) -> Spec:
        names = [str(x) for x in self.panel.x]
        x = {
            "field": "x",
            "type": "ordinal",
            "sort": names,
            "scale": {"type": "point", "domain": names, "padding": 0.4},
            "axis": {
                "title": x_title(self.panel),
                "labelAngle": 0 if all(isinstance(x, int) for x in self.panel.x) else _WORD_ANGLE,
                "grid": True,
            },
        }
        # Arms are a little apart, so that their intervals do not hide one another.
        half = min(_BESIDE * (len(series) - 1) / 2, _MOST_BESIDE)
        beside = {"field": "series", "type": "nominal", "scale": {"domain": series, "range": [-half, half]}}
        # The arm that is chosen in the page's legend is opaque; all are while none is chosen.
        chosen = {"test": "chosen == '' || datum.series == chosen", "value": 1}
        encoding = {
            "x": x,
            **({"xOffset": beside} if half else {}),
            "y": y,
            "color": self._colour(series),
            "opacity": {"condition": chosen, "value": 0.1},
        }
        return {"data": {"name": rows}, "mark": mark, "encoding": encoding | more}

    @property
    def _legend(self) -> Spec | None:
        return {"title": "Arm", "symbolSize": 60} if self.legend else None

    def _colour(self, series: list[str]) -> Spec:
        hues = [self.style[name][0] for name in series]
        scale = {"domain": series, "range": hues}
        return {"field": "series", "type": "nominal", "scale": scale, "legend": self._legend}


def _y(field: str, title: str, scale: str, domain: tuple[float, float], axis: Spec) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": scale, "domain": list(domain), "nice": False},
        "axis": {"title": title, "labelOverlap": False, **axis},
    }


def _tip(field: str, title: str, number_format: str = "") -> Spec:
    kind = {"type": "quantitative", "format": number_format} if number_format else {"type": "nominal"}
    return {"field": field, "title": title, **kind}


def _sized(rows: list[Spec]) -> list[Spec]:
    """Return the rows that a line may join: those of frame sizes, not of names such as suites; without lower bounds."""
    is_bound = {"fps": None}
    return [
        row | is_bound if "fps" in row and row["sign"] else row for row in rows if isinstance(row["key"], int)
    ]


def _with_interval(rows: list[Spec]) -> list[Spec]:
    return [row for row in rows if row["low"] is not None and row["high"] is not None]


def _rate_scale(rows: list[Spec]) -> tuple[tuple[float, float], list[float]]:
    """Return the domain and the labels of the axis: both ends have a label, and marks of points fit in below."""
    lowest = min(row["low"] or row["fps"] for row in rows)
    highest = max(row["high"] or row["fps"] for row in rows)
    steps = _steps(lowest * 0.1, highest * 10)
    low = max(step for step in steps if step <= lowest * 0.6)
    high = min(step for step in steps if step >= highest * 1.1)
    return (low, high), [step for step in steps if low <= step <= high]


def _steps(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, 20 … within the domain."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step for p in powers for digit in (1, 2, 5) if low <= (step := digit * 10.0**p) <= high]


def _ratio_scale(rows: list[Spec]) -> tuple[tuple[float, float], list[float]]:
    """Return the domain and the labels of the axis: it contains every interval, and 1, which always has a label."""
    bounds = [
        bound for row in rows for bound in (row["ratio"], row["low"], row["high"], row["bound"]) if bound
    ]
    low, high = min(1.0, *bounds) / _RATIO_ROOM, max(1.0, *bounds) * _RATIO_ROOM
    if high / low > 4:
        ticks = _steps(low, high)
        return (low, high), ticks if len(ticks) <= _MOST_TICKS else [t for t in ticks if _is_decade(t)]
    widths = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    width = next(w for w in widths if (high - low) / w <= _MOST_TICKS)
    first, last = math.ceil((low - 1) / width), math.floor((high - 1) / width)
    return (low, high), [round(1 + n * width, 2) for n in range(first, last + 1)]


def _of_sum(value: float, otherwise: float) -> Spec:
    return {"condition": {"test": f"datum.gateway == '{GATEWAYS[0]}'", "value": value}, "value": otherwise}


def _is_decade(step: float) -> bool:
    return math.log10(step).is_integer()
