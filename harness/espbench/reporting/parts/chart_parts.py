# SPDX-License-Identifier: Apache-2.0
"""Has the common parts of the charts in a run's report: colours, axes, tooltips, and a legend that fades curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from espbench.terms import Status

Spec = dict[str, Any]  # a piece of a Vega-Lite document, or a row it draws

# Colour-blind readers can distinguish these colours, on white and on black.
PALETTE = ("#2f7ebc", "#e07b39", "#3a9a5c", "#c8434f", "#8b6fc0", "#9a6b4f", "#d067a8", "#2aa5a5", "#a39a2a")
GREY = "#8a8f98"
MARKS: dict[Status, str] = {
    "VIOLATED": "‼",
    "INVALID": "✕",
    "UNRESOLVABLE": "?",
    "BELOW_MINIMUM": "↓",
    "LOWER_BOUND": "↑",
}
MARKS_IN_WORDS = "✕ INVALID, ? UNRESOLVABLE, ↓ BELOW_MINIMUM, ‼ VIOLATED"
# The mark of a bound is a bar at the bound, with an arrow towards the true value.
ARROW_UP = "M-0.8,0.1L0.8,0.1L0.8,-0.12L0.26,-0.12L0.26,-1.1L0.7,-1.1L0,-2L-0.7,-1.1L-0.26,-1.1L-0.26,-0.12L-0.8,-0.12Z"
_HEIGHT = 300
_PICTURE_WIDTH = 640


def document(datasets: dict[str, list[Spec]], layers: Sequence[Spec], *, as_picture: bool) -> Spec:
    """Return a whole chart: as a picture it has a fixed width, on a page it fills the width of its element."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",  # only a name; it is never loaded
        "width": _PICTURE_WIDTH if as_picture else "container",
        "height": _HEIGHT,
        "params": [{"name": "chosen", "value": ""}],
        "datasets": datasets,
        "layer": list(layers),
    }


def size_axis(sizes: Sequence[str]) -> Spec:
    """Return frame sizes as an x axis, evenly apart, in the order given."""
    return {
        "field": "size",
        "type": "ordinal",
        "sort": list(sizes),
        "scale": {"type": "point", "domain": list(sizes), "padding": 0.4},
        "axis": {"title": "Frame size, bytes with FCS", "labelAngle": 0, "grid": True},
    }


def size_name(size: int | str) -> str:
    """Return a frame size as the name of a line."""
    return f"{size} B" if isinstance(size, int) else size


def size_colours(sizes: Sequence[int | str]) -> dict[str, str]:
    """Return one colour for each frame size, the same in every panel of a section."""
    return {size_name(size): PALETTE[i % len(PALETTE)] for i, size in enumerate(sizes)}


def colour_scale(colour_of: dict[str, str], *, title: str | None, field: str = "series") -> Spec:
    """Return the colours of the series; title: that of the chart's own legend, None if the page has a legend."""
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": list(colour_of), "range": list(colour_of.values())},
        "legend": None if title is None else {"title": title},
    }


def layer(name: str, mark: Spec, **encoding: Any) -> Spec:
    """Return one layer over a named dataset."""
    return {"data": {"name": name}, "mark": mark, "encoding": encoding}


def tip(field: str, title: str, number_format: str = "") -> Spec:
    """Return a line of a tooltip."""
    if number_format:
        return {"field": field, "type": "quantitative", "title": title, "format": number_format}
    return {"field": field, "type": "nominal", "title": title}


def opacity(full: float) -> Spec:
    """Return full opacity for the series chosen in the page's legend, and for all while none is chosen."""
    chosen = {"test": "chosen == '' || datum.series == chosen", "value": full}
    return {"condition": chosen, "value": 0.1}


def log_domain(values: Sequence[float]) -> tuple[float, float]:
    """Return a logarithmic domain with room for marks below the lowest figure; both ends are at labelled steps."""
    steps = decades(min(values) * 0.1, max(values) * 10)
    low = max(step for step in steps if step <= min(values) * 0.45)
    high = min(step for step in steps if step >= max(values) * 1.1)
    return low, high


def log_axis(field: str, title: str, domain: tuple[float, float]) -> Spec:
    """Return a logarithmic y axis over a `log_domain`."""
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": list(domain), "nice": False},
        "axis": {"title": title, "format": ",~f", "values": decades(*domain), "labelOverlap": False},
    }


def decades(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, 20 … within the domain: the labels of a logarithmic axis."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    return [step for step in steps if low <= step <= high]
