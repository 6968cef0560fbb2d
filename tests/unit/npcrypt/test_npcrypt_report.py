# SPDX-License-Identifier: Apache-2.0
"""The report of kernels, and the files it is made from."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError, UsageError
from espbench.plan import resolve
from espbench.plan.reading.reader import read_text
from espbench.procedures.boards.cipher_kernels import measure
from espbench.reporting.kernels.sections import sections
from espbench.reporting.kernels.select import usual_compiler
from espbench.reporting.report import write_report
from espbench.results import FORMAT, RunDirectory, kernels
from espbench.terms import Manifest
from espbench.this_machine.registry import Registry
from support.plans import kernels_text
from support.synthetic.kernels import everything, made, on_board


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    manifest = Manifest(
        format=FORMAT, espbench="0", name="np", started="2026-01-01T00:00:00+00:00", platform="ixp",
        platform_reason="the plan asks for ixp2800", topology="no-network", line_rate_bps=0.0, cases=[],
        tools={"compiler gcc": "gcc 1 <2>"}, conditions={"profiles": {"ixp2800": {}}},
    )  # fmt: skip
    return RunDirectory.create(tmp_path, "np", manifest, "name: np\n")


def test_every_figure_of_the_paper_has_its_section() -> None:
    shown = sections([r for r in everything() if not r.dut.startswith("ixp2800-")])
    assert [s.anchor for s in shown] == [
        "kernels-throughput", "kernels-levels", "kernels-storage", "kernels-static", "kernels-dynamic", "kernels-time",
        "kernels-cycles", "kernels-compilers", "kernels-scaling", "kernels-bursts", "kernels-ports",
    ]  # fmt: skip
    anchors = [c.anchor for s in shown for c in s.charts]
    assert len(anchors) == len(set(anchors)) == 29
    for section in shown:
        assert section.table.rows
        assert all(len(row) == len(section.table.head) for row in section.table.rows)
        for chart in section.charts:
            spec = chart.draw(as_picture=False)
            assert all(rows for rows in spec["datasets"].values()), chart.anchor
            assert {row["series"] for rows in spec["datasets"].values() for row in rows} <= set(
                section.legend
            )


def test_figures_are_of_the_papers_compilation_where_as_many_are_of_others() -> None:
    """plans/npcryptbench-compilers.yaml has each kernel once for each compiler and option, -O0 first."""
    compared = [made(compiler=c, option=o) for c in ("clang-14", "gcc") for o in ("O0", "O1", "O2")]
    assert usual_compiler(compared) == ("gcc", "O2")
    assert usual_compiler([r for r in compared if r.compiler != "gcc"]) == ("clang-14", "O2")
    assert usual_compiler([made(compiler="clang", option="O1"), made(option="O1")]) == ("clang", "O1")


def test_each_section_names_the_compiler_and_option_of_its_figures() -> None:
    for section in sections(everything()):
        assert "gcc -O2" in section.about or {"Compiler", "Option"} <= set(section.table.head), section.anchor
    few = sections([made(option=option) for option in ("O0", "O1")])
    assert few[0].about.endswith("Compiled by gcc -O1.")
    assert [row[3:5] for row in few[-1].table.rows[::3]] == [["gcc", "-O0"], ["gcc", "-O1"]]


def test_one_thread_has_its_figures_where_many_were_compiled_in_another_way() -> None:
    one = [made(compiler="clang", option=option) for option in ("O0", "O1")]
    by_anchor = {s.anchor: s for s in sections([*one, made(engines=8, threads=8)])}
    assert by_anchor["kernels-throughput"].about.endswith("Compiled by clang -O1.")
    assert "that of clang -O1" in by_anchor["kernels-compilers"].about


def test_what_was_not_measured_has_no_section() -> None:
    assert [s.anchor for s in sections([made()])] == [
        "kernels-throughput", "kernels-storage", "kernels-static", "kernels-dynamic", "kernels-time",
        "kernels-cycles", "kernels-ports",
    ]  # fmt: skip
    assert sections([]) == []
    assert [s.anchor for s in sections([on_board()])] == ["kernels-throughput"]


def test_a_board_is_beside_the_engines_where_both_have_figures() -> None:
    """Tables of kinds of instructions and of memories leave it out: its core tells nothing of them."""
    by_anchor = {s.anchor: s for s in sections([made(), on_board()])}
    assert [row[0] for row in by_anchor["kernels-throughput"].table.rows] == ["ixp2800", "mpc8548e"]
    assert by_anchor["kernels-throughput"].table.rows[1][-1] == "–"
    assert {row[0] for row in by_anchor["kernels-dynamic"].table.rows} == {"ixp2800"}
    (_, row) = csv.DictReader(io.StringIO(kernels.table([made(), on_board()])))
    assert (row["instructions_per_byte"], row["instructions"], row["run_load"]) == ("47.695", "", "")


def test_a_run_of_kernels_has_a_report_of_its_own(run: RunDirectory) -> None:
    with run:
        kernels.save(run.path, everything())
        assert write_report(run) == run.path / "report.html"
    page = (run.path / "report.html").read_text()
    assert "Threads and engines" in page
    assert "gcc 1 &lt;2&gt;" in page  # as every text that a program said
    assert "{{" not in page.split("<script")[0]
    text = (run.path / "report.md").read_text()
    assert all(f"figures/{c.anchor}.svg" in text for s in sections(everything()) for c in s.charts)
    assert all(
        (run.path / "figures" / f"{c.anchor}.svg").exists() for s in sections(everything()) for c in s.charts
    )
    published = (run.path / "published.md").read_text()
    assert "IXP2800" in published
    assert "Predicted before the run" in published


def test_the_table_has_every_figure(run: RunDirectory) -> None:
    with run:
        kernels.save(run.path, [made(), made(level=1, cycles=10_240)])
    rows = [*csv.DictReader(io.StringIO((run.path / "kernels.csv").read_text()))]
    assert [row["level"] for row in rows] == ["0", "1"]
    assert float(rows[1]["mbps"]) == pytest.approx(2 * float(rows[0]["mbps"]), rel=1e-4)
    assert rows[0]["run_complex"] == "10"
    assert kernels.read(run.path) == [made(), made(level=1, cycles=10_240)]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry("kernels", tmp_path / "state") as made_here:
        yield made_here


def test_a_damaged_line_is_named(run: RunDirectory) -> None:
    with run:
        kernels.save(run.path, [made()])
        (run.path / kernels.FILE).write_text(json.dumps({"dut": "ixp2800"}) + "\n")
    with pytest.raises(EspbenchError, match=r"kernels.jsonl:1: damaged"):
        kernels.read(run.path)


def test_what_a_run_has_is_not_measured_again(
    run: RunDirectory, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run measures the rest, in the plan's order."""
    text = kernels_text(tests="[cipher_kernels: {kernels: [aes, des, rc5], levels: [0]}]")
    asked: list[str] = []

    def run_one(configuration: Any, *_: object) -> Any:
        asked.append(configuration.kernel)
        return made(kernel=configuration.kernel)

    monkeypatch.setattr("espbench.procedures.boards.cipher_kernels.on_engines", run_one)
    monkeypatch.setattr("espbench.npcrypt.compilers.version", lambda name: "gcc 1 <2>")
    notes: list[str] = []
    with run:
        kernels.save(run.path, [made(kernel="des")])
        results = measure(resolve(read_text(text, "plan.yaml", "plan"), None), run, notes.append, 2, registry)
    assert sorted(asked) == ["aes", "rc5"]
    assert [r.kernel for r in results] == [r.kernel for r in kernels.read(run.path)] == ["aes", "des", "rc5"]
    assert run.manifest.tools["compiler gcc"] == "gcc 1 <2>"
    assert re.fullmatch(r"sha256 [0-9a-f]{16}", run.manifest.tools[kernels.SOURCES])
    assert kernels.made_by(run.manifest.tools) == run.manifest.tools


def test_a_run_does_not_go_on_with_other_sources(
    run: RunDirectory, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("espbench.npcrypt.compilers.version", lambda name: "gcc 1 <2>")
    text = kernels_text(tests="[cipher_kernels: {kernels: [aes], levels: [0]}]")
    with run:
        run.update_manifest(tools={kernels.SOURCES: "sha256 0"})
        with pytest.raises(UsageError, match=rf"{kernels.SOURCES} as it was begun with, sha256 0\n"):
            measure(resolve(read_text(text, "plan.yaml", "plan"), None), run, print, 1, registry)


def test_a_run_does_not_go_on_with_another_compiler(
    run: RunDirectory, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures would be of two compilers' code; the fixture's run was begun with `gcc 1 <2>`."""
    text = kernels_text(tests="[cipher_kernels: {kernels: [aes], levels: [0]}]")
    monkeypatch.setattr("espbench.npcrypt.compilers.version", lambda name: f"{name} 2")
    with run, pytest.raises(UsageError, match=r"compiler gcc as it was begun with, gcc 1 <2>\n  got: gcc 2"):
        measure(resolve(read_text(text, "plan.yaml", "plan"), None), run, print, 1, registry)
