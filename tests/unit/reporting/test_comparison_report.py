# SPDX-License-Identifier: Apache-2.0
"""The comparison report's text: what it must say, in which order, and what it must never contain."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from espbench.comparison.sorting.model import Comparison, Difference, Estimate, Overhead, PointVerdict
from espbench.comparison.telling.numbers import factor
from espbench.errors import EspbenchError
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.procedures.paired_trials import Arm
from espbench.reporting.compared.comparison_documents import write
from espbench.reporting.compared.comparison_figures import figures, styles
from espbench.reporting.compared.comparison_wording import microseconds, ratio_or_bound, rounded
from espbench.reporting.report import write_report
from espbench.terms import Reason
from support.simulated import pairs as simulated_pairs
from support.synthetic import comparison as synthetic_comparison
from support.synthetic import run as synthetic_run
from support.synthetic.comparison import OTHER, REFERENCE, SIZES, THIRD

ODD = 'x|y <i>*z*</i> & "q"'


def documents(comparison: Comparison, directory: Path) -> tuple[str, str]:
    """Its HTML without the scripts and its Markdown."""
    page = write(comparison, directory)
    html = re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.S)
    return html, (directory / "comparison.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Two arms, one panel."""
    return documents(synthetic_comparison.comparison(), tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Three arms, two panels, and everything that needs saying."""
    return documents(synthetic_comparison.odd(), tmp_path_factory.mktemp("odd"))


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(1.352, 1.281, 1.429, 5), "1.35× [1.28, 1.43]"),
        (Estimate(0.98, 0.97, 0.9961, 5), "0.980× [0.970, 0.996]"),
        (Estimate(1.023, 0.9997, 1.0461, 5), "1.02× [1.00, 1.05]"),
        (Estimate(12.34, 11.9, 12.8, 5), "12.3× [11.9, 12.8]"),
        (Estimate(0.7, 0.7, 0.7, 1), "0.70×"),
        (None, "–"),
    ],
)
def test_a_ratio_has_three_digits_and_its_interval(estimate: Estimate | None, text: str) -> None:
    """One repeat gives no interval, and none is made up."""
    assert factor(estimate) == text


@given(st.floats(0.5, 2.0), st.floats(1e-3, 0.2))
def test_the_interval_shown_holds_1_only_if_the_interval_does(value: float, half: float) -> None:
    """A reader must not see `B faster` beside an interval that seems to hold 1."""
    estimate = Estimate(value, value - half, value + half, 5)
    low, high = map(float, re.findall(r"[\d.]+", factor(estimate).split(" ", 1)[1]))
    if estimate.low > 1.0001 or estimate.high < 0.9999:
        assert low > 1 or high < 1
    if estimate.low <= 1 <= estimate.high:
        assert low <= 1 <= high


def test_a_bound_just_beside_1_does_not_read_as_1() -> None:
    """`B faster` beside `≥ 1.00×` would look like a mistake."""
    bound = PointVerdict(64, None, "B faster", "", at_least=1.0042)
    assert ratio_or_bound(bound) == "≥\N{NO-BREAK SPACE}1.004×"


def test_figures_of_cost_have_three_digits() -> None:
    """Slowdowns, µs with their interval, and cycles."""
    costs = [
        Overhead(0, OTHER, "plain", 64, Estimate(value, value, value, 1) if value else None, None)
        for value in (3.214, 12.34, None)
    ]
    assert [ratio_or_bound(cost) for cost in costs] == ["3.21×", "12.3×", "–"]
    assert ratio_or_bound(dataclasses.replace(costs[2], at_most=3.214)) == "≤\N{NO-BREAK SPACE}3.21×"
    assert microseconds(Estimate(4.2137, 4.11, 4.318, 5)) == "4.21 (4.11 – 4.32)"
    assert [rounded(21463.7), rounded(-0.01234), rounded(0), rounded(None)] == ["21,500", "-0.0123", "0", "–"]


def test_the_words_stand_first_then_labels_then_verdicts_then_pictures(plain: tuple[str, str]) -> None:
    """A reader of the top alone knows who is faster, where, and what the figures are not."""
    html, markdown = plain
    words = synthetic_comparison.comparison().words
    html_order = [words[0], words[1], "Short trials: not RFC 2544.", '<table class="verdicts">', "<figure>",
                  "Cost compared with the baselines", "How the verdict was reached"]  # fmt: skip
    markdown_order = [words[1], "Short trials: not RFC 2544.", "| B / A | Verdict |", "![Throughput",
                      "![Ratio", "![CPU", "Slowdown beside plain", "How the verdict was reached"]  # fmt: skip
    for text, order in ((html, html_order), (markdown, markdown_order)):
        places = [text.find(part) for part in order]
        assert -1 not in places
        assert places == sorted(places)


def test_many_sentences_are_folded_not_left_out(tmp_path: Path) -> None:
    """The first three stand open; Markdown has all."""
    words = [f"Sentence number {n}." for n in range(1, 8)]
    html, markdown = documents(synthetic_comparison.comparison(words=words), tmp_path)
    assert all(word in text for word in words for text in (html, markdown))
    assert html.index(words[2]) < html.index("4 more sentences") < html.index(words[3])


def test_each_point_has_a_row_with_rates_ratio_and_verdict(plain: tuple[str, str]) -> None:
    """The figures are those of the comparison; the verdict is a word and a symbol."""
    html, markdown = plain
    comparison = synthetic_comparison.comparison()
    rows = {
        int(match[1]): match[0]
        for match in re.finditer(r"^\| (\d+) \|.*(?:faster|shown) \|.*$", markdown, re.M)
    }
    assert sorted(rows) == sorted(SIZES)
    symbols = {"A faster": "▼", "B faster": "▲", "no difference shown": "○"}
    for point in comparison.panels[0].pairs[0].points:
        assert point.ratio is not None
        fps = comparison.panels[0].curves[OTHER][point.x].fps
        assert fps is not None
        row = rows[int(point.x)]
        assert f"{fps.value:,.0f} ({fps.low:,.0f} – {fps.high:,.0f})" in row
        assert factor(point.ratio) in row.replace("\\", "")
        assert f"| {symbols[point.word]} {point.word} |" in row
    assert html.count("<b>A faster</b>") == 3
    assert html.count("<b>B faster</b>") == 3


def test_what_has_no_figure_gets_no_verdict_and_says_why(odd: tuple[str, str]) -> None:
    """An INVALID arm is not `no difference shown`; a single repeat has no interval."""
    html, markdown = odd
    assert "– no verdict | – | strongswan-libipsec has no figure: INVALID 4×" in markdown
    assert "| – INVALID 4×, UNRESOLVABLE 1× |" in markdown
    assert "107,204 1 repeat, no interval" in markdown
    assert "4 of 5 repeats OK (INVALID 1×)" in markdown
    assert "no verdict<small>strongswan-libipsec has no figure: INVALID 4×</small>" in html


def test_a_figure_at_the_testers_limit_is_a_bound_and_so_is_its_ratio(odd: tuple[str, str]) -> None:
    """`≥` before both, no interval, an arrow in the picture; the verdict stands, as does one by status."""
    _, markdown = odd
    text = markdown.replace("\N{NO-BREAK SPACE}", " ").replace("\\", "")
    row = next(line for line in text.splitlines() if line.startswith("| 1424 |") and "≥ 1.44× |" in line)
    assert "| ≥ 60,833 the tester's or the search's limit | ≥ 1.44× | ▲ B faster |" in row
    assert f"| 1424 | {OTHER} | ≤ 4.86× | ≤ 3.35× |" in text
    assert f"| – BELOW_MINIMUM 5× | ≤ 0.03× | ▼ A faster | – | 5 and 5 repeats; {OTHER} missed" in text
    panel = synthetic_comparison.odd().panels[1]
    arms = [REFERENCE, OTHER, THIRD]
    charts = figures(panel, arms, styles(arms, list(panel.curves)), legend=False)
    marks = {
        kind: [(r["x"], r["mark"]) for r in charts[kind]["datasets"]["marks"]] for kind in ("fps", "ratio")
    }
    assert marks == {"fps": [("64", "↓"), ("1424", "↑")], "ratio": [("64", "↓"), ("1424", "↑")]}
    (arrow,) = (r for r in charts["ratio"]["datasets"]["marks"] if r["x"] == "1424")
    assert arrow["ratio"] == 1.4371
    capped = next(r for r in charts["fps"]["datasets"]["points"] if r["x"] == "1424" and r["series"] == OTHER)
    assert (capped["low"], capped["high"]) == (None, None)


def test_differences_that_were_allowed_are_a_warning_before_any_verdict(odd: tuple[str, str]) -> None:
    """Both documents warn with each run's value, and have everything in full at the end."""
    html, markdown = odd
    first = {html: "Verdicts at a glance", markdown: "Verdicts at a glance"}
    for text, verdicts in first.items():
        assert text.index("Different in more than stack.") < text.index(verdicts)
        assert text.index("6.6.12 in run-2") < text.index(verdicts)
    assert "| kernel | 6.1.176 | 6.6.12 |" in markdown
    assert "5. warning number 5 of the run" in markdown
    assert html.count("warning number 5 of the run") == 1
    assert html.count("warning number 1 of the run") == 2


def test_labels_stand_wherever_the_figures_are(odd: tuple[str, str], tmp_path: Path) -> None:
    """At the top, at the overview, at each panel that alone has the fault, and within each picture."""
    html, _ = odd
    headings = re.findall(r"<h2.*?</h2>", html, flags=re.S)
    assert sum("short trials: not RFC 2544" in h for h in headings) == 1, "every panel has it: said once"
    assert sum("encryption not proven" in h for h in headings) == 2
    write(synthetic_comparison.odd(), tmp_path)
    pictures = sorted((tmp_path / "figures").glob("*.svg"))
    assert [p.stem for p in pictures] == [
        f"comparison-{n}-{kind}" for n in (1, 2) for kind in ("cpu", "fps", "ratio")
    ]
    assert all("short trials: not RFC 2544" in p.read_text(encoding="utf-8") for p in pictures)
    proven = ["encryption not proven" not in p.read_text(encoding="utf-8") for p in pictures]
    assert proven == [False] * 3 + [True] * 3


def test_a_comparison_without_faults_has_no_warning_box(tmp_path: Path) -> None:
    """Full-length trials, everything proven, nothing different."""
    html, markdown = documents(synthetic_comparison.comparison(is_short=False), tmp_path)
    assert "caution" not in re.sub(r"<style.*?</style>", "", html, flags=re.S)
    assert "short trials" not in (html + markdown).lower()
    assert "\n> " not in markdown


def test_several_pairs_have_an_overview_one_does_not(plain: tuple[str, str], odd: tuple[str, str]) -> None:
    """A line for each pair and panel, a cell for each size."""
    assert "at a glance" not in plain[0] + plain[1]
    overview = re.search(r"^## Verdicts at a glance\n\n(.*?)\n\n", odd[1], flags=re.S | re.M)
    assert overview
    lines = overview[1].splitlines()[2:]
    assert len(lines) == 4
    assert all(line.count("|") == len(SIZES) + 2 for line in lines)
    assert len(re.findall(r"[▲▼○–] ", lines[0])) == len(SIZES)
    assert "| – no verdict |" in lines[0]
    assert "| ▼ **≤\N{NO-BREAK SPACE}0.03×** | ▼ **0.69×** \\[0.66, 0.71\\] |" in lines[2]


def test_overheads_are_the_seed_articles_figure(plain: tuple[str, str], tmp_path: Path) -> None:
    """Slowdown, µs and cycles above plain and null; a column nobody can fill is left out."""
    _, markdown = plain
    head = next(line for line in markdown.splitlines() if "Slowdown beside plain" in line)
    assert [
        name in head for name in ("Slowdown beside null", "µs/frame above plain", "cycles/frame above null")
    ]
    row = next(line for line in markdown.splitlines() if line.startswith(f"| 64 | {REFERENCE} | 2.19×"))
    assert "2.19× [2.13, 2.26] | 1.61× [1.57, 1.66] | 7.40 (7.11 – 7.70) | 5.17" in row.replace("\\", "")
    assert "| 21,500 | 15,000 |" in row
    assert "cycles/frame above null, at the 2,900 MHz read at the start" in head
    slowdown, extra = Estimate(3.2, 3.2, 3.2, 1), Estimate(4.2, 4.2, 4.2, 1)
    without = [Overhead(0, REFERENCE, "plain", 64, slowdown, extra)]
    _, markdown = documents(synthetic_comparison.comparison(overheads=without), tmp_path)
    assert (
        "| Frame size, bytes with FCS | Arm | Slowdown beside plain | µs/frame above plain | \n" in markdown
    )
    assert f"| 64 | {REFERENCE} | 3.20× | 4.20 | " in markdown


def test_how_the_verdict_was_reached_is_told(plain: tuple[str, str]) -> None:
    """Method, confidence, family, seed, runs, common conditions, what the gateways said."""
    for text in plain:
        for part in ("Welch's t on the logarithm", "95 %, simultaneous over 7 verdicts", "20260102",
                     "results/2026-01-02-compare-stacks", "uml-2core", "strongswan-libipsec 5.9.8", "an invented CPU",
                     "Brackets after B / A (throughput): 95 %, simultaneous over 7 verdicts. All other intervals, "
                     "CPU included, are 95 % for that point alone; no verdict rests on them."):  # fmt: skip
            assert part in text.replace("&#39;", "'")


def test_names_are_text_not_markup(tmp_path: Path) -> None:
    """Arms, conditions, words, warnings and runs may hold anything; it is shown, and does nothing."""
    comparison = synthetic_comparison.comparison(
        others=(OTHER, THIRD),
        conditions=({ODD: ODD}, {"suite": ODD}),
        names={OTHER: ODD, THIRD: "</script><b>"},
        words=[ODD],
        warnings=[ODD],
        runs=[ODD],
        differences=[Difference(ODD, {ODD: ODD})],
    )
    for pair in (pair for panel in comparison.panels for pair in panel.pairs):
        pair.points[:] = [dataclasses.replace(p, why=f"5 repeats each; {ODD}") for p in pair.points]
    html, markdown = documents(comparison, tmp_path)
    assert "<i>*z*" not in html
    assert "</script><b>" not in html
    assert "x|y &lt;i&gt;*z*&lt;/i&gt; &amp; &#34;q&#34;" in html
    assert "<i>" not in markdown
    assert 'x\\|y &lt;i>\\*z\\*&lt;/i> &amp; "q"' in markdown
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in markdown.splitlines() if "Verdict |" in line]
    bodies = [len(re.findall(r"(?<!\\)\|", line)) for line in markdown.splitlines() if "repeats each" in line]
    assert set(bodies) == set(widths) == {8}


def test_json_holds_the_whole_comparison(tmp_path: Path) -> None:
    """Read back it is the same comparison, but that JSON's keys are text."""
    comparison = synthetic_comparison.odd()
    write(comparison, tmp_path)
    text = (tmp_path / "comparison.json").read_text(encoding="utf-8")
    assert list(json.loads(text)) == [field.name for field in dataclasses.fields(Comparison)]
    read = TypeAdapter(Comparison).validate_json(text)
    for panel in read.panels:
        by_text: dict[str, Any] = {str(x): x for x in panel.x}
        for name, curve in panel.curves.items():
            panel.curves[name] = {by_text[str(x)]: point for x, point in curve.items()}
    assert read == comparison


def test_a_figure_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    """A comparison.json that other programs cannot read is worse than none."""
    infinite = [Overhead(0, REFERENCE, "plain", 64, None, None, at_least=float("inf"))]
    with pytest.raises(EspbenchError):
        write(synthetic_comparison.comparison(overheads=infinite), tmp_path)


def test_the_page_names_no_address_to_fetch_from(plain: tuple[str, str]) -> None:
    """No source, link or style points out of the file, and the browser is told to forbid it."""
    html, _ = plain
    assert not re.findall(r"""(?:src|href|url\()\s*=?\s*["']?(?:https?:)?//""", html)
    assert not re.findall(r"<(?:img|iframe|object|embed|link(?! rel=\"icon\" href=\"data:))", html)
    assert "default-src 'none'" in html


def test_two_reports_of_one_comparison_are_the_same_bytes(tmp_path: Path) -> None:
    """Nothing of the clock, the machine or chance is in it."""
    for name in ("one", "two"):
        write(synthetic_comparison.odd(), tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*") if p.is_file())
    assert len(files) == 9
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_what_has_no_figure_is_a_mark_at_the_foot_never_a_point() -> None:
    """Below every figure of the panel, within it, by the status met most often."""
    panel = synthetic_comparison.odd().panels[0]
    arms = [REFERENCE, OTHER, THIRD]
    charts = figures(panel, arms, styles(arms, list(panel.curves)), legend=False)
    rates = charts["fps"]["datasets"]
    (mark,) = rates["marks"]
    assert (mark["series"], mark["x"], mark["mark"]) == (OTHER, "128", "✕")
    assert mark["fps"] < min(row["low"] or row["fps"] for row in rates["points"])
    low, _ = charts["fps"]["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low < mark["fps"]
    assert (OTHER, "128") not in {(row["series"], row["x"]) for row in rates["points"]}
    assert (OTHER, "128", None) in {(row["series"], row["x"], row["fps"]) for row in rates["lines"]}
    assert [row["x"] for row in charts["ratio"]["datasets"]["marks"]] == ["128"]
    assert len(rates["points"]) == len(panel.curves) * len(panel.x) - 1


def test_arms_differ_in_colour_and_in_shape() -> None:
    """A colour-blind reader, and a black-and-white print, can tell them apart; baselines are grey."""
    style = styles([REFERENCE, OTHER, THIRD], ["plain", "null", REFERENCE])
    assert len({colour for colour, _ in style.values()}) == len({shape for _, shape in style.values()}) == 5


def test_names_on_the_axis_are_not_joined_by_a_line(tmp_path: Path) -> None:
    """Between two suites there is nothing a line could mean; `imix` is beside the sizes, not between."""
    comparison = synthetic_comparison.comparison(sizes=(64, "imix"))
    panel = comparison.panels[0]
    chart = figures(panel, [REFERENCE, OTHER], styles([REFERENCE, OTHER], ["plain", "null"]), legend=False)
    assert {row["x"] for row in chart["fps"]["datasets"]["lines"]} == {"64"}
    assert {row["x"] for row in chart["fps"]["datasets"]["points"]} == {"64", "imix"}
    assert "| imix |" in documents(comparison, tmp_path)[1]


def test_nothing_to_compare_is_said(tmp_path: Path) -> None:
    """No panel, no words: the documents are still whole."""
    empty = synthetic_comparison.comparison(conditions=(), words=[], family=0)
    for text in documents(empty, tmp_path):
        assert "Nothing to compare" in text
        assert "Nothing could be concluded" in text


def test_a_panel_in_which_everything_failed_has_no_empty_chart(tmp_path: Path) -> None:
    """Its table says why."""
    comparison = synthetic_comparison.comparison(overheads=[])
    panel = comparison.panels[0]
    failed = {x: dataclasses.replace(panel.curves[OTHER][x], fps=None, cpu_home_us=None, cpu_office_us=None,
                                     cpu_us=None, statuses={"INVALID": 5}) for x in panel.x}  # fmt: skip
    for name in panel.curves:
        panel.curves[name] = dict(failed)
    points = panel.pairs[0].points
    points[:] = [
        dataclasses.replace(p, ratio=None, cpu_ratio=None, word="no verdict", why="no figure") for p in points
    ]
    html, markdown = documents(comparison, tmp_path)
    assert "No chart: no arm has a figure here" in html
    assert 'class="chart"' not in html
    assert "![" not in markdown
    assert markdown.count("– no verdict") == len(SIZES)


def test_a_run_that_compares_has_its_comparison_near_the_top(tmp_path: Path) -> None:
    """HTML, Markdown and pictures show what its plan asks to compare, before the single results."""
    shape = synthetic_run.Shape(suites=("aes128-sha1", "aes128gcm16"), sizes=(64, 512), repeats=3)
    run = synthetic_run.build(tmp_path, shape)
    write_report(run)
    assert "Comparison by suite" not in (run.path / "report.html").read_text(encoding="utf-8")
    run.save_manifest(run.manifest.model_copy(update={"compare": {"by": "suite", "seed": 7}}))
    write_report(run)
    for name, single in (("report.html", '<th scope="col">Suite</th>'), ("report.md", "| Suite |")):
        text = (run.path / name).read_text(encoding="utf-8")
        assert text.index("Comparison by suite: aes128-sha1, aes128gcm16") < text.index(single)
        assert text.index("How the verdict was reached") < text.index(single)
    assert (run.path / "figures" / "comparison-1-ratio.svg").exists()


def test_what_was_found_at_fixed_loads_stands_before_the_searches(tmp_path: Path) -> None:
    """Both ratios with their verdicts, each load behind them; in no other section and not in results.csv."""
    shape = synthetic_run.Shape(suites=("aes128-sha1", "aes128gcm16"), sizes=(64, 512), repeats=3)
    run = synthetic_run.build(tmp_path, shape)
    run.save_manifest(run.manifest.model_copy(update={"compare": {"by": "suite", "seed": 7}}))
    asked = FixedLoads(pairs=6, rounds=3)
    dearer = simulated_pairs.measured(simulated_pairs.QUIET, 1.25, random.Random(3), asked)
    arms: dict[Arm, str] = {"a": "aes128-sha1", "b": "aes128gcm16"}
    finding = dearer.finding(simulated_pairs.IDENTITY, arms, "proven", [])
    run.append(
        dearer.trials["a"][0].model_copy(
            update={"validity": "INVALID", "reasons": [Reason.of_text("host stall: made up")]}
        )
    )
    without = finding.model_copy(
        update={"paired": {}, "status": "INVALID", "words": "Not compared: made up."}
    )
    run.save_results([*run.outcomes(), finding, without])
    write_report(run)
    for name in ("report.html", "report.md"):
        text = (run.path / name).read_text(encoding="utf-8")
        assert "Not compared: made up." in text
        assert text.index("At the same loads") < text.index("Verdicts at a glance")
        assert "▼ B costs more" in text
        assert "aes128gcm16 takes" in text
        assert "90 %" in text
        assert ">fixed-load" not in text
    assert "fixed-load" not in (run.path / "results.csv").read_text()
    assert "fixed-load" in (run.path / "findings.csv").read_text()
