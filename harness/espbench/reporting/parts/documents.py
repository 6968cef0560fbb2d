# SPDX-License-Identifier: Apache-2.0
"""Renders documents: templates, pages with the chart library, and pictures."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import vl_convert

from espbench.errors import EspbenchError
from espbench.paths import cache_dir, data_dir
from espbench.reporting.parts.chart_parts import Spec
from espbench.reporting.parts.figures import theme
from espbench.reporting.parts.labels import ABOUT_VIRTUAL
from espbench.results.durable import write_atomically
from espbench.this_machine import kept
from espbench.this_machine.private import foreign

_VEGALITE = "6.4"
_SEAL = "// SHA-256 of what follows: "
_CHART_LIBRARY = "window.vegaEmbed = vegaEmbed;"


def render(template: str, **context: Any) -> str:
    """Return a template of reports/, rendered with these variables; raise jinja2.UndefinedError if one is missing."""
    environment = _environment(data_dir("reports"), template.endswith(".html.j2"))
    return environment.get_template(template).render(**context)


@cache
def _environment(folder: Path, escapes: bool) -> jinja2.Environment:
    """Return the environment that compiles templates. It is cached with them, since compiling takes long."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=escapes,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["md"] = markdown_cell
    environment.globals["about_virtual"] = ABOUT_VIRTUAL
    return environment


def render_page(template: str, charts: dict[str, Spec], **context: Any) -> str:
    """Return a page that contains all that it needs: style, data, the chart library. `charts`: element id → chart.

    The context may name in `script` the file of reports/ that draws the charts (default: charts.js).
    """
    script = context.pop("script", "charts.js")
    return render(
        template,
        charts=charts,
        themes={"light": theme(dark=False), "dark": theme(dark=True)},
        library=_library(),
        script=_inline_script((data_dir("reports") / script).read_text(encoding="utf-8")),
        style=markupsafe.Markup((data_dir("reports") / "style.css").read_text(encoding="utf-8")),
        **context,
    )


def picture(document: Spec, title: str, subtitle: str) -> str:
    """Return a chart as SVG on white, with a heading, since it may be used without the page."""
    titled = {**document, "title": {"text": title, "subtitle": subtitle}}
    svg: str = vl_convert.vegalite_to_svg(titled, vl_version=_VEGALITE, config=theme(dark=False))
    return svg


def markdown_cell(text: object) -> str:
    """Return the text escaped so that Markdown shows it unchanged, also within a table."""
    escaped = "".join(f"\\{c}" if c in "\\`*_[]|#" else c for c in str(text))
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").split())


@cache
def _library() -> markupsafe.Markup:
    """Return the chart library. It is cached in a file, since bundling takes longer than the rest of a page."""
    file = cache_dir() / "report" / f"charts-{version('vl-convert-python')}-{_VEGALITE}.js"
    bundle = _kept(file)
    if bundle is None:
        bundle = vl_convert.javascript_bundle(_CHART_LIBRARY, vl_version=_VEGALITE)
        with contextlib.suppress(OSError, EspbenchError):  # without the cache espbench is only slower
            for folder in (cache_dir(), file.parent):
                kept.folder_of_ours(folder)
            write_atomically(file, f"{_SEAL}{_digest(bundle)}\n{bundle}")
    return _inline_script(bundle)


def _kept(file: Path) -> str | None:
    """Return the bundle from the cache, or None if it is missing, another user's, or changed.

    The checks are needed because the bundle will run in the reader's browser.
    """
    try:
        first, _, bundle = file.read_text(encoding="utf-8").partition("\n")
        why = foreign(file) or foreign(file.parent)
    except (OSError, ValueError):
        return None
    if not why and first == f"{_SEAL}{_digest(bundle)}":
        return bundle
    print(f"{file}: {why or 'it is not what was put there'}; made again", file=sys.stderr)
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _inline_script(source: str) -> markupsafe.Markup:
    """Return JavaScript in which nothing can end the script element around it."""
    return markupsafe.Markup(source.replace("</script", "<\\/script").replace("<!--", "<\\!--"))
