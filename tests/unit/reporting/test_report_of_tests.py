# SPDX-License-Identifier: Apache-2.0
"""The tests beside throughput in the report: each in its standard's form, an unknown one whole, none left out."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.comparison import compare
from espbench.errors import UsageError
from espbench.reporting.findings import finding_tables
from espbench.reporting.findings.finding_tables import Column, figure_text
from espbench.reporting.one_run.view import Report, view
from espbench.reporting.parts.trial_digest import TrialDigest, digest
from espbench.reporting.parts.wording import count, figure
from espbench.reporting.report import write_report
from espbench.results import RunDirectory
from espbench.sentences import Code
from espbench.terms import Finding, Quantity, Remark
from support.synthetic import findings as synthetic_findings
from support.synthetic import run as synthetic_run

SIZES = (64, 512, 1280)
SHAPE = synthetic_run.Shape(
    suites=("null-null", "3des-sha1", "aes128-sha1"),
    sizes=SIZES,
    directions=("one-way", "both-ways"),
    tests=synthetic_findings.TESTS,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run of every kind of test, with its documents."""
    built = synthetic_run.build(tmp_path_factory.mktemp("runs"), SHAPE)
    write_report(built)
    return built


@pytest.fixture(scope="module")
def report(run: RunDirectory) -> Report:
    return viewed(run, _findings(run.path))


@pytest.fixture(scope="module")
def html(run: RunDirectory) -> str:
    text = (run.path / "report.html").read_text(encoding="utf-8")
    return re.sub(r"<script.*?</script>", "", text, flags=re.S)


@pytest.fixture(scope="module")
def markdown(run: RunDirectory) -> str:
    return (run.path / "report.md").read_text(encoding="utf-8")


@cache
def _digested(path: Path) -> TrialDigest:
    run = RunDirectory.open(path)
    return digest(run.trials(), sum(run.trial_counts().values()))


def viewed(run: RunDirectory, findings: list[Finding]) -> Report:
    return view(run.manifest, run.outcomes(), _digested(run.path), findings)


def part_of(report: Report, test: str, direction: str = "one-way") -> Any:
    (section,) = [s for s in report.tests if s.test == test]
    (part,) = [p for p in section.parts if direction in p.title]
    return part


def cells(part: Any, row: Any) -> dict[str, str]:
    named = [", ".join(filter(None, (c.title, c.unit))) for c in part.table.columns]
    assert len(set(named)) == len(named), "columns that a reader could not tell apart"
    return dict(zip(named, row.figures, strict=True))


@cache
def _findings(path: Path) -> list[Finding]:
    return RunDirectory.open(path).findings()


def finding(run: RunDirectory, test: str, suite: str, size: int, direction: str = "one-way") -> Finding:
    (one,) = [
        f
        for f in _findings(run.path)
        if (f.test, f.suite, f.frame_size, f.direction) == (test, suite, size, direction)
    ]
    return one


def row_of(part: Any, name: str, size: int) -> Any:
    (row,) = [r for r in part.table.rows if (r.name, r.size, r.starts_case) == (name, str(size), True)]
    return row


def named(f: Finding) -> dict[str, Quantity]:
    return {q.name: q for q in f.quantities}


def test_every_finding_has_a_row_and_its_words_in_both_documents(
    run: RunDirectory, report: Report, html: str, markdown: str
) -> None:
    rows = [r for s in report.tests for p in s.parts for r in p.table.rows if r.starts_case]
    findings = _findings(run.path)
    assert len(rows) == len(findings)
    for text in (html, markdown.replace("\\_", "_")):
        assert all(f.words in text for f in findings)
    assert {r.status for r in rows} == {"OK", "INVALID", "UNRESOLVABLE"}


def test_latency_has_the_tagged_frames_and_the_percentiles_of_all(run: RunDirectory, report: Report) -> None:
    part, f = part_of(report, "latency"), finding(run, "latency", "aes128-sha1", 512)
    quantities = named(f)
    tagged, least, greatest = (quantities[f"latency, {n}"] for n in ("tagged frame", "least", "greatest"))
    row = cells(part, row_of(part, "xfrm · aes128-sha1", 512))
    assert row == {
        "Load, frames/s": count(f.load_fps),
        "Tagged frame, µs, mean": figure(tagged.value),
        "Tagged frame, µs, least": figure(tagged.minimum),
        "Tagged frame, µs, greatest": figure(tagged.maximum),
        "Tagged frame, µs, st. dev.": figure(tagged.stdev),
        "Tagged frame, µs, n": "4",
        "All frames, µs, least": figure(least.minimum),
        **{f"All frames, µs, {p}": figure(quantities[f"latency, {p}"].value)
           for p in ("mean", "p50", "p90", "p99", "p99.9")},
        "All frames, µs, greatest": figure(greatest.maximum),
    }  # fmt: skip
    assert greatest.maximum != greatest.value, "the greatest of all trials is not the mean of their greatest"


def test_the_loss_curve_is_drawn_from_0_to_100_per_cent_as_the_standard_says(
    run: RunDirectory, report: Report
) -> None:
    """26.3: both axes begin at 0 and end at 100; one line a frame size, each through its own points."""
    part = part_of(report, "frame_loss")
    charts = {p.anchor.rsplit("-", 1)[1]: p.page for p in part.figure.panels if "aes128-sha1" in p.title}
    for chart in charts.values():
        for layer in chart["layer"]:
            assert layer["encoding"]["x"]["scale"]["domain"] == [0, 100]
            assert layer["encoding"]["y"]["scale"]["domain"] == [0, 100]
    f = finding(run, "frame_loss", "aes128-sha1", 512)
    drawn = [r for r in charts["loss"]["datasets"]["points"] if r["series"] == "512 B"]
    assert [(r["pct"], r["loss"]) for r in reversed(drawn)] == [
        (p["intended_pct_of_line_rate"], p["frame_loss_pct"]) for p in f.curve
    ]
    line = [r for r in charts["forwarded"]["datasets"]["lines"] if r["series"] == "512 B"]
    assert [r["offered"] for r in line] == sorted(r["offered"] for r in line)
    assert charts["forwarded"]["datasets"]["equality"][1] == {"offered": 100, "forwarded": 100}
    lossless = [r for r in line if r["loss"] == 0]
    assert lossless
    assert all(r["forwarded"] == pytest.approx(r["offered"], rel=0.002) for r in lossless)


def test_a_load_that_could_not_be_measured_is_a_gap_and_a_mark(run: RunDirectory, report: Report) -> None:
    """Never a point, least of all a lossless one."""
    part = part_of(report, "frame_loss")
    (chart,) = [p.page for p in part.figure.panels if "aes128-sha1" in p.title and p.anchor.endswith("-loss")]
    here = {
        name: [r for r in rows if r["series"] == "1280 B" and r["pct"] == pytest.approx(90)]
        for name, rows in chart["datasets"].items()
    }
    assert [(r["loss"], r["forwarded"]) for r in here["lines"]] == [(None, None)]
    assert here["points"] == []
    assert [r["mark"] for r in here["marks"]] == ["✕"]
    (points,) = [table for name, table in part.curves if name == "xfrm · aes128-sha1"]
    invalid = [r for r in points.rows if r[-1] == "INVALID"]
    assert [r[points.head.index("Frame loss, %")] for r in invalid] == ["–"]


def test_where_the_line_rate_is_far_away_loads_are_of_the_highest_one_and_it_is_said(
    run: RunDirectory,
) -> None:
    """A curve that ends at 6 % of the line rate would be a stroke at the left edge."""
    low = [
        f.model_copy(update={"curve": [{**p, "intended_pct_of_line_rate": p["intended_pct_of_line_rate"] * 0.06}
                                       for p in f.curve]})
        for f in _findings(run.path) if f.test == "frame_loss"
    ]  # fmt: skip
    part = part_of(viewed(run, low), "frame_loss")
    chart = part.figure.panels[0].page
    assert max(r["offered"] for r in chart["datasets"]["points"]) == 100
    assert "% of the highest load" in chart["layer"][0]["encoding"]["x"]["axis"]["title"]
    assert "6.00 % of the line rate" in part.figure.caption
    unknown = [
        f.model_copy(update={"curve": [{**p, "intended_pct_of_line_rate": None} for p in f.curve]})
        for f in low
    ]
    part = part_of(viewed(run, unknown), "frame_loss")
    assert max(r["offered"] for r in part.figure.panels[0].page["datasets"]["points"]) == 100
    assert "is not known" in part.figure.caption


def test_back_to_back_frames_with_both_buffer_times(run: RunDirectory, report: Report) -> None:
    part, f = part_of(report, "back_to_back"), finding(run, "back_to_back", "aes128-sha1", 64)
    burst, quantities = f.quantities[0], named(f)
    assert cells(part, row_of(part, "xfrm · aes128-sha1", 64)) == {
        "Rate of bursts, frames/s": count(f.load_fps),
        "Burst, frames, mean": figure(burst.value),
        "Burst, frames, least": count(burst.minimum),
        "Burst, frames, greatest": count(burst.maximum),
        "Burst, frames, st. dev.": figure(burst.stdev),
        "Burst, frames, searches": "3",
        "Buffer, implied, µs": figure(quantities["implied buffer time"].value),
        "Buffer, corrected, µs": figure(quantities["corrected buffer time"].value),
        "Buffer, corrected, frames": figure(quantities["corrected buffer"].value),
    }
    not_searched = row_of(part_of(report, "back_to_back"), "plain", 1280)
    assert not_searched.telling.startswith("Not searched: ")
    assert not_searched.rfc2544 == "–", "what was not measured was not too short either"


def test_a_burst_is_a_bound_whatever_its_columns_are_called(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text for people decides nothing: a sub-heading may be reworded."""

    def reworded(title: str, unit: str = "", **form: bool) -> Column:
        return Column(title, f"another word for {unit}", **form)

    bounded = [
        f.model_copy(update={"warnings": [Remark.of(Code.NO_BURST_LOST)]})
        for f in _findings(run.path)
        if f.test == "back_to_back" and f.quantities
    ]
    before = viewed(run, bounded).tests[0].parts[0].table
    monkeypatch.setattr(finding_tables, "Column", reworded)
    after = viewed(run, bounded).tests[0].parts[0].table
    assert [c.unit for c in after.columns] == [f"another word for {c.unit}" for c in before.columns]
    assert [row.figures for row in after.rows] == [row.figures for row in before.rows]
    assert any(cell.startswith("≥") for cell in after.rows[0].figures[1:5])


@pytest.mark.parametrize(
    ("ends", "least", "deviation"), [((100.0, 100.0), "≥ 100", "–"), ((60.0, 100.0), "60", "–")]
)
def test_a_burst_whose_end_was_not_found_is_a_lower_bound(
    run: RunDirectory, ends: tuple[float, float], least: str, deviation: str
) -> None:
    """It is shown as one in both tables, even if every result has the remark; the least may still be a figure."""
    remarks = [Remark.of(Code.NO_BURST_LOST)]
    bounded = []
    for f in _findings(run.path):
        if f.test == "back_to_back" and f.quantities:
            burst = f.quantities[0].model_copy(update={"value": 80.0, "minimum": ends[0], "maximum": ends[1]})
            update = {"quantities": [burst, *f.quantities[1:]], "warnings": remarks}
            bounded.append(f.model_copy(update=update))
    report = viewed(run, bounded)
    row = report.tests[0].parts[0].table.rows[0]
    shown = {k: v.replace("\N{NO-BREAK SPACE}", " ") for k, v in cells(report.tests[0].parts[0], row).items()}
    of_burst = [shown[f"Burst, frames, {name}"] for name in ("mean", "least", "greatest", "st. dev.")]
    assert of_burst == ["≥ 80.00", least, "≥ 100", deviation]
    assert all(v.startswith("≥ ") for k, v in shown.items() if k.startswith("Buffer"))
    assert shown["Burst, frames, searches"] == "3"
    every = [c for a in report.test_answers for r in a.rows for c in r.cells]
    assert {c.text for c in every if c.text} == {"≥\N{NO-BREAK SPACE}80"}
    assert {flag.word for c in every for flag in c.flags} == {"longest burst tried"}
    faster = Remark.of(Code.AT_BOUND_BUFFER, fps=1e4, goal=0.0)
    both = [f.model_copy(update={"warnings": [*remarks, faster]}) for f in bounded]
    part = viewed(run, both).tests[0].parts[0]
    shown = cells(part, part.table.rows[0])
    assert not shown["Buffer, corrected, µs"].startswith("≥"), "with more throughput the buffer is smaller"


@pytest.mark.parametrize("test", ["system_recovery", "flood"])
def test_a_throughput_that_is_a_bound_has_the_sign_of_one(run: RunDirectory, test: str) -> None:
    bound = [Remark.of(Code.AT_BOUND, fps=1e4, goal=0.0)]
    of_test = [f.model_copy(update={"warnings": bound}) for f in _findings(run.path) if f.test == test]
    part = viewed(run, of_test).tests[0].parts[0]
    shown = [cells(part, row)["Throughput, frames/s"] for row in part.table.rows]
    assert any(text.startswith("≥") for text in shown)
    assert {text for text in shown if not text.startswith("≥")} <= {"–"}


def test_system_recovery_names_both_loads_and_the_throughput(run: RunDirectory, report: Report) -> None:
    part = part_of(report, "system_recovery")
    f = finding(run, "system_recovery", "aes128-sha1", 512)
    row = cells(part, row_of(part, "xfrm · aes128-sha1", 512))
    throughput = next(
        o.throughput_fps for o in run.outcomes()
        if (o.suite, o.frame_size, o.direction, o.loss_goal) == ("aes128-sha1", 512, "one-way", 0.0)
    )  # fmt: skip
    assert throughput is not None
    assert row["Throughput, frames/s"] == count(throughput)
    assert row["Overload, frames/s"] == count(1.1 * throughput)
    assert row["Reduced load, frames/s"] == count(0.55 * throughput)
    assert row["Recovery time, s, mean"] == figure(f.quantities[0].value)
    unresolved = row_of(part, "xfrm · null-null", 1280)
    assert (unresolved.status, unresolved.rfc2544) == ("UNRESOLVABLE", "–")
    assert "it had not recovered when the trial ended" in unresolved.telling


def test_flood_stands_beside_the_throughput_with_the_ratio(run: RunDirectory, report: Report) -> None:
    part, f = part_of(report, "flood"), finding(run, "flood", "aes128-sha1", 64)
    row = cells(part, row_of(part, "xfrm · aes128-sha1", 64))
    quantities = named(f)
    forwarding, throughput = quantities["forwarding rate under flood"].value, quantities["throughput"].value
    assert forwarding
    assert throughput
    assert row["Forwarding rate, / throughput"] == f"{forwarding / throughput:.3f} ×"
    assert row["Throughput, frames/s"] == count(throughput)
    (chart,) = [p.page for p in part.figure.panels if p.title == "xfrm"]
    drawn = {
        r["what"]: r["fps"]
        for r in chart["datasets"]["points"]
        if (r["series"], r["size"]) == ("aes128-sha1", "64")
    }
    assert drawn == {"under flood": forwarding, "throughput": throughput}


def test_an_unknown_kind_of_test_is_shown_whole(run: RunDirectory, report: Report, markdown: str) -> None:
    """One row a quantity, its curve as a table, and in the answer a table without frame sizes."""
    part = part_of(report, synthetic_findings.SETUP_RATE)
    rows = [cells(part, r) for r in part.table.rows if r.name == "xfrm · 3des-sha1"]
    assert [(r["Figure"], r["Value, mean"], r["Unit"], r["Measured, n"]) for r in rows] == [
        ("tunnel set-up rate", "41.50", "tunnels/s", "100"),
        ("phase 1", "17.25", "ms", "100"),
        ("phase 2", "4.125", "ms", "100"),
        ("RSA-2048 signatures of the DUT alone", "612", "1/s", "1"),
    ]
    (_, points), *_ = part.curves
    assert points.head == ["Frame, bytes", "Tunnels", "Setup, s", "Home CPU, %", "Note"]
    assert points.rows[1] == ["64", "10", "0.241", "95.80", "–"]
    (answer,) = [a for a in report.test_answers if not a.sizes]
    assert [(r.name, [c.text for c in r.cells]) for r in answer.rows] == [
        (f"xfrm · {suite}", ["41.50"]) for suite in SHAPE.suites
    ]
    assert "| Tunnel set-up rate, tunnels/s | xfrm · 3des-sha1 | proven | **41.50** |" in markdown


def test_the_curve_of_an_unknown_kind_is_its_second_column_against_its_first(
    run: RunDirectory, report: Report
) -> None:
    """Nothing is drawn where these are no numbers, or not the same in all curves."""
    panels = part_of(report, synthetic_findings.SETUP_RATE).figure.panels
    assert [p.title for p in panels] == [f"xfrm · {suite}" for suite in SHAPE.suites]
    rows = panels[0].page["datasets"]["points"]
    assert [(r["x"], r["y"]) for r in rows] == [(1, 0.024), (10, 0.241), (50, 1.205)]
    assert panels[0].page["layer"][0]["encoding"]["x"]["axis"]["title"] == "Tunnels"
    findings = [f for f in _findings(run.path) if f.test == synthetic_findings.SETUP_RATE]
    for curve in ([{"who": "home", "s": 1.0}] * 2, [{"n": 1, "s": 2.0}], [{"n": 1}, {"n": 2}], []):
        odd = viewed(run, [findings[0].model_copy(update={"curve": curve})])
        assert part_of(odd, synthetic_findings.SETUP_RATE).figure is None


def test_an_unknown_kind_of_few_figures_has_a_column_for_each(run: RunDirectory) -> None:
    """Single measurements at many sizes: a row a case, as a table by frame size wants it."""
    attack = [
        f.model_copy(
            update={
                "test": "attack", "curve": [], "load_fps": 100.0,
                "quantities": [Quantity(name="rate kept", unit="%", value=97.5),
                               Quantity(key="rate", name="rate, west-east", label="rate",
                                        way="west-east", unit="frames/s", value=50.0)],
            }
        )
        for f in _findings(run.path) if f.test == "flood"
    ]  # fmt: skip
    part = part_of(viewed(run, attack), "attack")
    assert all(row.starts_case for row in part.table.rows)
    assert cells(part, part.table.rows[0]) == {"Load, frames/s": "100", "Rate kept, %": "97.50"}
    assert part.directions.rows[0] == ["plain", "64", "west → east", "50.00"]


def test_the_top_counts_all_results_and_names_all_tests(run: RunDirectory, report: Report, html: str) -> None:
    results = run.results()
    assert report.result_count == len(results) == sum(n for _, n in report.verdicts)
    assert report.unfinished == 0
    assert report.subject.startswith(
        "Throughput, latency, frame loss rate, back-to-back frames, system recovery, forwarding under flood and "
        "tunnel setup rate of synthetic with 2 stacks"
    )
    assert f"<b>{len(results)}</b>results of {len(run.manifest.cases)} cases" in html
    early = viewed(run, [f for f in _findings(run.path) if f.test != "flood"])
    assert early.unfinished == sum(c.test == "flood" for c in run.manifest.cases)


def test_the_answer_has_the_figure_each_test_is_about(run: RunDirectory, report: Report) -> None:
    (answer,) = [a for a in report.test_answers if a.sizes and "one-way" in a.title]
    shown = {(r.anchor, r.name): [c.text or c.status or c.instead for c in r.cells] for r in answer.rows}
    for test in synthetic_findings.SETTINGS:
        for suite in SHAPE.suites:
            findings = [finding(run, test, suite, size) for size in SIZES]
            assert shown[f"test-{test.replace('_', '-')}", f"xfrm · {suite}"] == [
                figure_text(f.quantities[0]) if f.quantities else f.status for f in findings
            ]
    assert shown["test-back-to-back", "plain"][2] == "not searched"


def test_each_direction_is_shown_by_itself(run: RunDirectory, report: Report) -> None:
    """Latency of its tagged frames, its forwarding rate, its loss; nothing of the kind where one was loaded alone."""
    latency = part_of(report, "latency", "both-ways").directions
    f = finding(run, "latency", "aes128-sha1", 512, "both-ways")
    of_case = [r for r in latency.rows if r[:2] == ["xfrm · aes128-sha1", "512"]]
    assert [r[2] for r in of_case] == ["west → east", "east → west"]
    for row, way in zip(of_case, ("west-east", "east-west"), strict=True):
        q = named(f)[f"latency, tagged frame, {way}"]
        assert row[3:8] == [figure(q.value), figure(q.minimum), figure(q.maximum), figure(q.stdev), "4"]
        assert row[8:] == [figure(named(f)[f"latency, {p}, {way}"].value) for p in ("p50", "p99")]
    assert latency.head[8:] == ["Latency, p50, µs", "Latency, p99, µs"]
    recovery = part_of(report, "system_recovery", "both-ways").directions
    assert recovery.head[3] == "System recovery time, s"
    assert of_case[0][3] != of_case[1][3]
    assert part_of(report, "flood", "both-ways").directions.head[3] == "Forwarding rate, frames/s"
    (_, points), *_ = part_of(report, "frame_loss", "both-ways").curves
    assert {"Loss west → east, %", "Loss east → west, %"} <= set(points.head)
    loss = part_of(report, "frame_loss", "both-ways").directions
    assert loss.head[2:] == ["Direction", "Frame loss at the highest load, %"]
    at_most = finding(run, "frame_loss", "aes128-sha1", 512, "both-ways").curve[0]
    assert [r[2:] for r in loss.rows if r[:2] == ["xfrm · aes128-sha1", "512"]] == [
        [way.replace("-", " → "), figure(at_most[f"frame_loss_pct {way}"])] for way in synthetic_findings.WAYS
    ]
    for test in synthetic_findings.SETTINGS:
        assert part_of(report, test, "one-way").directions.rows == []


def test_what_is_short_or_unproven_says_so_wherever_it_is_shown(
    run: RunDirectory, report: Report, html: str
) -> None:
    """At the head, at the answers, at each table, and in each picture."""
    label = "shorter than the standard asks: not RFC 2544"
    for test in synthetic_findings.SETTINGS:
        for part in (part_of(report, test), part_of(report, test, "both-ways")):
            assert part.labels == ([label] if test != "back_to_back" else part.labels)
    pictures = [p for p in (run.path / "figures").iterdir() if p.name.startswith("test-")]
    unlabelled = [p for p in pictures if label not in p.read_text(encoding="utf-8")]
    assert len(pictures) == 2 * (4 + 2 * 4 + 2) + 3
    assert len(unlabelled) == 3
    assert all("tunnel-setup-rate" in p.name for p in unlabelled)
    assert part_of(report, synthetic_findings.SETUP_RATE).labels == [], "no clause of RFC 2544 is about it"
    in_clear = [f.model_copy(update={"encryption": "not proven"}) for f in _findings(run.path)]
    unproven = viewed(run, in_clear)
    assert unproven.unproven == sum(bool(f.quantities) for f in in_clear)
    assert all("encryption not proven" in a.labels for a in unproven.test_answers)
    rows = [r for s in unproven.tests for p in s.parts for r in p.table.rows]
    assert {r.encryption for r in rows} == {"encryption not proven"}
    assert {r[-1] for r in unproven.proof_of_tests.rows} <= {
        "encryption not proven",
        "no VALID trial with traffic",
    }


def test_the_proof_sums_the_valid_trials_of_a_test(run: RunDirectory, report: Report) -> None:
    rows = {
        (r[0], r[1], r[2], r[4].replace("\N{NO-BREAK SPACE}", " ")): r for r in report.proof_of_tests.rows
    }
    row = rows["Latency", "xfrm · null-null", "IPv4, one-way", "Home → Office"]
    trials = [
        t for t in run.trials()
        if t.case.startswith("latency.xfrm.null-null.") and ".one-way." in t.case and t.validity == "VALID"
    ]  # fmt: skip
    sent = sum(t.tx_frames for t in trials)
    assert row[3:4] + row[5:] == [str(len(trials)), *[f"{sent:,}"] * 4, "proven: all four equal"]
    loss = rows["Frame loss rate", "xfrm · null-null", "IPv4, both-ways", "Office → Home"]
    sent, received = (int(loss[i].replace(",", "")) for i in (5, 8))
    assert loss[9] == f"proven: {sent - received:,} missing"
    assert sent > received


def test_a_run_of_findings_alone_is_whole(tmp_path: Path) -> None:
    """No throughput, no empty sections of it, and nothing said of final trials."""
    shape = synthetic_run.Shape(tests=("frame_loss",), sizes=(64,), suites=("aes128-sha1",))
    built = synthetic_run.build(tmp_path, shape)
    write_report(built)
    for name in ("report.html", "report.md"):
        text = (built.path / name).read_text(encoding="utf-8")
        assert "No case has ended" not in text
        assert "Shorter than the standard asks: not RFC 2544." in text
        assert "Final trials were" not in text
        assert "Throughput of" not in text
    assert "2 OK" in (built.path / "report.md").read_text()


def test_two_tests_of_one_kind_are_two_sections(run: RunDirectory) -> None:
    """`latency-2` is at another load: its figures are no repeats of the first one's."""
    first = [f for f in _findings(run.path) if f.test == "latency"]
    second = [f.model_copy(update={"test": "latency-2"}) for f in first]
    report = viewed(run, [*first, *second])
    assert [(s.title, s.anchor) for s in report.tests] == [
        ("Latency", "test-latency"),
        ("Latency (2)", "test-latency-2"),
    ]
    anchors = [
        p.anchor
        for s in report.tests
        for part in s.parts
        for p in (part.figure.panels if part.figure else ())
    ]
    anchors += [part.anchor for s in report.tests for part in s.parts] + [s.anchor for s in report.tests]
    assert len(anchors) == len(set(anchors))


def test_tests_of_one_kind_are_told_apart_by_what_the_plan_asks_of_each(run: RunDirectory) -> None:
    """`Reset (2)` says nothing; what is alike in both says nothing either."""
    flood = [f for f in _findings(run.path) if f.test == "flood"]
    resets = [f.model_copy(update={"test": test}) for test in ("reset", "reset-2") for f in flood]
    asked = [
        {"settle": "5 s", "trial": f"{s} s", "what": what, "rates": [1, s]}
        for what, s in (("daemon", 12), ("power", 30))
    ]
    manifest = run.manifest.model_copy(
        update={
            "cases": [
                c.model_copy(update={"test": t})
                for t in ("reset", "reset-2") for c in run.manifest.cases if c.test == "flood"
            ],
            "conditions": {"tests": [{"reset": asked[0]}, {"throughput": {}}, {"reset": asked[1]}]},
        }
    )  # fmt: skip
    report = view(manifest, [], _digested(run.path), resets)
    assert [s.title for s in report.tests] == ["Reset (what: daemon)", "Reset (what: power)"]
    assert {r.what for a in report.test_answers for r in a.rows} == {
        "Forwarding rate under flood, frames/s (what: daemon)",
        "Forwarding rate under flood, frames/s (what: power)",
    }
    assert report.subject.startswith("Reset of synthetic with")


def test_comparing_runs_leaves_the_other_tests_out_and_says_so(run: RunDirectory, tmp_path: Path) -> None:
    """They are not missing outcomes, and their settings may differ."""
    comparison = compare([run], by="suite")
    (said,) = [text for text in comparison.warnings if "left out" in text]
    assert said.startswith(
        "synthetic example: only throughputs are compared; latency, frame loss, back to back, "
    )
    assert not any("no outcome" in text for text in comparison.warnings)
    only = synthetic_run.build(tmp_path, synthetic_run.Shape(tests=("flood",), sizes=(64,)))
    with pytest.raises(UsageError, match="only throughputs are compared\n  got: flood"):
        compare([only], by="suite")


def test_other_tests_settings_do_not_make_runs_unequal(tmp_path: Path) -> None:
    runs = []
    shape = synthetic_run.Shape(stacks=("xfrm",), tests=("throughput", "flood"), sizes=(64,), repeats=3)
    for trial in ("10 s", "60 s"):
        built = synthetic_run.build(tmp_path / trial, shape)
        tests = [{"throughput": {"trial": "2 s"}}, {"flood": {"trial": trial}}]
        built.save_manifest(built.manifest.model_copy(update={"conditions": {"tests": tests}, "name": trial}))
        runs.append(built)
    assert compare(runs, by="run").differences == []
    tests[0]["throughput"]["trial"] = "5 s"
    runs[1].save_manifest(runs[1].manifest.model_copy(update={"conditions": {"tests": tests}}))
    with pytest.raises(UsageError, match=r"tests\.throughput\.trial"):
        compare(runs, by="run")


@given(st.floats(1e-12, 1e12))
def test_a_small_figure_is_never_rounded_to_nothing(value: float) -> None:
    assert float(figure(value).replace(",", "")) == pytest.approx(value, rel=1e-3)
    assert math.isclose(float(figure(-value).replace(",", "")), -float(figure(value).replace(",", "")))
