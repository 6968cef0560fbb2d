# SPDX-License-Identifier: Apache-2.0
"""Writes the documents of a comparison: comparison.html, comparison.md, comparison.json and figures/*.svg."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from espbench.comparison.sorting.model import Comparison
from espbench.reporting.compared.comparison_figures import DASHES, Kind, figures
from espbench.reporting.compared.comparison_view import ComparisonView, compared_view
from espbench.reporting.compared.fixed_load_tables import point_name
from espbench.reporting.parts.chart_parts import Spec
from espbench.reporting.parts.documents import picture, render, render_page
from espbench.results.durable import to_json, write_atomically

_KIND_TITLES: dict[Kind, str] = {
    "fps": "Throughput",
    "ratio": "Ratio to the reference",
    "cpu": "CPU per frame",
}


def write(comparison: Comparison, directory: Path) -> Path:
    """Write all documents into a directory, which is made if it does not exist; return the path of comparison.html.

    Raise EspbenchError if a file cannot be written, or if a figure is not finite.
    """
    directory.mkdir(parents=True, exist_ok=True)
    view = compared_view(comparison)
    assert view is not None
    json_text = to_json(asdict(comparison), indent=2) + "\n"
    write_atomically(directory / "comparison.json", json_text)
    write_pictures(directory / "figures", view)
    write_atomically(directory / "comparison.md", render("comparison.md.j2", **context(view)))
    page = render_page("comparison.html.j2", charts(view, legend=False), **context(view))
    write_atomically(directory / "comparison.html", page)
    return directory / "comparison.html"


def context(view: ComparisonView | None) -> dict[str, Any]:
    """Return the variables of both templates."""
    return {"compared": view, "point_name": point_name, "kind_titles": _KIND_TITLES, "dashes": DASHES}


def charts(view: ComparisonView, *, legend: bool) -> dict[str, Spec]:
    """Return all charts of all panels, by element id (which is also the name of the picture's file without .svg)."""
    arms = [arm.name for arm in view.comparison.arms]
    return {
        f"{panel.anchor}-{kind}": chart
        for panel in view.panels
        for kind, chart in figures(panel.panel, arms, view.style, legend=legend).items()
    }


def write_pictures(directory: Path, view: ComparisonView) -> None:
    """Write every chart as an SVG picture, which names the labels that apply to its figures."""
    directory.mkdir(exist_ok=True)
    documents = charts(view, legend=True)
    for panel in view.panels:
        for kind in panel.kinds:
            name = f"{panel.anchor}-{kind}"
            title = f"{_KIND_TITLES[kind]} · {panel.title}"
            svg = picture(documents[name], title, "; ".join([*panel.labels, view.title]))
            write_atomically(directory / f"{name}.svg", svg)
