# SPDX-License-Identifier: Apache-2.0
"""The report's text: what it must say, in which words, and what it must never contain."""

from __future__ import annotations

import copy
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from espbench.cli.finished.report import report as report_command
from espbench.reporting.one_run.view import Report, view
from espbench.reporting.parts import documents
from espbench.reporting.parts.figures import BASELINE, colours, groups_of, panel
from espbench.reporting.parts.security_context import blocks
from espbench.reporting.parts.statements import condensed, condensed_text, merged
from espbench.reporting.parts.trial_digest import digest
from espbench.reporting.parts.wording import NONE, goal_name, number
from espbench.reporting.report import markdown_cell, write_report
from espbench.results import RunDirectory
from espbench.sentences import Code
from espbench.terms import Outcome, Reason, Remark, Trial
from support.session.pictures import drawn
from support.synthetic import run as synthetic_run

ODD = 'x|y <i>*z*</i> & "q"'
SHAPE = synthetic_run.Shape(sizes=(64, 128, 512, 1280, 1424), dut=ODD)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """The synthetic run with its report written."""
    built = synthetic_run.build(tmp_path_factory.mktemp("runs"), SHAPE)
    with drawn():
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
        assert "24: final trials of 10 s instead of 60 s" in text
        assert text.index("Short trials: not RFC 2544.") < text.index(first_table)


def test_short_trials_are_labelled_wherever_a_figure_is_shown(run: RunDirectory, html: str) -> None:
    """At the answer, at each section, and within each picture, which may travel without the page."""
    label = "short trials: not RFC 2544"
    headings = [h for h in re.findall(r"<h2.*?</h2>", html, flags=re.S) if "IPv4" in h]
    assert len(headings) == 3
    assert all(label in heading for heading in headings)
    pictures = list((run.path / "figures").glob("*.svg"))
    assert len(pictures) == 4
    assert all(label in picture.read_text(encoding="utf-8") for picture in pictures)


def test_a_run_of_full_length_is_not_called_short(tmp_path: Path) -> None:
    """60 s final trials get no such banner and `yes` in the table."""
    shape = synthetic_run.Shape(stacks=("plain",), sizes=(64,), final_trial_s=60.0)
    write_report(built := synthetic_run.build(tmp_path, shape), {"md"})
    text = (built.path / "report.md").read_text()
    assert "short trials" not in text.lower()
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
    with drawn():
        write_report(RunDirectory.open(run.path))
    assert {path: path.read_bytes() for path in names} == before


def test_a_run_without_results_has_a_report_that_says_so(tmp_path: Path) -> None:
    """Interrupted in its first case: no chart, no crash."""
    manifest = synthetic_run.manifest(synthetic_run.cases_of(SHAPE), "early")
    with RunDirectory.create(tmp_path, "early", manifest, "") as early:
        assert "No case has ended yet" in write_report(early).read_text(encoding="utf-8")
        assert "25 cases not finished" in (early.path / "report.html").read_text(encoding="utf-8")


def test_a_damaged_log_is_said_at_the_head_and_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report of what is left says which case lost trials from which line on."""
    built = synthetic_run.build(
        tmp_path, synthetic_run.Shape(stacks=["plain"], suites=["null-null"], sizes=[64])
    )
    log = built.path / "trials.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    report_command(built.path, ["md"])
    (case,) = built.manifest.cases
    damage = f"line 3: case {case.case}, from its trial 2 on: trial 3, expected trial 2: a line is missing"
    assert damage in capsys.readouterr().err
    assert f"left out: {damage}" in (built.path / "report.md").read_text(encoding="utf-8").replace("\\", "")


def test_what_was_not_counted_is_said_and_not_zero(run: RunDirectory, tmp_path: Path) -> None:
    """A generator that checks no frame knows less than one at whose port flows overtake each other."""
    first, second, *others = list(run.trials())
    trials = [
        first.model_copy(update={"reordered": None}),
        second.model_copy(update={"reordered": None, "corrupted": None, "duplicated": None}),
        *others,
    ]
    found = digest(trials, len(trials))
    assert (found.unordered, found.unverified) == (1, 1)
    shutil.copytree(run.path, tmp_path / "run")
    lines = "".join(trial.model_dump_json() + "\n" for trial in trials)
    (tmp_path / "run" / "trials.jsonl").write_text(lines, encoding="utf-8")
    with drawn():
        write_report(RunDirectory.open(tmp_path / "run"))
    for name in ("report.md", "report.html"):
        text = (tmp_path / "run" / name).read_text(encoding="utf-8")
        assert f"In 1 of {len(trials)} trials a port of the tester received several flows" in text
        assert f"In 1 of {len(trials)} trials the generator only counted frames" in text


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
    warned = outcomes[0].model_copy(update={"warnings": [Remark.of(Code.TESTER_LIMITED, ceiling_fps=1e5)]})
    others = [o.model_copy(update={"warnings": []}) for o in outcomes[1:]]
    report = view(run.manifest, [warned, *others], digest([], 0))
    (flag,) = report.sections[0].rows[0].flags
    assert (flag.word, flag.number) == ("tester-limited", 3)
    assert report.sections[0].rows[1].flags == []
    assert (report.notes[2].number, report.notes[2].text, report.notes[2].outcomes) == (3, flag.text, 1)


def test_a_warning_of_every_result_is_a_number_in_the_rows_and_in_words_once(run: RunDirectory) -> None:
    """It tells no result from another, so it does not clutter the table; it is not hidden either."""
    shared = "Home and Office share CPU 3: every figure of the pair is that of both"
    outcomes = [o.model_copy(update={"warnings": [Remark.of_text(shared)]}) for o in run.outcomes()]
    report = view(run.manifest.model_copy(update={"warnings": []}), outcomes, digest([], 0))
    assert [(n.text, n.outcomes) for n in report.notes] == [(shared, len(outcomes))]
    assert {(f.word, f.number) for s in report.sections for r in s.rows for f in r.flags} == {("", 1)}


def test_a_figure_that_is_a_bound_is_flagged_as_one_even_where_all_are(run: RunDirectory) -> None:
    """Each row says it in words, and the answer by number."""
    limited = [Remark.of(Code.AT_MAXIMUM, fps=3_000)]
    outcomes = [o.model_copy(update={"warnings": limited}) for o in run.outcomes()]
    report = view(run.manifest.model_copy(update={"warnings": []}), outcomes, digest([], 0))
    words = {(f.word, f.number) for s in report.sections for r in s.rows for f in r.flags}
    assert words == {("at the search's maximum", 1)}
    assert all(c.flags for a in report.answers for r in a.rows for c in r.cells)


def test_the_subject_names_what_was_tested(run: RunDirectory) -> None:
    """DUT, stacks, suites (the baseline has none), sizes and direction in one sentence."""
    subject = view(run.manifest, [], digest([], 0)).subject
    assert subject.startswith(f"Throughput of {ODD} with 2 stacks (plain, xfrm) and 4 suites (null-null, ")
    assert "at 5 frame sizes (64, 128, 512, 1280, 1424 bytes), one-way, IPv4." in subject
    boxes = [c.model_copy(update={"suite": "none", "stack": "external"}) for c in run.manifest.cases]
    subject = view(run.manifest.model_copy(update={"cases": boxes}), [], digest([], 0)).subject
    assert subject.startswith(f"Throughput of {ODD} with 1 stack (external), at 5 frame sizes")


def test_warnings_that_differ_in_numbers_alone_are_one(run: RunDirectory) -> None:
    """Told once with the least and the greatest; each row's flag still carries its own numbers."""
    text = "maximum lowered from {} to 5 frames/s: the generator could not offer more with this DUT"
    first, second, *others = run.outcomes()
    warned = [
        o.model_copy(update={"warnings": [Remark.of(Code.MAXIMUM_LOWERED, planned_fps=n, fps=5)]})
        for o, n in ((first, 700), (second, 8_000))
    ]
    plain = [o.model_copy(update={"warnings": []}) for o in others]
    report = view(run.manifest.model_copy(update={"warnings": []}), [*warned, *plain], digest([], 0))
    (note,) = report.notes
    assert note.text == text.format("700–8,000")
    assert [row.flags[0].text for row in report.sections[0].rows[:2]] == [
        text.format(700),
        text.format("8,000"),
    ]
    assert report.sections[0].rows[0].flags[0].word == "maximum lowered"


@pytest.mark.parametrize(
    ("code", "differing", "merged_text"),
    [
        (Code.HOST_SLOW, [{"pct": pct, "least_pct": 70.0} for pct in (9.5, 65.25, 44.0)],
         "slow CPU: the gateways' CPUs had 9.5–65.2 % of their full speed; a trial of this run needs 70.0 %"),
        (Code.NOTE, [{"text": f"{n:,} frames"} for n in (12_500, 9_000, 9_000)], "9,000–12,500 frames"),
        (Code.NOTE, [{"text": "seen with aes128gcm16"}, {"text": "seen with aes256gcm16"}],
         "seen with aes…gcm16 (for one: seen with aes128gcm16)"),
        (Code.NOTE, [{"text": "kernel 6.1.0"}, {"text": "kernel 6.12.3"}], "kernel … (for one: kernel 6.1.0)"),
    ],
)  # fmt: skip
def test_statements_of_one_kind_are_merged(
    code: Code, differing: list[dict[str, Any]], merged_text: str
) -> None:
    """Numbers that differ become a range, unless they are part of a name or a version."""
    assert merged([Reason.of(code, **values) for values in differing]) == merged_text


def _without_figure(outcome: Outcome) -> Outcome:
    """Return the outcome as the throughput test writes an INVALID one: no final trial, so of no length."""
    empty = ("throughput_fps", "throughput_mbps", "line_rate_pct", "final_trial")
    return outcome.model_copy(
        update={**dict.fromkeys(empty), "status": "INVALID", "final_trial_s": 0.0, "rfc2544": False}
    )


def test_a_run_with_nothing_but_invalid_results_has_no_empty_chart(run: RunDirectory, tmp_path: Path) -> None:
    """It says why instead, and does not speak of final trials of 0 s."""
    shape = synthetic_run.Shape(stacks=("plain",), sizes=(64,))
    built = synthetic_run.build(tmp_path, shape)
    built.save_results([_without_figure(o) for o in built.outcomes()])
    write_report(built)
    for name in ("report.html", "report.md"):
        text = (built.path / name).read_text(encoding="utf-8")
        assert "No chart: none of these 2 results has a figure" in text
        assert "Short trials: not RFC 2544." in text  # the plan's were, had there been any
        assert "as short as" not in text
    assert 'class="chart"' not in (built.path / "report.html").read_text(encoding="utf-8")
    assert list((built.path / "figures").iterdir()) == []


def test_a_final_trial_of_a_minute_as_measured_is_not_short(run: RunDirectory) -> None:
    """59.99998 s on the clock are the 60 s of the plan; 59.9 s are not."""
    for length, short in ((59.99998, []), (59.9, ["59.9"])):
        outcome = run.outcomes()[0].model_copy(
            update={"final_trial_s": length, "rfc2544": not short, "rfc2544_deviations": []}
        )
        report = view(run.manifest, [outcome], digest([], 0))
        assert report.short == short
        assert report.is_short is bool(short)
        assert report.sections[0].rows[0].rfc2544 == ("short" if short else "yes")


def test_the_answer_stands_before_the_figures(html: str, markdown: str, run: RunDirectory) -> None:
    """One cell for each suite, size and goal, with the figure or the status in its place."""
    assert html.index('class="scroll answer"') < html.index("<figure>")
    assert markdown.index("| Suite | Encryption | Loss goal |") < markdown.index("![")
    (answer,) = view(run.manifest, run.outcomes(), digest([], 0)).answers
    cells = {
        (row.name, row.goal, size): cell
        for row in answer.rows
        for size, cell in zip(answer.sizes, row.cells, strict=True)
    }
    assert len(cells) == len(run.outcomes())
    for o in run.outcomes():
        name = o.stack if o.suite == "none" else f"{o.stack} · {o.suite}"
        cell = cells[name, goal_name(o.loss_goal), str(o.frame_size)]
        assert cell.fps == ("" if o.throughput_fps is None else f"{o.throughput_fps:,.0f}")
        assert cell.status == (None if o.status == "OK" else o.status)


def test_the_answer_says_how_many_of_the_repeats_it_rests_on() -> None:
    """A median of two of three is not passed off as one of three."""
    shape = synthetic_run.Shape(stacks=("plain",), sizes=(64,), goals=(0.0,), repeats=3)
    first, *others = [o for c in synthetic_run.cases_of(shape) for o in synthetic_run.outcomes_of(c, shape)]
    manifest = synthetic_run.manifest(synthetic_run.cases_of(shape), "repeats")
    (answer,) = view(manifest, [_without_figure(first), *others], digest([], 0)).answers
    (cell,) = answer.rows[0].cells
    assert (cell.valid_of, cell.status) == ("2 of 3", "INVALID")
    assert cell.fps


def _whole(run: RunDirectory, outcomes: list[Outcome], trials: list[Trial]) -> Report:
    keep = {(o.case, o.final_trial) for o in outcomes}
    return view(run.manifest, outcomes, digest(trials, len(trials), keep))


def test_the_proof_shows_the_final_trials_own_counts(run: RunDirectory) -> None:
    """Sent, encrypted, decrypted and received of every encrypting case, unrounded; no baseline."""
    finals = {(t.case, t.sequence): t for t in run.trials()}
    outcomes = [o for o in run.outcomes() if o.stack == "xfrm"]
    report = _whole(run, run.outcomes(), list(finals.values()))
    with_figure = {(o.case, o.final_trial) for o in outcomes if o.final_trial is not None}
    rows = [row for row in report.proof.rows if not row[10].startswith("no final trial")]
    assert len(rows) == len(with_figure) == 19
    order = dict.fromkeys((o.case, o.final_trial) for o in outcomes if o.final_trial is not None)
    for row, key in zip(rows, order, strict=True):
        assert key[1] is not None
        trial = finals[key[0], key[1]]
        counts = [int(cell.replace(",", "")) for cell in row[6:10]]
        assert counts == [
            trial.tx_frames,
            trial.gateways["home"].encrypted_frames,
            trial.gateways["office"].decrypted_frames,
            trial.rx_frames,
        ]
        equal = "proven: all four equal"
        assert row[10] == (equal if not trial.lost else f"proven: {trial.lost} lost, none came past the SAs")
    without = sorted(row[10] for row in report.proof.rows if row not in rows)
    assert without == [f"no final trial: {status}" for status in ("BELOW_MINIMUM", "INVALID", "UNRESOLVABLE")]


def test_counts_that_prove_nothing_are_called_so(run: RunDirectory) -> None:
    """External boxes have no counters to show; a trial whose counters disagree says what is wrong."""
    trials = list(run.trials())
    external = [
        t.model_copy(update={"gateways": {}, "proof": {"kind": "not proven: the counters cannot be read"}})
        for t in trials
    ]
    outcomes = [o.model_copy(update={"encryption": "not proven"}) for o in run.outcomes()]
    rows = _whole(run, outcomes, external).proof.rows
    assert {(row[7], row[8]) for row in rows} == {("–", "–")}
    assert all(row[10].startswith("encryption not proven") for row in rows)
    assert {row[6] == "–" for row in rows} == {True, False}  # with and without a final trial
    assert len(rows) == len({(o.case, o.final_trial) for o in outcomes})

    bad = {"proven": False, "problems": ["west-east: cleartext?"]}
    broken = [t.model_copy(update={"proof": bad}) for t in trials]
    verdicts = {row[10] for row in _whole(run, run.outcomes(), broken).proof.rows if row[6] != "–"}
    assert verdicts == {"encryption not proven; west-east: cleartext?"}


def test_unproven_encryption_is_said_before_any_figure(tmp_path: Path) -> None:
    """At the head, in the answer and in the table; a run with proof says nothing of the kind."""
    shape = synthetic_run.Shape(stacks=("xfrm",), suites=("null-sha1",), sizes=(64,))
    built = synthetic_run.build(tmp_path, shape)
    proven = built.outcomes()
    for outcomes in (proven, [o.model_copy(update={"encryption": "not proven"}) for o in proven]):
        built.save_results(outcomes)
        write_report(built)
        for name, answer in (("report.html", 'class="scroll answer"'), ("report.md", "| Suite |")):
            head, _, rest = (built.path / name).read_text(encoding="utf-8").partition(answer)
            said = "Encryption not proven" in head and rest.count("encryption not proven") >= 5
            assert said is (outcomes is not proven)


def test_a_result_without_a_figure_is_not_counted_as_unproven(run: RunDirectory) -> None:
    """Nothing was counted there that could have crossed in clear; its row still says what it is."""
    outcomes = [_without_figure(o.model_copy(update={"encryption": "not proven"})) for o in run.outcomes()]
    report = view(run.manifest, outcomes, digest([], 0))
    assert report.unproven == 0
    assert report.sections[0].labels == ["short trials: not RFC 2544"]
    assert {row.encryption for s in report.sections for row in s.rows} == {"encryption not proven"}


def test_two_goals_that_failed_for_one_reason_tell_it_once(run: RunDirectory) -> None:
    """The second refers to the row above, and only to one of its own case."""
    rows = view(run.manifest, run.outcomes(), digest([], 0)).sections[1].rows
    invalid = [row.telling for row in rows if row.status == "INVALID"]
    assert invalid[0].startswith("zero-loss has no result: host stall: 41 of 41 lost frames")
    assert invalid[1] == "0.001 % has no result: as above"
    assert sum("as above" in row.telling for row in rows) == 1


def test_both_directions_are_shown_each_by_itself(tmp_path: Path) -> None:
    """Their frames add up to the trial's; one-way cases have no such table."""
    shape = synthetic_run.Shape(sizes=(64,), directions=("one-way", "both-ways"), suites=("null-null",))
    built = synthetic_run.build(tmp_path, shape)
    trials = {(t.case, t.sequence): t for t in built.trials()}
    report = _whole(built, built.outcomes(), list(trials.values()))
    for section in report.sections:
        rows = section.directions.rows
        if section.group.direction == "one-way":
            assert rows == []
            continue
        assert [row[3] for row in rows] == ["west → east", "east → west"] * len(section.rows)
        outcome = section.group.outcomes[0]
        assert outcome.final_trial is not None
        sent = sum(int(row[5].replace(",", "")) for row in rows[:2])
        assert sent == trials[outcome.case, outcome.final_trial].tx_frames
    directions = [row[5] for row in report.proof.rows]
    assert [way.replace("\N{NO-BREAK SPACE}", " ") for way in directions] == [
        "Home → Office",  # one-way
        "Home → Office",
        "Office → Home",
    ]


@pytest.mark.parametrize("validity", ["VALID", "INVALID"])
def test_a_void_trial_shows_no_latency_of_its_directions(tmp_path: Path, validity: str) -> None:
    """The counts of its frames are shown all the same."""
    shape = synthetic_run.Shape(sizes=(64,), directions=("both-ways",), suites=("null-null",))
    built = synthetic_run.build(tmp_path, shape)
    trials = [t.model_copy(update={"validity": validity}) for t in built.trials()]
    rows = [row for s in _whole(built, built.outcomes(), trials).sections for row in s.directions.rows]
    assert rows
    assert {row[5] != NONE for row in rows} == {True}
    assert {row[8] != NONE for row in rows} == {row[9] != NONE for row in rows} == {validity == "VALID"}


def test_overheads_are_ratios_to_plain_at_the_same_size(run: RunDirectory) -> None:
    """Throughput and CPU per frame; nothing where either side has no figure."""
    outcomes = [o.model_copy(update={"warnings": []}) for o in run.outcomes()]
    plain, xfrm = view(run.manifest, outcomes, digest([], 0)).sections
    assert plain.overhead.rows == []
    by_case = {(row[0], row[1]): row for row in xfrm.overhead.rows}
    assert ("1280", "3des-sha1") not in by_case  # INVALID
    assert by_case["128", "null-null"][2] == "0.001 %"  # BELOW_MINIMUM at 0 %, so the next goal
    own, base = (
        next(o for o in outcomes if (o.suite, o.frame_size, o.loss_goal) == (suite, 512, 0.0))
        for suite in ("3des-sha1", "none")
    )
    assert own.throughput_fps
    assert base.throughput_fps
    assert own.cpu_home_us_per_frame
    assert base.cpu_home_us_per_frame
    row = by_case["512", "3des-sha1"]
    assert row[3] == f"{number(own.throughput_fps / base.throughput_fps, 3)} ×" != "1.00 ×"
    assert row[4] == f"{number(own.cpu_home_us_per_frame / base.cpu_home_us_per_frame, 3)} ×" != "1.00 ×"
    assert len(row) == 6  # no remark where no row needs one


def test_a_ratio_to_a_baseline_that_met_the_testers_limit_says_what_it_is_worth(run: RunDirectory) -> None:
    """Plain may be faster than measured, so the suite may cost more than the ratio shows."""
    limited = [Remark.of(Code.TESTER_LIMITED, ceiling_fps=1e5)]
    outcomes = [
        o.model_copy(update={"warnings": limited if o.stack == "plain" else []}) for o in run.outcomes()
    ]
    rows = view(run.manifest, outcomes, digest([], 0)).sections[1].overhead.rows
    assert rows
    assert all("the true throughput ratio may be lower" in row[-1] for row in rows)


def _one_repeat_violated(run: RunDirectory, stack: str) -> list[Outcome]:
    """Return the outcomes of a stack twice; of the second repeat every one is VIOLATED."""
    leaked = {"status": "VIOLATED", "throughput_fps": None, "throughput_mbps": None, "repeat": 2}
    outcomes = run.outcomes()
    return outcomes + [o.model_copy(update=leaked) for o in outcomes if o.stack == stack]


@pytest.mark.parametrize("stack", ["plain", "xfrm"])
def test_a_repeat_in_which_cleartext_crossed_leaves_no_overhead(run: RunDirectory, stack: str) -> None:
    """There is none if the stack leaked, and none if the baseline did."""
    rows = view(run.manifest, _one_repeat_violated(run, stack), digest([], 0)).sections[1].overhead.rows
    assert rows == []


def test_a_repeat_in_which_cleartext_crossed_leaves_no_curve_of_cpu(run: RunDirectory) -> None:
    """It leaves no point of throughput either."""
    group = next(g for g in groups_of(_one_repeat_violated(run, "xfrm")) if g.stack == "xfrm")
    rows = panel(group, "mbps", 1e9, colours(group.series), legend=False)["datasets"]
    points = [row for row in rows["points"] if row["series"] != BASELINE]
    assert (points, rows.get("cpu", []), rows.get("cpu lines", [])) == ([], [], [])


def test_a_security_context_is_told_in_the_readers_words(run: RunDirectory, html: str, markdown: str) -> None:
    """Definition, SAs of both gateways, policies and the steps before the first trial; no raw key."""
    by_name = {block.name: block for block in view(run.manifest, [], digest([], 0)).contexts}
    cbc, gcm, plain = (by_name[f"{n}-ipv4"] for n in ("xfrm-3des-sha1", "xfrm-aes128gcm16", "plain-none"))
    assert ["IP version", "4"] in cbc.properties.rows
    assert cbc.cases == 5
    assert [row[:6] for row in cbc.associations.rows] == [
        ["Home and Office", a, b, spi, "invented cipher of 3des-sha1", "invented HMAC of 3des-sha1"]
        for a, b, spi in (("192.0.2.1", "192.0.2.2", "0x00001001"), ("192.0.2.2", "192.0.2.1", "0x00001002"))
    ]
    assert gcm.associations.rows[0][4:6] == ["invented AEAD of aes128gcm16, 128 bit ICV", "by the same AEAD"]
    assert plain.associations.rows == []
    assert list(plain.policies) == list(cbc.policies) == ["Home", "Office"]
    assert [step.what for step in cbc.steps][1] == "Cleartext blocked, tunnel down"
    for text in (html, markdown):
        assert "0 of 100 probe frames arrived" in text
        assert "0x00001001" in text
        assert not re.search(r"security_associations|replay_window|ip_version|\{'", text.replace("\\_", "_"))


def test_an_sa_that_one_gateway_holds_alone_is_shown_as_its_own(run: RunDirectory) -> None:
    """A disagreement of the gateways is seen, not merged away."""
    contexts = copy.deepcopy(run.manifest.contexts)
    context = contexts["xfrm-3des-sha1-ipv4"]
    context["office"]["security_associations"][0]["spi"] = "0x0000beef"
    manifest = run.manifest.model_copy(update={"contexts": contexts})
    block = next(b for b in blocks(manifest) if b.name == "xfrm-3des-sha1-ipv4")
    assert [(row[0], row[3]) for row in block.associations.rows] == [
        ("Home", "0x00001001"),
        ("Home and Office", "0x00001002"),
        ("Office", "0x0000beef"),
    ]


def test_every_frame_rate_axis_has_labels_enough(run: RunDirectory) -> None:
    """A logarithmic axis with one label cannot be read, however narrow the range of the figures."""
    outcome = run.outcomes()[0]
    (group,) = groups_of([outcome])
    assert outcome.throughput_fps is not None
    # The line rate just above the only figure: the narrowest range there is.
    line_rate = outcome.throughput_fps * 84 * 8 * 1.01
    chart = panel(group, "fps", line_rate, colours(group.series), legend=False)
    y = chart["layer"][0]["layer"][0]["encoding"]["y"]
    low, high = y["scale"]["domain"]
    assert len([tick for tick in y["axis"]["values"] if low <= tick <= high]) >= 3
    assert low < outcome.throughput_fps < high


def test_frames_the_generator_did_not_send_are_no_part_of_the_loss(run: RunDirectory) -> None:
    """They are shown beside it, and the shares of the places add up without them."""
    trial = next(t for t in run.trials() if t.loss_at)
    odd = trial.model_copy(update={"loss_at": {"home": 300, "office": 100, "generator, not sent": 9_000}})
    rows = view(run.manifest, [], digest([odd], 1)).losses.rows
    assert [row[4:] for row in rows] == [
        ["generator, not sent", "9,000", "not a loss"],
        ["home", "300", "75.0"],
        ["office", "100", "25.0"],
    ]


def test_many_reasons_of_one_kind_are_told_once() -> None:
    """The table's line stays short; the whole text is in the list of results in words."""
    why = [Reason.of(Code.HOST_STALL_OF_LOSS, frames=n) for n in (1, 2, 3)] + [Reason.of(Code.STOPPED_EARLY)]
    text = condensed_text(Reason.of(Code.INVALID_TRIALS, trials=4, fps=1_000, why=why))
    assert text == (
        "4 trials at 1,000 frames/s were INVALID: host stall: 1 lost frames were due while host or sender stood still; "
        "host stall: 2 lost frames were due while host or sender stood still (and 1 more like it); "
        "generator stopped early"
    )
    assert condensed(why) == (
        "host stall: 1 lost frames were due while host or sender stood still (and 2 more like it); "
        "generator stopped early"
    )


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


def test_a_point_of_cpu_is_the_median_of_the_repeats_as_its_throughput_is(run: RunDirectory) -> None:
    """Three repeats, of which the first used least CPU: the point is that of the second."""
    first = [o for o in run.outcomes() if o.stack == "xfrm" and o.status == "OK"]
    repeats = [
        o.model_copy(update={"repeat": n, "cpu_home_pct": o.cpu_home_pct + 10.0 * n})
        for n in (1, 2, 3)
        for o in first
        if o.cpu_home_pct is not None
    ]
    group = next(g for g in groups_of(repeats) if g.stack == "xfrm")
    rows = panel(group, "mbps", 1e9, colours(group.series), legend=False)["datasets"]["cpu"]
    of_second = {round(o.cpu_home_pct, 2) for o in repeats if o.repeat == 2 and o.cpu_home_pct is not None}
    home = {row["cpu"] for row in rows if row["gateway"] == "Home"}
    assert home
    assert home <= of_second


def test_a_line_of_cpu_breaks_where_its_throughput_does(run: RunDirectory) -> None:
    """No CPU is drawn, or suggested, at a size without a figure; one gateway unread is one line less."""
    group = next(g for g in groups_of(run.outcomes()) if g.stack == "xfrm")
    rows = panel(group, "mbps", 1e9, colours(group.series), legend=False)["datasets"]
    of_3des = [row for row in rows["cpu lines"] if row["series"] == "3des-sha1"]
    assert [row["size"] for row in of_3des if row["cpu"] is None] == ["1280", "1280"]
    assert [row["size"] for row in of_3des][::2] == [str(size) for size in group.sizes]
    assert all(row["cpu"] is not None for row in rows["cpu"])
    assert len(rows["cpu"]) == len(rows["cpu lines"]) - 2


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


def test_a_picture_speaks_of_no_line_it_does_not_draw(tmp_path: Path) -> None:
    """The theoretical line left out of the Mbps panel is not in its subtitle either."""
    built = synthetic_run.build(tmp_path, synthetic_run.Shape(stacks=("plain",), sizes=(64, 512)))
    built.save_manifest(built.manifest.model_copy(update={"line_rate_bps": 1e12}))
    write_report(built, {"md"})
    line = {p.stem[-4:]: "thin grey line" in p.read_text() for p in (built.path / "figures").iterdir()}
    assert line == {"-fps": True, "mbps": False}


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
    """The sums are those of trials.jsonl, losses of the VALID alone; reasons of one kind are one row."""
    trials = list(run.trials())
    report = view(run.manifest, run.outcomes(), digest(trials, len(trials)))
    booked = sum(n for trial in trials if trial.validity == "VALID" for n in trial.loss_at.values())
    assert sum(int(row[5].replace(",", "")) for row in report.losses.rows) == booked > 0
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
    """A report writes them as the plan does."""
    assert goal_name(goal) == text


@pytest.mark.parametrize("cache", ["empty", "a file", "unreadable"])
def test_the_chart_library_is_kept_and_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    """The second page has it from the cache; what cannot be kept is bundled again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bundles: list[str] = []

    def bundle(*_: object, **__: object) -> str:
        bundles.append("let chart = '</script>';")
        return bundles[-1]

    monkeypatch.setattr("vl_convert.javascript_bundle", bundle)
    if cache == "a file":
        (tmp_path / "espbench").write_text("in the way")
    for _ in range(2):
        documents._library.cache_clear()
        assert documents._library() == "let chart = '<\\/script>';"
        if cache == "unreadable" and len(bundles) == 1:
            (kept,) = (tmp_path / "espbench/report").iterdir()
            kept.unlink()
            kept.mkdir()
    documents._library.cache_clear()  # other tests' pages need the real one
    assert len(bundles) == (1 if cache == "empty" else 2)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda file: file.write_text(file.read_text() + "steal()"), "it is not what was put there"),
        (lambda file: file.write_text("steal()"), "it is not what was put there"),
        (lambda file: file.chmod(0o666), "others can write it"),
    ],
)
def test_a_chart_library_that_somebody_may_have_changed_is_made_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], object],
    why: str,
) -> None:
    """It would run in the browser of whoever reads the report."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda *_, **__: "chart()")
    try:
        documents._library.cache_clear()
        documents._library()
        (file,) = (tmp_path / "espbench/report").iterdir()
        spoil(file)
        for note in (f"{file}: {why}", ""):
            documents._library.cache_clear()
            assert documents._library() == "chart()"
            assert capsys.readouterr().err.startswith(note)
    finally:
        documents._library.cache_clear()
