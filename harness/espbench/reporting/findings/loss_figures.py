# SPDX-License-Identifier: Apache-2.0
"""Draws the frame loss curve of RFC 2544 26.3, and forwarded against offered load, as Vega-Lite charts.

Each frame size has one line. A load that could not be measured breaks its line, and has a mark at the foot of the
panel.
"""

from __future__ import annotations

from collections.abc import Sequence

from espbench.reporting.parts.chart_parts import (
    GREY,
    MARKS,
    Spec,
    colour_scale,
    document,
    layer,
    opacity,
    size_name,
    tip,
)
from espbench.terms import Finding

# If no curve reaches this share of the line rate (of 100), loads are drawn in per cent of the highest one.
_WORTH_DRAWING = 40.0
_FOOT = 2.5  # height of a mark, of 100


def highest_loads(findings: Sequence[Finding]) -> list[float]:
    """Return the highest load of each curve in per cent of the line rate; an empty list if that is not known."""
    points = [[row["intended_pct_of_line_rate"] for row in f.curve] for f in findings if f.curve]
    return [] if any(None in shares for shares in points) else [max(shares) for shares in points]


def is_of_highest(findings: Sequence[Finding]) -> bool:
    """Return whether loads are drawn in per cent of the highest one.

    They are if the line rate is not known, or is too far away to be the end of the axis.
    """
    return max(highest_loads(findings), default=0.0) < _WORTH_DRAWING


def loss_panel(
    findings: Sequence[Finding], colour_of: dict[str, str], *, of_highest: bool, as_picture: bool
) -> Spec | None:
    """Return the chart of the frame loss in per cent against the load, both from 0 to 100 (RFC 2544 26.3)."""
    return _panel(findings, colour_of, "loss", of_highest=of_highest, as_picture=as_picture)


def forwarded_panel(
    findings: Sequence[Finding], colour_of: dict[str, str], *, of_highest: bool, as_picture: bool
) -> Spec | None:
    """Return the chart of forwarded against offered load, with the line on which nothing is lost.

    A curve that falls shows a DUT that collapses under overload.
    """
    return _panel(findings, colour_of, "forwarded", of_highest=of_highest, as_picture=as_picture)


def _panel(
    findings: Sequence[Finding], colour_of: dict[str, str], field: str, *, of_highest: bool, as_picture: bool
) -> Spec | None:
    rows = [row for f in findings for row in _rows(f, of_highest=of_highest)]
    known = [row for row in rows if row["loss"] is not None]
    if not known:
        return None
    marks = [{**row, field: _FOOT, "mark": MARKS["INVALID"]} for row in rows if row["loss"] is None]
    whole = "of the highest load" if of_highest else "of the line rate"
    x = _axis("offered", f"Offered load, % {whole} for the frame size")
    titles = {"loss": "Frame loss, %", "forwarded": f"Forwarded load, % {whole}"}
    y = _axis(field, titles[field])
    colour = colour_scale(colour_of, title="Frame size" if as_picture else None)
    shared: Spec = {"x": x, "y": y, "color": colour, "opacity": opacity(1.0)}
    tooltip = [
        tip("series", "frame size"), tip("pct", "load, % of line rate", ".3~f"),
        tip("offered_fps", "offered, frames/s", ",.0f"), tip("forwarding_fps", "forwarded, frames/s", ",.0f"),
        tip("loss", "frame loss, %", ".4~f"), tip("repeat", "repeat", "d"),
    ]  # fmt: skip
    equality = [{"offered": 0, "forwarded": 0}, {"offered": 100, "forwarded": 100}]
    datasets = {"lines": rows, "points": known, "marks": marks}
    layers = [
        layer("lines", {"type": "line", "strokeWidth": 1.8, "invalid": "break-paths-show-domains"},
              **shared, detail={"field": "repeat", "type": "nominal"}),
        layer("points", {"type": "point", "filled": True, "size": 30}, **shared, tooltip=tooltip),
        layer("marks", {"type": "text", "fontSize": 13, "fontWeight": "bold"}, **shared,
              text={"field": "mark", "type": "nominal"},
              tooltip=[tip("series", "frame size"), tip("pct", "load, % of line rate", ".3~f"),
                       tip("status", "status")]),
    ]  # fmt: skip
    if field == "forwarded":
        datasets["equality"] = equality
        layers.insert(
            0,
            layer(
                "equality",
                {"type": "line", "color": GREY, "strokeWidth": 1.2, "strokeDash": [5, 3]},
                x=x,
                y=y,
            ),
        )
    return document(datasets, layers, as_picture=as_picture)


def _axis(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": [0, 100], "nice": False},
        "axis": {"title": title, "values": list(range(0, 101, 10))},
    }


def _rows(f: Finding, *, of_highest: bool) -> list[Spec]:
    """Return the points of one curve by rising load; loads are in per cent of the line rate or of the highest load."""
    highest = max((row["intended_fps"] for row in f.curve), default=0.0)
    rows = []
    for point in sorted(f.curve, key=lambda row: row["intended_fps"]):
        pct, intended = point["intended_pct_of_line_rate"], point["intended_fps"]
        whole = highest if of_highest else 100 * intended / pct  # fps that are 100 %
        offered, forwarded = point["offered_fps"], point["forwarding_fps"]
        rows.append(
            {
                "series": size_name(f.frame_size),
                "repeat": f.repeat,
                "pct": pct,
                "offered": round(100 * (intended if offered is None else offered) / whole, 4),
                "forwarded": None if forwarded is None else round(100 * forwarded / whole, 4),
                "loss": point["frame_loss_pct"],
                "offered_fps": offered,
                "forwarding_fps": forwarded,
                "status": point["validity"],
            }
        )
    return rows
