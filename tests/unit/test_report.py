# SPDX-License-Identifier: Apache-2.0
"""The report's text: what it must say, in which words, and what it must never contain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import synthetic_run

from espbench.reporting.figures import colours, groups_of, panel
from espbench.reporting.report import markdown_cell, write_report
from espbench.reporting.trial_digest import digest
from espbench.reporting.view import view
from espbench.reporting.wording import goal_name, number
from espbench.results import RunDirectory
from espbench.terms import Outcome

ODD = 'x|y <i>*z*</i> & "q"'
SHAPE = synthetic_run.Shape(sizes=(64, 128, 512, 1280, 1424), dut=ODD)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """The synthetic run with its report written."""
    built = synthetic_run.build(tmp_path_factory.mktemp("runs"), SHAPE)
    write_report(built)
    return built


@pytest.fixture(scope="module")
def html(run: RunDirectory) -> str:
    """Its HTML without the scripts."""
    text = (run.path / "report.html").read_text(encoding="utf-8")
    return re.sub(r"<script.*?</script>", "", text, flags=re.S)


@pytest.fixture(scope="module")
def markdown(run: RunDirectory) -> str:
    """Its Markdown."""
    return (run.path / "report.md").read_text(encoding="utf-8")


def test_short_trials_are_announced_loudly_with_the_clauses_not_kept(html: str, markdown: str) -> None:
    """Before any figure, in both documents."""
    for text, first_table in ((html, "Every case of this figure"), (markdown, "| Suite |")):
        assert "24: final trials of 10 s, not 60 s" in text
        assert text.index("Short trials: not RFC 2544.") < text.index(first_table)


def test_a_run_of_full_length_is_not_called_short(tmp_path: Path) -> None:
    """60 s final trials get no such banner and `yes` in the table."""
    shape = synthetic_run.Shape(stacks=("plain",), sizes=(64,), final_trial_s=60.0)
    write_report(built := synthetic_run.build(tmp_path, shape), {"md"})
    text = (built.path / "report.md").read_text()
    assert "Short trials" not in text
    assert "| yes | baseline |" in text


def test_every_status_is_counted_and_explained(html: str, markdown: str) -> None:
    """The verdict line counts each, and the words of each failure stand in full."""
    for text in (html, markdown.replace("\\_", "_")):
        for words in (
            "zero-loss has no result: 5 of 5 trials of at least 200,000 frames lost about 1 frame in 200,000",
            "host stall: 41 of 41 lost frames were due while the host stood still",
            "a trial of 52,000 frames cannot tell 0.001 % from zero",
        ):
            assert words in text
    assert re.search(r'class="INVALID"><b>2</b>INVALID', html)
    assert "2 INVALID" in markdown


def test_every_outcome_has_a_row_with_its_figures(run: RunDirectory, markdown: str) -> None:
    """No result is left out, and the figures are those of results.csv."""
    rows = [line for line in markdown.splitlines() if re.match(r"\| \S+ \| \d+ \| \S+ % \|", line)]
    outcomes = run.outcomes()
    assert len(rows) == len(outcomes)
    for row, outcome in zip(rows, outcomes, strict=True):
        figure = f"| {outcome.throughput_fps:,.0f} |" if outcome.throughput_fps is not None else "| – |"
        assert figure in row


def test_labels_of_the_user_are_text_not_markup(html: str, markdown: str) -> None:
    """A DUT's label may hold anything; it is shown as it is, and does nothing."""
    assert "<i>*z*</i>" not in html
    assert "x|y &lt;i&gt;*z*&lt;/i&gt; &amp; &#34;q&#34;" in html
    assert 'x\\|y &lt;i>\\*z\\*&lt;/i> &amp; "q"' in markdown
    assert markdown_cell("a|b\n<c>") == "a\\|b &lt;c>"


def test_the_page_names_no_address_to_fetch_from(run: RunDirectory) -> None:
    """No source, link or style points out of the file, and the browser is told to forbid it."""
    text = (run.path / "report.html").read_text(encoding="utf-8")
    page = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.findall(r"""(?:src|href|url\()\s*=?\s*["']?(?:https?:)?//""", page)
    assert not re.findall(r"<(?:img|iframe|object|embed|link(?! rel=\"icon\" href=\"data:))", page)
    assert "default-src 'none'" in page


def test_two_reports_of_one_run_are_the_same_bytes(run: RunDirectory) -> None:
    """Nothing in a report depends on when or how often it was written."""
    names = [path for path in run.path.rglob("*") if path.suffix in (".html", ".md", ".svg", ".csv")]
    before = {path: path.read_bytes() for path in names}
    assert len(before) == 3 + 4
    write_report(RunDirectory.open(run.path))
    assert {path: path.read_bytes() for path in names} == before


def test_a_run_without_results_has_a_report_that_says_so(tmp_path: Path) -> None:
    """Interrupted in its first case: no chart, no crash."""
    manifest = synthetic_run.manifest(synthetic_run.cases_of(SHAPE), "early")
    with RunDirectory.create(tmp_path, "early", manifest, "") as early:
        assert "No case has ended yet" in write_report(early).read_text(encoding="utf-8")
        assert "25 cases not finished" in (early.path / "report.html").read_text(encoding="utf-8")


def test_boxes_whose_counters_cannot_be_read_are_marked_in_every_row(run: RunDirectory) -> None:
    """`encryption not proven`, not an empty cell."""
    external = [o.model_copy(update={"encryption": "not proven"}) for o in run.outcomes()]
    report = view(run.manifest, external, digest([], 0))
    assert {row.encryption for section in report.sections for row in section.rows} == {
        "encryption not proven"
    }


def test_warnings_are_numbered_and_flagged_where_they_apply(run: RunDirectory) -> None:
    """A row points to the warning's text by number and by the words before its colon."""
    outcomes = run.outcomes()
    warned = outcomes[0].model_copy(update={"warnings": ["tester-limited: within 10 % of the ceiling"]})
    report = view(run.manifest, [warned, *outcomes[1:]], digest([], 0))
    (note,) = report.sections[0].rows[0].notes
    assert (note.short, note.number, note.outcomes) == ("tester-limited", 3, 1)
    assert report.sections[0].rows[1].notes == []
    assert report.notes[2] == note


def test_what_has_no_figure_is_no_point_and_breaks_its_line(run: RunDirectory) -> None:
    """INVALID at 1280 B: a mark, a gap, and nothing in between."""
    group = next(g for g in groups_of(run.outcomes()) if g.stack == "xfrm")
    chart = panel(group, "fps", 1e9, colours(group.series), legend=False)
    here = {
        name: [row for row in rows if row.get("series") == "3des-sha1" and row["size"] == "1280"]
        for name, rows in chart["datasets"].items()
    }
    assert here["points"] == []
    assert [row["fps"] for row in here["lines"]] == [None, None]
    assert [row["mark"] for row in here["marks"]] == ["✕", "✕"]


def test_the_theoretical_line_is_of_both_directions_where_rates_are(run: RunDirectory) -> None:
    """RFC 2544 26.1's line: 1,488,095 frames/s at 64 B and 1 Gbit/s, twice that for both ways."""
    theory = {}
    for direction in ("one-way", "both-ways"):
        outcomes = [o.model_copy(update={"direction": direction}) for o in run.outcomes()]
        group = groups_of(outcomes)[0]
        theory[direction] = panel(group, "fps", 1e9, colours(group.series), legend=False)["datasets"][
            "theory"
        ][0]["fps"]
    assert theory["one-way"] == pytest.approx(1_488_095, abs=1)
    assert theory["both-ways"] == pytest.approx(2 * theory["one-way"], abs=1)


def test_a_line_rate_far_above_the_results_is_left_to_the_frame_rate_panel(run: RunDirectory) -> None:
    """It would flatten the Mbps panel; the caption says where it is."""
    manifest = run.manifest.model_copy(update={"line_rate_bps": 1e12})
    section = view(manifest, run.outcomes(), digest([], 0)).sections[0]
    assert "frame-rate panel only" in section.caption
    colour_of = colours(section.group.series)
    assert panel(section.group, "mbps", 1e12, colour_of, legend=False)["datasets"]["theory"] == []
    assert panel(section.group, "fps", 1e12, colour_of, legend=False)["datasets"]["theory"]


def test_repeats_are_drawn_as_their_median() -> None:
    """Three repeats, one point; each repeat keeps its row in the table."""
    shape = synthetic_run.Shape(stacks=("plain",), sizes=(64,), goals=(0.0,), repeats=3)
    outcomes: list[Outcome] = [
        o for c in synthetic_run.cases_of(shape) for o in synthetic_run.outcomes_of(c, shape)
    ]
    (group,) = groups_of(outcomes)
    (point,) = panel(group, "fps", 1e9, colours(group.series), legend=False)["datasets"]["points"]
    assert point["fps"] == pytest.approx(outcomes[1].throughput_fps, abs=0.001)


def test_loss_and_invalid_trials_are_summed_from_the_trials(run: RunDirectory) -> None:
    """The tables' sums are those of trials.jsonl; reasons that differ in numbers alone are one row."""
    trials = list(run.trials())
    report = view(run.manifest, run.outcomes(), digest(trials, len(trials)))
    booked = sum(n for trial in trials for n in trial.loss_at.values())
    assert sum(int(row[5].replace(",", "")) for row in report.losses.rows) == booked
    invalid = sum(trial.validity == "INVALID" for trial in trials)
    assert sum(int(row[1]) for row in report.invalid.rows) == invalid > 0


def test_a_large_run_lists_its_final_trials_and_says_so(run: RunDirectory) -> None:
    """The page stays small; every trial is still counted."""
    trials = list(run.trials())
    large = digest(trials, 20_000)
    assert large.abridged
    assert large.total == len(trials)
    assert large.printed == sum(t.phase == "final" or t.validity == "INVALID" for t in trials)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (1297.6, "1,298"),
        (56.7275, "56.73"),
        (9.9, "9.900"),
        (0.01234, "0.0123"),
        (1e6, "1,000,000"),
    ],
)
def test_figures_have_thousands_separators_and_four_digits(value: float | None, text: str) -> None:
    """Never in powers of ten, never more digits than they mean."""
    assert number(value) == text


@pytest.mark.parametrize(
    ("goal", "text"), [(0.0, "0 %"), (1e-5, "0.001 %"), (0.005, "0.5 %"), (1e-7, "0.00001 %")]
)
def test_loss_goals_are_written_in_per_cent(goal: float, text: str) -> None:
    """As the plan writes them."""
    assert goal_name(goal) == text
