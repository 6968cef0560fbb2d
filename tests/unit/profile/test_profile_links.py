# SPDX-License-Identifier: Apache-2.0
"""The report of a profiled run and its flame graph link each other, in their folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from espbench.profile import flame
from espbench.profile.attribution import Profile
from espbench.profile.symbols import Function
from espbench.reporting.report import write_report
from espbench.terms import BaseLoad
from support.synthetic.gate import World


@pytest.mark.parametrize(("ns", "what"), [("0.5", "instructions"), (None, "CPU time")])
def test_a_report_and_its_flame_graph_link_each_other(tmp_path: Path, ns: str | None, what: str) -> None:
    """Both kinds of time have one; a report of a run without a flame graph has no such link."""
    world = World(ns_per_instruction=ns)
    case = world.entries[0].case
    loads = {case: [BaseLoad(goal=1.0, load_fps=1000.0, duration_s=0.1, floor_fps=1000.0)]}
    run = world.check(tmp_path, loads)
    write_report(run, ("html", "md"))
    report, text = run.path / "report.html", run.path / "report.md"
    assert "profile.html" not in report.read_text() + text.read_text()
    profile = Profile(case, "home", 1, {(Function("esp_output"), "softirq"): 5}, {("esp_output",): 5})
    run.flame_graph.write_text(flame.page("a run", [profile]))
    write_report(run, ("html", "md"))
    assert (
        f'Where the {what} of these trials went, by function: <a href="profile.html">' in report.read_text()
    )
    assert (
        f"Where the {what} of these trials went, by function: [the flame graph](profile.html)"
        in text.read_text()
    )
    (back,) = re.findall(r'href="(.*?)"', run.flame_graph.read_text())
    assert (run.path / back) == report
