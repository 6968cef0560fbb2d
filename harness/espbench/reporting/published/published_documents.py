# SPDX-License-Identifier: Apache-2.0
"""Writes the comparison of published with emulated figures: published.html, .md and .json, and figures/*.svg."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from espbench.claims import Judged, Points, claims, judge_all
from espbench.claims.other_tests import bus_counts, floods, in_clear, lifetimes
from espbench.claims.points import points
from espbench.comparison.sorting.samples import names_of
from espbench.errors import UsageError
from espbench.reporting.parts.documents import picture, render, render_page
from espbench.reporting.published.equal_conditions import refuse_unlike
from espbench.reporting.published.own_profiles import in_words, of_others, own_profiles, without
from espbench.reporting.published.published_figures import KINDS, figures
from espbench.reporting.published.published_view import (
    STANDS_IN,
    TITLE,
    PublishedView,
    core_label,
    published_view,
)
from espbench.results import RunDirectory, accelerator, kernels
from espbench.results.durable import to_json, write_atomically


def is_about(run: RunDirectory) -> bool:
    """Return whether there are published claims about a DUT of this run."""
    claimed = {claim.dut() for claim in claims()} - {""}
    return any(dut.partition("-")[0] in claimed for dut in _duts(run))


def _duts(run: RunDirectory) -> list[str]:
    """Return the DUTs of a run's cases, or of its plan if it has no cases (for instance, only accelerator tests)."""
    manifest = run.manifest
    return list(
        dict.fromkeys([case.dut for case in manifest.cases] or manifest.conditions.get("profiles", {}))
    )


def judged(runs: Sequence[RunDirectory]) -> tuple[list[Judged], Points]:
    """Return every claim, judged by the runs' measurements, and these measurements.

    The order of the runs changes nothing: where one figure of several counts, it is that of the run that was started
    last. DUTs with a profile of the user's under a shipped name are left out (own_profiles.py). Raise UsageError if a
    run is named twice, if there are no claims about its DUTs, or if two runs have one DUT, or cipher kernels, under
    unlike conditions.
    """
    for run in runs:
        if not is_about(run):
            duts = ", ".join(_duts(run)) or "none"
            known = ", ".join(sorted({claim.dut() for claim in claims()} - {""}))
            raise UsageError(
                f"{run.path}: nothing published to hold it against\n"
                f"  expected: a DUT that reports/published has claims about: {known}\n"
                f"  got: {duts}\n"
                "  what to do: compare runs of those devices, such as those of plans/powerquicc.yaml"
            )
    named = dict(zip(names_of(runs), runs, strict=True))
    refuse_unlike(
        {name: run.manifest for name, run in named.items()},
        [name for name, run in named.items() if (run.path / kernels.FILE).exists()],
    )
    in_order = sorted(named.items(), key=lambda item: (item[1].manifest.started, str(item[1].path.resolve())))
    measured = _measured(dict(in_order))
    return judge_all(claims(), measured), measured


def _measured(named: Mapping[str, RunDirectory]) -> Points:
    """Return the measurements of these runs, without those of DUTs with a profile of the user's own."""
    own = {name: own_profiles(run.manifest) for name, run in named.items()}
    every = [(run, without(run.manifest, own[name]), own[name]) for name, run in named.items()]
    findings = [(manifest, of_others(run.findings(), out)) for run, manifest, out in every]
    measured = points(
        [(manifest, of_others(run.outcomes(), out)) for run, manifest, out in every],
        [result for run, _, out in every for result in of_others(accelerator.read(run.path), out)],
        [result for run, _, out in every for result in of_others(kernels.read(run.path), out)],
        bus_counts(findings),
        floods(findings),
        [result for run, _, out in every for result in of_others(accelerator.read_public_key(run.path), out)],
        lifetimes(findings),
        in_clear(findings),
    )
    return replace(measured, left_out=[text for name in named for text in in_words(name, own[name])])


def write(runs: Sequence[RunDirectory], directory: Path) -> Path:
    """Write all documents into a directory, which is made if necessary; return the path of published.html."""
    judgements, measured = judged(runs)
    directory.mkdir(parents=True, exist_ok=True)
    write_atomically(
        directory / "published.json",
        to_json({"claims": _plain(judgements, measured), "left_out": [*measured.left_out]}, indent=2) + "\n",
    )
    write_documents(judgements, measured, [_named(run) for run in runs], directory, ("md", "html"))
    return directory / "published.html"


def _named(run: RunDirectory) -> str:
    """Return the run's name; if some of its cases have no result yet, also how many have one."""
    cases = [entry.case for entry in run.manifest.cases]
    finished = {result.case for result in run.results()}
    done = sum(case in finished for case in cases)
    return (
        run.path.name if done == len(cases) else f"{run.path.name} (unfinished: {done} of {len(cases)} cases)"
    )


def write_documents(
    judgements: Sequence[Judged],
    measured: Points,
    runs: Sequence[str],
    directory: Path,
    formats: Collection[str],
) -> None:
    """Write the page (html), and the same as Markdown with its pictures (md), as far as formats names them."""
    view = published_view(judgements, measured, runs)
    context = {"published": view, "kinds": KINDS, "title": TITLE, "stands_in_note": STANDS_IN}
    charts = {
        f"{section.anchor}-{kind}": chart
        for section in view.sections
        if section.duts
        for kind, chart in figures(
            _of(judgements, section.device), measured, section.duts, section.device, as_picture=False
        ).items()
    }
    context["charts_of"] = {
        section.anchor: [kind for kind in KINDS if f"{section.anchor}-{kind}" in charts]
        for section in view.sections
    }
    if "md" in formats:
        _write_pictures(directory / "figures", judgements, measured, view)
        write_atomically(directory / "published.md", render("published.md.j2", **context))
    if "html" in formats:
        write_atomically(directory / "published.html", render_page("published.html.j2", charts, **context))


def _of(judgements: Sequence[Judged], device: str) -> list[Judged]:
    return [j for j in judgements if j.claim.device == device]


def _write_pictures(
    directory: Path, judgements: Sequence[Judged], measured: Points, view: PublishedView
) -> None:
    directory.mkdir(exist_ok=True)
    for section in view.sections:
        if not section.duts:
            continue
        subtitle = "; ".join(["emulated, in virtual time", *section.labels, *view.labels])
        of_device = _of(judgements, section.device)
        charts = figures(of_device, measured, section.duts, section.device, as_picture=True)
        for kind, chart in charts.items():
            svg = picture(chart, f"{section.title}: {KINDS[kind]}", subtitle)
            write_atomically(directory / f"{section.anchor}-{kind}.svg", svg)


def _plain(judgements: Sequence[Judged], measured: Points) -> list[dict[str, Any]]:
    """Return each claim with its figures, unrounded."""
    return [
        {
            **j.claim.model_dump(mode="json", exclude={"ours"}),
            "measure": j.claim.ours.model_dump(mode="json") if j.claim.ours else None,
            "core": core_label(j.claim.device, measured),
            "ours": {
                "low": _finite(j.ours.low),
                "high": _finite(j.ours.high),
                "holds": j.ours.holds,
                "text": j.ours.text,
                "loss_goal": j.ours.goal,
                "short": j.ours.is_short,
            },
            "judgement": j.word,
            "why": j.why,
        }
        for j in judgements
    ]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
