# SPDX-License-Identifier: Apache-2.0
"""Draws figures of kernels as Vega-Lite charts: a group of bars or one stacked bar for each kernel, or lines."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.npcrypt.ciphers import KERNELS
from espbench.reporting.parts.chart_parts import (
    PALETTE,
    Spec,
    colour_scale,
    document,
    layer,
    log_axis,
    log_domain,
    opacity,
    tip,
)

ORDER = [kernel.shown for kernel in KERNELS.values()]


def shown(kernel: str) -> str:
    """Return a kernel's name for people."""
    return KERNELS[kernel].shown


def hues(series: Sequence[str]) -> dict[str, str]:
    """Return one colour for each series."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(series)}


def grouped(rows: list[Spec], title: str, *, log: bool, as_picture: bool) -> Spec:
    """Return a chart with the bars of a kernel side by side; rows have kernel, series and value."""
    colour_of = hues([*dict.fromkeys(row["series"] for row in rows)])
    domain = log_domain([row["value"] for row in rows]) if log else None
    if domain:
        rows = [row | {"foot": domain[0]} for row in rows]
    y = log_axis("value", title, domain) if domain else _linear("value", title)
    encoding: Spec = {
        "x": _kernels(),
        "xOffset": {"field": "series", "type": "nominal", "sort": [*colour_of]},
        "y": y,
        "color": colour_scale(colour_of, title="" if as_picture else None),
        "opacity": opacity(1.0),
        "tooltip": _tips(title),
    }
    if domain:
        encoding["y2"] = {"field": "foot"}
    return document({"bars": rows}, [layer("bars", {"type": "bar"}, **encoding)], as_picture=as_picture)


def stacked(rows: list[Spec], title: str, colour_of: dict[str, str], *, as_picture: bool) -> Spec:
    """Return a chart of shares that add up to 100 % for each kernel; rows have kernel, series and value."""
    order = [*colour_of]
    rows = [row | {"order": order.index(row["series"])} for row in rows]
    encoding: Spec = {
        "x": _kernels(),
        "y": {
            "field": "value", "type": "quantitative", "stack": "zero", "scale": {"domain": [0, 100]},
            "axis": {"title": title},
        },
        "color": colour_scale(colour_of, title="" if as_picture else None),
        "order": {"field": "order", "type": "quantitative"},
        "opacity": opacity(1.0),
        "tooltip": _tips(title),
    }  # fmt: skip
    return document({"bars": rows}, [layer("bars", {"type": "bar"}, **encoding)], as_picture=as_picture)


def lines(rows: list[Spec], x: str, title: str, *, as_picture: bool) -> Spec:
    """Return a chart with one line for each series over the number of engines; rows have series, x and value."""
    colour_of = hues([*dict.fromkeys(row["series"] for row in rows)])
    encoding: Spec = {
        "x": {"field": "x", "type": "quantitative", "axis": {"title": x, "values": [1, 2, 4, 6, 8, 12, 16]}},
        "y": _linear("value", title),
        "color": colour_scale(colour_of, title="" if as_picture else None),
        "opacity": opacity(1.0),
        "tooltip": [tip("series", "threads"), tip("x", x, ",.0f"), tip("value", title, ",.4~g")],
    }
    mark: Spec = {"type": "line", "point": {"size": 36}, "strokeWidth": 1.9}
    return document({"points": rows}, [layer("points", mark, **encoding)], as_picture=as_picture)


def _kernels() -> Spec:
    return {
        "field": "kernel", "type": "nominal", "sort": ORDER,
        "axis": {"title": None, "labelAngle": -35},
    }  # fmt: skip


def _linear(field: str, title: str) -> Spec:
    return {"field": field, "type": "quantitative", "scale": {"zero": True}, "axis": {"title": title}}


def _tips(title: str) -> list[Spec]:
    return [tip("kernel", "kernel"), tip("series", "of"), tip("value", title, ",.4~g")]
