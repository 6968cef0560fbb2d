# SPDX-License-Identifier: Apache-2.0
"""Draws the charts of a device: its emulated throughput and CPU against frame size, with the published points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from espbench.claims import Judged, Points
from espbench.claims.model import Cpu, Throughput
from espbench.claims.points import MOST_LOSS, Point
from espbench.reporting.parts.chart_parts import Spec
from espbench.reporting.parts.figures import colours
from espbench.reporting.parts.wording import goal_name

Kind = Literal["mbps", "cpu"]
KINDS: dict[Kind, str] = {"mbps": "Throughput, both directions together", "cpu": "CPU at the throughput"}
_FIELDS: dict[Kind, tuple[str, str]] = {
    "mbps": ("Mbps (layer 2)", "Mbps"),
    "cpu": ("CPU of the busier gateway, %", "%"),
}
_BEHAVIOURS = ["plain", "null", "async", "polling", "dual-pass", "software", "lean", "lean-software"]
_INK = "#d6249f"  # of published points; no curve has it
_HEIGHT, _SVG_WIDTH = 300, 560
_SHORTEST_CURVE = 2


def figures(
    judged: Sequence[Judged], points: Points, duts: Sequence[str], device: str, *, as_picture: bool
) -> dict[Kind, Spec]:
    """Return the charts of a device that have something to show; as_picture: with a fixed width.

    duts: the device's profiles that were measured. The one with the device's own name, in lower case, is the device
    itself; the others are variants, whether or not it was measured. Only loss goals of the articles are shown.
    """
    shown = [
        p
        for p in points.points
        if p.dut in duts
        and p.direction == "both-ways"
        and p.suite in ("none", "null-null", "3des-sha1")
        and p.loss_goal <= MOST_LOSS
    ]
    itself = device.lower()
    rows = [_row(p, itself) for p in shown]
    order = {_series(p, itself): _BEHAVIOURS.index(p.behaviour) for p in shown}
    charts: dict[Kind, Spec] = {}
    for kind in KINDS:
        known = _loosest([row for row in rows if row[kind] is not None])
        if len({row["size"] for row in known}) >= _SHORTEST_CURVE:
            charts[kind] = _chart(kind, known, order, _published(judged, kind), as_picture=as_picture)
    return charts


def _series(p: Point, itself: str) -> str:
    """Return the name of a point's curve: its behaviour, with the DUT's name if it is a variant of the device."""
    return p.behaviour if p.dut == itself else f"{p.behaviour} ({p.dut})"


def _row(p: Point, itself: str) -> Spec:
    return {
        "series": _series(p, itself),
        "size": p.frame_size,
        "mbps": p.mbps,
        "cpu": p.cpu_pct,
        "limit": p.limit,
        "goal": p.loss_goal,
        "loss": goal_name(p.loss_goal),
    }


def _loosest(rows: list[Spec]) -> list[Spec]:
    """Return one row for each series and size: that of the loosest loss goal, which is the goal of the articles."""
    loosest = {(row["series"], row["size"]): row for row in sorted(rows, key=lambda row: row["goal"])}
    return list(loosest.values())


def _published(judged: Sequence[Judged], kind: Kind) -> list[Spec]:
    rows: list[Spec] = []
    for claim in (j.claim for j in judged if j.claim.qualifier in ("exact", "about")):
        match claim.ours:
            case Throughput() as m if kind == "mbps" and m.of.direction == "both-ways":
                sizes = [m.frame_size]
            case Cpu() as m if kind == "cpu":
                sizes = list(m.frame_sizes)
            case _:
                continue
        rows += [
            {"stack": claim.stack, "size": size, kind: claim.value, "says": claim.says} for size in sizes
        ]
    return rows


def _chart(
    kind: Kind, rows: list[Spec], order: Mapping[str, int], published: list[Spec], *, as_picture: bool
) -> Spec:
    """Return the chart of one quantity: a line for each series of rows, and the published points."""
    unit = _FIELDS[kind][1]
    sizes = sorted({row["size"] for row in rows + published})
    top = max([row[kind] for row in rows + published] + ([100] if kind == "cpu" else []))
    axes = {"x": _size_axis(sizes), "y": _axis(kind, top)}
    tips = [
        _tip("series", "emulated"),
        _tip("size", "frame size"),
        _tip(kind, unit, ",.1f"),
        _tip("limit", "limit"),
        _tip("loss", "loss goal"),
    ]
    texts = [
        _tip("stack", "published"),
        _tip("size", "frame size"),
        _tip(kind, unit, ",~f"),
        _tip("says", "claim"),
    ]
    layers: list[Spec] = [
        {
            "data": {"name": "points"},
            "mark": {"type": "line", "point": {"size": 36}, "strokeWidth": 1.9},
            "encoding": {**axes, "color": _colour(rows, order), "tooltip": tips},
        }
    ]
    if published:
        layers.append(
            {
                "data": {"name": "published"},
                "mark": {"type": "point", "filled": True, "size": 130, "color": _INK, "opacity": 0.9},
                "encoding": {**axes, "shape": _shape(), "tooltip": texts},
            }
        )
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",  # only a name; it is never loaded
        "width": _SVG_WIDTH if as_picture else "container",
        "height": _HEIGHT,
        "datasets": {"points": rows, "published": published},
        "layer": layers,
    }


def _size_axis(sizes: list[int]) -> Spec:
    return {
        "field": "size", "type": "ordinal", "sort": sizes,
        "scale": {"type": "point", "domain": sizes, "padding": 0.4},
        "axis": {"title": "Frame size, bytes with FCS", "labelAngle": 0, "grid": True},
    }  # fmt: skip


def _axis(kind: Kind, top: float) -> Spec:
    """Return the axis of the quantity, from 0 to a little more than its highest value."""
    return {
        "field": kind, "type": "quantitative", "scale": {"domain": [0, top * 1.06], "nice": False},
        "axis": {"title": _FIELDS[kind][0], "tickCount": 6, "format": ",~f"},
    }  # fmt: skip


def _colour(rows: list[Spec], order: Mapping[str, int]) -> Spec:
    """Return a colour for each series, and the legend in their order."""
    names = sorted({row["series"] for row in rows}, key=lambda series: (order[series], series))
    hues = colours(names)
    return {
        "field": "series", "type": "nominal",
        "scale": {"domain": names, "range": [hues[name] for name in names]},
        "legend": {"title": "Emulated", "orient": "top", "columns": 3, "labelLimit": 260},
    }  # fmt: skip


def _shape() -> Spec:
    """Return a mark for each published stack."""
    return {
        "field": "stack", "type": "nominal",
        "scale": {"range": ["diamond", "triangle-down", "cross", "square"]},
        "legend": {"title": "Published", "orient": "top", "symbolFillColor": _INK, "symbolStrokeColor": _INK},
    }  # fmt: skip


def _tip(field: str, title: str, pattern: str = "") -> Spec:
    return {"field": field, "title": title, **({"format": pattern} if pattern else {})}
