# SPDX-License-Identifier: Apache-2.0
"""A run directory's report: report.html, report.md, results.csv and figures/*.svg, written into it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import vl_convert

from espbench.paths import data_dir
from espbench.reporting.figures import Unit, colours, panel, theme, theory_is_off_scale
from espbench.reporting.reading import READING
from espbench.reporting.trial_digest import digest
from espbench.reporting.view import Report, Section, case_summary, case_title, view
from espbench.results import RunDirectory
from espbench.results.durable import write_atomically

ALL_FORMATS = frozenset({"html", "md", "csv"})

_VEGALITE = "6.4"
_UNITS: tuple[Unit, ...] = ("fps", "mbps")
_CHART_LIBRARY = "window.vegaEmbed = vegaEmbed;"


def write_report(run: RunDirectory, formats: Collection[str] = ALL_FORMATS) -> Path:
    """Write the documents of a run, finished or not, and return the path of the first of html, md, csv.

    Reads the run only, so a run in progress may be reported on. EspbenchError where a file is
    damaged or the disk refuses. The chart renderer holds some 200 MB: `espbench report` runs this
    in a process of its own.
    """
    outcomes = run.outcomes()
    written = []
    if {"html", "md"} & set(formats):
        finals = {(o.case, o.final_trial) for o in outcomes}
        trials = digest(run.trials(), sum(run.trial_counts().values()), keep=finals)
        report = view(run.manifest, outcomes, trials)
        colour_of = colours(list(dict.fromkeys(case.suite for case in run.manifest.cases)))
        if "html" in formats:
            written.append(run.path / "report.html")
            write_atomically(written[-1], _html(report, colour_of))
        if "md" in formats:
            _write_pictures(run.path / "figures", report, colour_of)
            written.append(run.path / "report.md")
            write_atomically(written[-1], _render("report.md.j2", report))
    if "csv" in formats:
        run.save_outcomes(outcomes)
        written.append(run.path / "results.csv")
    return written[0]


def _html(report: Report, colour_of: dict[str, str]) -> str:
    charts = {
        f"{section.anchor}-{unit}": panel(
            section.group, unit, report.manifest.line_rate_bps, colour_of, legend=False
        )
        for section in report.sections
        if section.has_figure
        for unit in _UNITS
    }
    return _render(
        "report.html.j2",
        report,
        charts=charts,
        themes={"light": theme(dark=False), "dark": theme(dark=True)},
        colour_of=colour_of,
        library=_inline_script(vl_convert.javascript_bundle(_CHART_LIBRARY, vl_version=_VEGALITE)),
        script=_inline_script((data_dir("reports") / "charts.js").read_text(encoding="utf-8")),
        style=markupsafe.Markup((data_dir("reports") / "style.css").read_text(encoding="utf-8")),
    )


def _write_pictures(directory: Path, report: Report, colour_of: dict[str, str]) -> None:
    directory.mkdir(exist_ok=True)
    for section in report.sections:
        for unit in _UNITS if section.has_figure else ():
            document = panel(section.group, unit, report.manifest.line_rate_bps, colour_of, legend=True)
            left_out = unit == "mbps" and theory_is_off_scale(section.group, report.manifest.line_rate_bps)
            theory = "the line rate lies far above" if left_out else "thin grey line: theoretical (line rate)"
            subtitle = "; ".join([*section.labels, theory])
            document["title"] = {"text": section.title, "subtitle": subtitle}
            svg = vl_convert.vegalite_to_svg(document, vl_version=_VEGALITE, config=theme(dark=False))
            write_atomically(directory / picture_name(section, unit), svg)


def picture_name(section: Section, unit: Unit) -> str:
    """The file name of a panel under figures/."""
    return f"{section.anchor}-{unit}.svg"


def _render(template: str, report: Report, **more: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_dir("reports")),
        autoescape=template.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["md"] = markdown_cell
    environment.globals.update(
        case_title=case_title,
        case_summary=case_summary,
        picture_name=picture_name,
        reading=READING,
        units=_UNITS,
    )
    return environment.get_template(template).render(report=report, manifest=report.manifest, **more)


def markdown_cell(text: object) -> str:
    """Text that Markdown shows as it is, also within a table."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]|#" else c for c in str(text))
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").split())


def _inline_script(source: str) -> markupsafe.Markup:
    """JavaScript that cannot close the element it stands in."""
    return markupsafe.Markup(source.replace("</script", "<\\/script").replace("<!--", "<\\!--"))
