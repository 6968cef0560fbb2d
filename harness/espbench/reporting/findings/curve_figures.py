# SPDX-License-Identifier: Apache-2.0
"""Draws the curve of a test that the report does not know as a Vega-Lite chart: its second column over its first."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.reporting.findings.finding_curves import column_title
from espbench.reporting.parts.chart_parts import Spec, colour_scale, document, layer, opacity, size_name, tip
from espbench.terms import Finding


def axes_of(findings: Sequence[Finding]) -> tuple[str, str] | None:
    """Return the keys of x and y if all curves have the same two first columns and these are numbers; else None."""
    keys = {tuple(row)[:2] for f in findings for row in f.curve}
    if len(keys) != 1 or not any(len(f.curve) > 1 for f in findings):
        return None
    first = keys.pop()
    values = [row[key] for f in findings for row in f.curve for key in first if row[key] is not None]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return (first[0], first[1]) if len(first) == 2 and values and numbers else None


def curve_panel(
    findings: Sequence[Finding], axes: tuple[str, str], colour_of: dict[str, str], *, as_picture: bool
) -> Spec | None:
    """Return a chart with one line for each frame size; a point without a figure breaks the line."""
    x_key, y_key = axes
    rows = [
        {"series": size_name(f.frame_size), "repeat": f.repeat, "x": row[x_key], "y": row[y_key]}
        for f in findings
        for row in f.curve
        if row[x_key] is not None
    ]
    known = [row for row in rows if row["y"] is not None]
    if not known:
        return None
    titles = column_title(x_key), column_title(y_key)
    shared: Spec = {
        **{
            axis: {"field": axis, "type": "quantitative", "scale": {"zero": True}, "axis": {"title": title}}
            for axis, title in zip(("x", "y"), titles, strict=True)
        },
        "color": colour_scale(colour_of, title="Frame size" if as_picture else None),
        "opacity": opacity(1.0),
    }
    tooltip = [tip("series", "frame size"), tip("x", titles[0], ",.6~g"), tip("y", titles[1], ",.6~g")]
    line = {"type": "line", "strokeWidth": 1.8, "invalid": "break-paths-show-domains"}
    return document(
        {"lines": rows, "points": known},
        [
            layer("lines", line, **shared, detail={"field": "repeat", "type": "nominal"}),
            layer("points", {"type": "point", "filled": True, "size": 34}, **shared, tooltip=tooltip),
        ],
        as_picture=as_picture,
    )
