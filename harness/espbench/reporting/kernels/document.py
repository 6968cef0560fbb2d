# SPDX-License-Identifier: Apache-2.0
"""Writes the report of a run of kernels: report.html, report.md with its pictures, kernels.csv."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from espbench.reporting.kernels.sections import KernelSection, sections
from espbench.reporting.parts.documents import picture, render, render_page
from espbench.reporting.published import published_documents
from espbench.results import RunDirectory, kernels
from espbench.results.durable import write_atomically
from espbench.results.kernels import KernelResult


def is_of_kernels(run: RunDirectory) -> bool:
    """Return whether a run measured cipher kernels; such a run offers no traffic."""
    return bool(kernels.read(run.path))


def write(run: RunDirectory, formats: Collection[str]) -> dict[str, Path]:
    """Write the documents of these formats and return their paths by format."""
    results = kernels.read(run.path)
    written = {}
    if {"html", "md"} & set(formats):
        published_documents.write_documents(
            *published_documents.judged([run]), [run.path.name], run.path, formats
        )
        made = sections(results)
        context = {
            "manifest": run.manifest,
            "sections": made,
            "checked": _checked(results),
            "results": results,
        }
        if "html" in formats:
            charts = {c.anchor: c.draw(as_picture=False) for section in made for c in section.charts}
            written["html"] = run.path / "report.html"
            write_atomically(written["html"], render_page("kernels.html.j2", charts, **context))
        if "md" in formats:
            _write_pictures(run.path / "figures", made)
            written["md"] = run.path / "report.md"
            write_atomically(written["md"], render("kernels.md.j2", **context))
    if "csv" in formats:
        written["csv"] = run.path / kernels.TABLE
        write_atomically(written["csv"], kernels.table(results))
        run.rewrite_results()
    return written


def _write_pictures(directory: Path, made: Sequence[KernelSection]) -> None:
    directory.mkdir(exist_ok=True)
    for section in made:
        for chart in section.charts:
            svg = picture(chart.draw(as_picture=True), f"{section.title} · {chart.title}", section.about)
            write_atomically(directory / f"{chart.anchor}.svg", svg)


def _checked(results: Sequence[KernelResult]) -> int:
    return sum(r.checked for r in results)
