# SPDX-License-Identifier: Apache-2.0
"""Draws one series: its figures over time, a line at each change, a mark for each run without a figure."""

from __future__ import annotations

from espbench.reporting.parts.chart_parts import GREY, PALETTE, Spec, document, layer, tip

CHANGED = "#c8434f"


def over_time() -> Spec:
    """Return the chart without data: the page fills in `points`, `marks` and `changes`, and the y axis' title.

    A point has `time` (ms since 1970), `value` and `run`; a mark `time`, `status` and `run`; a change `time`, `run`
    and `move`.
    """
    time: Spec = {
        "field": "time",
        "type": "temporal",
        "scale": {"type": "utc"},
        "axis": {
            "title": "Started (UTC)",
            # The time of a label is shown only if it is not the beginning of a day.
            "labelExpr": (
                "utcFormat(datum.value, utcFormat(datum.value, '%H:%M') == '00:00' ? '%Y-%m-%d' : '%Y-%m-%d %H:%M')"
            ),
            "labelOverlap": "greedy",
            "labelSeparation": 12,
        },
    }
    value: Spec = {
        "field": "value", "type": "quantitative", "scale": {"zero": False, "nice": True},
        "axis": {"title": "", "format": ",~r"},
    }  # fmt: skip
    run = tip("run", "run")
    layers = [
        layer("changes", {"type": "rule", "color": CHANGED, "strokeDash": [5, 4], "strokeWidth": 1.5},
              x=time, tooltip=[tip("run", "changed at"), tip("move", "from → to")]),
        layer("points", {"type": "line", "color": GREY, "strokeWidth": 1}, x=time, y=value),
        layer("points", {"type": "point", "filled": True, "size": 45, "color": PALETTE[0], "opacity": 1},
              x=time, y=value, tooltip=[run, tip("value", "figure", ",.7~r"), tip("status", "status")]),
        layer("marks", {"type": "text", "text": "✕", "color": CHANGED, "fontSize": 12, "baseline": "bottom"},
              x=time, y={"value": "height"}, tooltip=[run, tip("status", "status")]),
    ]  # fmt: skip
    return document({"points": [], "marks": [], "changes": []}, layers, as_picture=False)
