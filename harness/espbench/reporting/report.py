# SPDX-License-Identifier: Apache-2.0
"""Writes the report of a run directory: report.html, report.md, results.csv, figures/*.svg and other formats."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from espbench.comparison import of_run
from espbench.comparison.sorting.model import Comparison
from espbench.errors import UsageError
from espbench.reporting.compared import comparison_documents as side_by_side
from espbench.reporting.compared import operations_documents
from espbench.reporting.compared.comparison_view import ComparisonView, compared_view
from espbench.reporting.findings.finding_panels import Panel
from espbench.reporting.kernels import document as of_kernels
from espbench.reporting.one_run.reading import READING
from espbench.reporting.one_run.subject import case_summary, case_title
from espbench.reporting.one_run.view import Report, Section, suite_colours, view
from espbench.reporting.parts import printing
from espbench.reporting.parts.documents import markdown_cell, picture, render, render_page
from espbench.reporting.parts.figures import Unit, panel, theory_is_off_scale
from espbench.reporting.parts.trial_digest import digest
from espbench.reporting.published import published_documents
from espbench.reporting.published.published_view import accelerator_table, public_key_table
from espbench.results import RunDirectory, accelerator
from espbench.results.durable import write_atomically
from espbench.results.exports import junit_file, wide_file
from espbench.terms import PAIRED

__all__ = ["ALL_FORMATS", "DEFAULT_FORMATS", "markdown_cell", "picture_name", "write_report"]

DEFAULT_FORMATS = ("html", "md", "csv")
ALL_FORMATS = (*DEFAULT_FORMATS, "pdf", "junit", "csv-wide")
_OF_CASES = ("junit", "csv-wide")

DAMAGED = "trials.jsonl is damaged, its trials from there on are left out"

_UNITS: tuple[Unit, ...] = ("fps", "mbps")


def write_report(
    run: RunDirectory, formats: Collection[str] = DEFAULT_FORMATS, comparison: Comparison | None = None
) -> Path:
    """Write the documents of a run, finished or not, and return the path of the first format in ALL_FORMATS' order.

    If published documents have figures of the run's devices, published.html and published.md are written too, and for
    a PDF report.html, from which it is printed. The flame graph of a run of `espbench profile` is linked, if it is
    there. If the plan compares, the comparison is near the top of the report; `comparison` replaces the run's own.
    The measurements are only read, so the run may still be in progress. Raise EspbenchError if a file is damaged or
    cannot be written, MachineLacks for a PDF without Chromium, and UsageError if the run does not have the format. The
    chart renderer needs about 200 MB of memory, so `espbench report` runs this in a process of its own.
    """
    wanted = {*formats, *(["html"] if "pdf" in formats else [])}
    if "pdf" in wanted:
        printing.browser()  # refuses before anything is written
    if of_kernels.is_of_kernels(run):
        if of_cases := [name for name in _OF_CASES if name in wanted]:
            raise UsageError(
                f"--format {of_cases[0]}: expected a run with cases, got one of cipher kernels; "
                "its figures are in kernels.csv (--format csv)"
            )
        written = of_kernels.write(run, wanted)
    else:
        _refuse_wide_without_cases(run, wanted)
        written = _of_cases(run, wanted, comparison)
    if "pdf" in wanted:
        written["pdf"] = run.path / "report.pdf"
        printing.print_page(written["html"], written["pdf"])
    return next(written[name] for name in ALL_FORMATS if name in formats)


def _refuse_wide_without_cases(run: RunDirectory, formats: Collection[str]) -> None:
    """Raise UsageError for a wide table of a run without cases: it has a row for each case, so it would be empty."""
    if "csv-wide" in formats and not run.manifest.cases:
        raise UsageError(
            "--format csv-wide: expected a run with cases, got one of driver-level tests alone; its figures are in "
            f"{accelerator.FILE} and {accelerator.PUBLIC_KEY_FILE}, and in junit.xml (--format junit)"
        )


def _of_cases(run: RunDirectory, formats: Collection[str], comparison: Comparison | None) -> dict[str, Path]:
    """Write the documents of a run with cases and return their paths by format."""
    outcomes = run.outcomes()
    every = run.findings()
    findings = [f for f in every if f.test != PAIRED]
    compared_at_loads = [f for f in every if f.test == PAIRED]  # the comparison shows these
    written = {}
    if {"html", "md"} & set(formats):
        finals = {(o.case, o.final_trial) for o in outcomes}
        trials = digest(run.trials(), sum(run.trial_counts().values()), keep=finals)
        damaged = [f"{DAMAGED}: {damage}" for damage in run.damage()]
        manifest = run.manifest.model_copy(update={"warnings": [*damaged, *run.manifest.warnings]})
        report = view(manifest, outcomes, trials, findings, compared_at_loads)
        compared = compared_view(comparison or of_run(run))
        colour_of = suite_colours(run.manifest)
        is_published = published_documents.is_about(run)
        if is_published:
            published_documents.write_documents(
                *published_documents.judged([run]), [run.path.name], run.path, formats
            )
        context = _context(report, compared) | {
            "is_published": is_published,
            "is_profiled": run.flame_graph.is_file(),
            "accelerator": accelerator_table(accelerator.read(run.path)),
            "public_keys": public_key_table(accelerator.read_public_key(run.path)),
            "operations": operations_documents.beside_each_other(outcomes),
        }
        if "html" in formats:
            written["html"] = run.path / "report.html"
            write_atomically(written["html"], _html(report, colour_of, compared, context))
        if "md" in formats:
            _write_pictures(run.path / "figures", report, colour_of)
            if compared:
                side_by_side.write_pictures(run.path / "figures", compared)
            written["md"] = run.path / "report.md"
            write_atomically(written["md"], render("report.md.j2", **context))
    if "csv" in formats:
        run.rewrite_results()
        written["csv"] = run.path / "results.csv"
    if "junit" in formats:
        written["junit"] = run.path / "junit.xml"
        text = junit_file.junit_text(
            run.manifest,
            run.results(),
            str(run.path),
            accelerator.read(run.path),
            accelerator.read_public_key(run.path),
        )
        write_atomically(written["junit"], text)
    if "csv-wide" in formats:
        written["csv-wide"] = run.path / "results-wide.csv"
        write_atomically(written["csv-wide"], wide_file.csv_text(run.results()))
    return written


def _html(
    report: Report, colour_of: dict[str, str], compared: ComparisonView | None, context: dict[str, Any]
) -> str:
    charts = side_by_side.charts(compared, legend=False) if compared else {}
    charts |= {
        f"{section.anchor}-{unit}": panel(
            section.group, unit, report.manifest.line_rate_bps, colour_of, legend=False
        )
        for section in report.sections
        if section.has_figure
        for unit in _UNITS
    }
    charts |= {chart.anchor: chart.page for chart, _, _ in _charts_of_tests(report)}
    return render_page("report.html.j2", charts, colour_of=colour_of, **context)


def _write_pictures(directory: Path, report: Report, colour_of: dict[str, str]) -> None:
    directory.mkdir(exist_ok=True)
    for section in report.sections:
        for unit in _UNITS if section.has_figure else ():
            document = panel(section.group, unit, report.manifest.line_rate_bps, colour_of, legend=True)
            left_out = unit == "mbps" and theory_is_off_scale(section.group, report.manifest.line_rate_bps)
            theory = "the line rate lies far above" if left_out else "thin grey line: theoretical (line rate)"
            if not report.manifest.line_rate_bps:
                theory = "the line rate is not known"
            svg = picture(document, section.title, "; ".join([*section.labels, theory]))
            write_atomically(directory / picture_name(section, unit), svg)
    for chart, heading, labels in _charts_of_tests(report):
        subtitle = "; ".join(filter(None, [*labels, chart.subtitle]))
        svg = picture(chart.picture, heading, subtitle)
        write_atomically(directory / f"{chart.anchor}.svg", svg)


def _charts_of_tests(report: Report) -> Iterator[tuple[Panel, str, list[str]]]:
    """Yield every chart of the tests other than throughput, with the heading and the labels of its picture."""
    for section in report.tests:
        for part in section.parts:
            for chart in part.figure.panels if part.figure else ():
                yield chart, f"{section.title} · {part.title} · {chart.title}", part.labels


def picture_name(section: Section, unit: Unit) -> str:
    """Return the file name of a panel under figures/."""
    return f"{section.anchor}-{unit}.svg"


def _context(report: Report, compared: ComparisonView | None) -> dict[str, Any]:
    """Return the variables of both templates."""
    return {
        "report": report,
        "manifest": report.manifest,
        **side_by_side.context(compared),
        "case_title": partial(
            case_title,
            names=report.names if report.several_tests else None,
            with_dut=len({case.dut for case in report.manifest.cases}) > 1,
        ),
        "case_summary": case_summary,
        "picture_name": picture_name,
        "reading": READING,
        "units": _UNITS,
    }
