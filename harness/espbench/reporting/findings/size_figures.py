# SPDX-License-Identifier: Apache-2.0
"""Draws findings against frame size as Vega-Lite charts: latency with its percentiles, forwarding under flood.

A size without a figure breaks its line and has a mark at the foot of the panel, whose height means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.quantities import Key
from espbench.reporting.findings.finding_groups import median_of, quantity, value
from espbench.reporting.parts.chart_parts import (
    GREY,
    MARKS,
    Spec,
    colour_scale,
    document,
    layer,
    log_axis,
    log_domain,
    opacity,
    size_axis,
    tip,
)
from espbench.terms import WITH_FIGURE, Finding, line_rate_fps

TAGGED = "tagged frame, mean"
_LATENCIES = {
    "least": Key.LATENCY_LEAST, "p50": Key.LATENCY_P50, "p90": Key.LATENCY_P90, "p99": Key.LATENCY_P99,
    "p99.9": Key.LATENCY_P999, "greatest": Key.LATENCY_GREATEST,
}  # fmt: skip
# Percentile → its colour, from the least to the greatest.
PERCENTILES = {
    "least": "#7fb3d8", "p50": "#2f7ebc", "p90": "#2aa5a5", "p99": "#c79a2b", "p99.9": "#e07b39",
    "greatest": "#c8434f",
}  # fmt: skip
LATENCY_COLOURS = {TAGGED: "#8b6fc0", **PERCENTILES}
FLOOD, THROUGHPUT = "under flood", "throughput"
FLOOD_DASHES: dict[str, list[float]] = {FLOOD: [1, 0], THROUGHPUT: [7, 4]}
_SIZE = tip("size", "frame size, B")


def latency_domain(findings: Sequence[Finding]) -> tuple[float, float] | None:
    """Return the common axis domain, µs, of all panels that are read side by side; None if there are no figures."""
    figures = [q for f in findings for q in f.quantities if q.unit == "µs" and not q.way]
    values = [v for q in figures for v in (q.value, q.minimum, q.maximum) if v]
    return log_domain(values) if values else None


def latency_panel(
    findings: Sequence[Finding],
    sizes: Sequence[int | str],
    domain: tuple[float, float],
    *,
    as_picture: bool,
) -> Spec | None:
    """Return the latency chart of one stack and suite; None if there are no figures.

    It shows the mean, the least and the greatest of the tagged frames, and percentiles of all frames.
    """
    tagged, lines = [], []
    for size in sizes:
        here = [f for f in findings if f.frame_size == size]
        of_size = [q for f in here if (q := quantity(f, Key.LATENCY_TAGGED)) and q.value is not None]
        if of_size:
            tagged.append(
                _at(size, TAGGED)
                | {
                    "us": median_of([q.value for q in of_size]),
                    "low": min(q.value if q.minimum is None else q.minimum for q in of_size if q.value is not None),
                    "high": max(q.value if q.maximum is None else q.maximum for q in of_size if q.value is not None),
                    "n": sum(q.n for q in of_size),
                    "load": median_of([f.load_fps for f in here]),
                }
            )  # fmt: skip
        lines += [
            _at(size, name) | {"us": median_of([value(f, _LATENCIES[name]) for f in here])}
            for name in PERCENTILES
        ]
    known = [row for row in lines if row["us"] is not None]
    if not known and not tagged:
        return None
    x, y = size_axis([str(size) for size in sizes]), log_axis("us", "Latency, µs (log)", domain)
    colour = colour_scale(LATENCY_COLOURS, title="Latency" if as_picture else None)
    shared: Spec = {"x": x, "y": y, "color": colour, "opacity": opacity(1.0)}
    of_tagged = [_SIZE, tip("us", "mean, µs", ",.4~f"), tip("low", "least, µs", ",.4~f"),
                 tip("high", "greatest, µs", ",.4~f"), tip("n", "tagged frames", ",d"),
                 tip("load", "load, frames/s", ",.0f")]  # fmt: skip
    return document(
        {"lines": _ordered(lines), "points": known, "tagged": tagged, "marks": _marks(findings, domain, "us")},
        [
            layer("lines", {"type": "line", "strokeWidth": 1.6, "invalid": "break-paths-show-domains"}, **shared),
            layer("points", _point(sizes), **shared, tooltip=[tip("series", "of all frames"), _SIZE,
                                                              tip("us", "latency, µs", ",.4~f")]),
            layer("tagged", {"type": "rule", "strokeWidth": 1.4}, x=x, y={**y, "field": "low"},
                  y2={"field": "high"}, color=colour, opacity=opacity(1.0)),
            layer("tagged", {"type": "point", "filled": True, "shape": "diamond", "size": 90}, **shared,
                  tooltip=of_tagged),
            _marks_layer(x, y),
        ],
        as_picture=as_picture,
    )  # fmt: skip


def flood_panel(
    findings: Sequence[Finding],
    sizes: Sequence[int | str],
    directions: int,
    line_rate_bps: float,
    colour_of: dict[str, str],
    *,
    as_picture: bool,
) -> Spec | None:
    """Return the chart of what each suite of one stack forwards under flood, with its throughput and the line rate.

    None if there are no figures.
    """
    lines = []
    for suite in dict.fromkeys(f.suite for f in findings):
        for what, key in ((FLOOD, Key.FLOOD_FORWARDING), (THROUGHPUT, Key.THROUGHPUT)):
            for size in sizes:
                here = [f for f in findings if (f.suite, f.frame_size) == (suite, size)]
                fps = median_of([value(f, key) for f in here])
                ratios = [value(f, Key.OF_THROUGHPUT) for f in here]
                # A repeat beside a lower bound of the throughput has no ratio; the others' median would not be all.
                ratio = None if None in ratios else median_of(ratios)
                lines.append(_at(size, suite) | {"what": what, "fps": fps, "ratio": ratio})
    known = [row for row in lines if row["fps"]]
    if not any(row["what"] == FLOOD for row in known):
        return None
    theory = [
        {"size": str(size), "fps": round(directions * line_rate_fps(size, line_rate_bps), 1)}
        for size in sizes
        if isinstance(size, int) and line_rate_bps
    ]
    domain = log_domain([row["fps"] for row in (*known, *theory)])
    x, y = size_axis([str(size) for size in sizes]), log_axis("fps", "Frames/s (log)", domain)
    suites = dict.fromkeys(f.suite for f in findings)
    colour = colour_scale(
        {suite: colour_of[suite] for suite in suites}, title="Suite" if as_picture else None
    )
    dash: Spec = {
        "field": "what",
        "type": "nominal",
        "scale": {"domain": list(FLOOD_DASHES), "range": list(FLOOD_DASHES.values())},
        "legend": {"title": None, "symbolType": "stroke", "symbolSize": 700} if as_picture else None,
    }
    shared: Spec = {"x": x, "y": y, "color": colour, "opacity": opacity(1.0)}
    tooltip = [tip("series", "suite"), _SIZE, tip("what", "which"), tip("fps", "frames/s", ",.0f"),
               tip("ratio", "under flood / throughput", ".3~f")]  # fmt: skip
    return document(
        {"theory": theory, "lines": _ordered(lines), "points": known, "marks": _marks(findings, domain, "fps")},
        [
            layer("theory", {"type": "line", "color": GREY, "strokeWidth": 1.2,
                             "point": {"size": 60 if len(sizes) == 1 else 12, "color": GREY}}, x=x, y=y,
                  tooltip=[_SIZE, tip("fps", "line rate, frames/s", ",.0f")]),
            layer("lines", {"type": "line", "strokeWidth": 1.9, "invalid": "break-paths-show-domains"},
                  **shared, strokeDash=dash),
            layer("points", _point(sizes), **shared, tooltip=tooltip),
            _marks_layer(x, y),
        ],
        as_picture=as_picture,
    )  # fmt: skip


def _at(size: int | str, series: str) -> Spec:
    return {"size": str(size), "series": series, "mix": isinstance(size, str)}


def _ordered(rows: list[Spec]) -> list[Spec]:
    """Return the rows that a line may join, which are those that are not mixes of sizes."""
    return [row for row in rows if not row["mix"]]


def _point(sizes: Sequence[int | str]) -> Spec:
    # There is no line if there is only one size, so the points are larger.
    return {"type": "point", "filled": True, "size": 110 if len(sizes) == 1 else 30}


def _marks(findings: Sequence[Finding], domain: tuple[float, float], field: str) -> list[Spec]:
    low, high = domain
    failed = [f for f in findings if f.status not in WITH_FIGURE]
    suites = list(dict.fromkeys(f.suite for f in findings))
    return [
        {"size": str(f.frame_size), "series": f.suite, "status": f.status, "words": f.words,
         "mark": MARKS[f.status], field: low * (high / low) ** (0.05 * (suites.index(f.suite) + 0.6))}
        for f in failed
    ]  # fmt: skip


def _marks_layer(x: Spec, y: Spec) -> Spec:
    mark: dict[str, Any] = {"type": "text", "fontSize": 13, "fontWeight": "bold", "color": "#c8434f"}
    tooltip = [_SIZE, tip("series", "suite"), tip("status", "status"), tip("words", "in words")]
    return layer("marks", mark, x=x, y=y, text={"field": "mark", "type": "nominal"}, tooltip=tooltip)
