# SPDX-License-Identifier: Apache-2.0
"""report.html in a real browser: no script error, no request to anywhere, every figure drawn."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from espbench.reporting.compared import comparison_documents
from espbench.reporting.report import write_report
from support.headless import Browser, PageRecord
from support.session.slow import slow_but
from support.synthetic import comparison as synthetic_comparison
from support.synthetic import findings as synthetic_findings
from support.synthetic import run as synthetic_run

pytestmark = pytest.mark.browser

READY = "document.querySelector('.chart') && !document.querySelector('.chart:not([data-drawn])')"
MARKS = """[...document.querySelectorAll('.chart')].map((chart) => ({
  id: chart.id,
  lines: chart.querySelectorAll('svg .mark-line.role-mark path[d]').length,
  points: chart.querySelectorAll('svg .mark-symbol.role-mark path[d]').length,
  marks: chart.querySelectorAll('svg .mark-text.role-mark text').length,
  rules: chart.querySelectorAll('svg .mark-rule.role-mark line').length,
  overflow: chart.scrollWidth > chart.clientWidth,
}))"""
PAGE_OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the synthetic run, with a label made of characters that HTML minds."""
    shape = synthetic_run.Shape(
        dut="lab <b>\"7\"</b> & </script><script>throw 'label'</script>",
        directions=("one-way", "both-ways"),
        sizes=(64, 512, 1280, 1424, "imix"),
    )
    return write_report(synthetic_run.build(tmp_path_factory.mktemp("runs"), shape))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the module."""
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def narrow() -> Iterator[Browser]:
    """One browser whose window is as wide as a telephone."""
    with Browser(width=500) as started:
        yield started


def points_in(page: Path) -> dict[str, int]:
    """Return how many points each chart of a report has to show, from the rows in the page."""
    charts = re.search(r'id="charts">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert charts
    return {
        name: sum(len(chart["datasets"].get(rows, [])) for rows in ("points", "theory", "cpu", "tagged"))
        for name, chart in json.loads(charts[1]).items()
    }


def problems(record: PageRecord, points: dict[str, int]) -> list[str]:
    """Everything that makes a page unfit to be handed on, in one list."""
    complaints = [f"script error: {error}" for error in record.errors]
    complaints += [f"request: {url}" for url in record.foreign_requests]
    if not record.ready:
        complaints.append("not every chart was drawn")
    for chart in record.value:
        if chart["points"] != points[chart["id"]] or not chart["lines"]:
            complaints.append(f"figure with {chart['points']} of {points[chart['id']]} points: {chart}")
    return complaints


def test_every_figure_is_drawn_without_an_error_or_a_request(browser: Browser, page: Path) -> None:
    """Two panels a figure, four figures (two stacks, two directions), all with lines and points."""
    record = browser.visit(page, READY, MARKS)
    points = points_in(page)
    assert problems(record, points) == []
    assert len(record.value) == len(points) == 8
    assert min(points.values()) > 10
    assert [url for url in record.requests if url.startswith("file:")] == [page.resolve().as_uri()]


def test_results_without_a_figure_are_marked_not_drawn(browser: Browser, page: Path) -> None:
    """The INVALID and UNRESOLVABLE results of the xfrm stack stand as marks in its panels alone."""
    marks = {chart["id"]: chart["marks"] for chart in browser.visit(page, READY, MARKS).value}
    assert all(number == 3 for name, number in marks.items() if "-xfrm-" in name)
    assert all(number == 0 for name, number in marks.items() if "-plain-" in name)


@pytest.fixture(scope="module")
def tests_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of every kind of test, with an odd label and a mix of sizes."""
    shape = synthetic_run.Shape(
        dut="lab <b>\"7\"</b> & </script><script>throw 'label'</script>",
        directions=("one-way", "both-ways"),
        sizes=(64, 512, 1280, "imix"),
        suites=("3des-sha1", "aes128-sha1"),
        tests=synthetic_findings.TESTS,
    )
    return write_report(synthetic_run.build(tmp_path_factory.mktemp("runs"), shape))


def test_every_figure_of_the_other_tests_is_drawn(browser: Browser, tests_page: Path) -> None:
    """Latency by stack and suite, two charts of loss for each of them, flood by stack; both directions."""
    record = browser.visit(tests_page, READY, MARKS)
    points = points_in(tests_page)
    assert problems(record, points) == []
    kinds = Counter(re.match(r"[a-z-]*[a-z]", name)[0] for name in points if name.startswith("test-"))  # type: ignore[index]
    assert kinds == {
        "test-latency-part": 2 * 3,
        "test-frame-loss-part": 2 * 3 * 2,
        "test-flood-part": 2 * 2,
        "test-tunnel-setup-rate-part": 2,
    }
    drawn = {chart["id"]: chart for chart in record.value}
    # Frames without latency, and the load that could not be measured, are marks and no points.
    latency = "test-latency-part-1-2-xfrm-3des-sha1"
    assert drawn[latency]["marks"] == 2
    assert drawn[latency]["rules"] == 2
    assert drawn["test-frame-loss-part-1-3-xfrm-aes128-sha1-loss"]["marks"] == 1


def test_reports_of_other_tests_fit_a_narrow_window(narrow: Browser, tests_page: Path) -> None:
    assert narrow.visit(tests_page, READY, PAGE_OVERFLOW).value == 0


def test_a_narrow_window_scrolls_tables_not_the_page(narrow: Browser, page: Path) -> None:
    """At the width of a telephone nothing but the wide tables needs to be moved sideways."""
    assert narrow.visit(page, READY, PAGE_OVERFLOW).value == 0


def _broken_chart(html: str) -> str:
    return html.replace('"mark": {', '"mark": {"type": "no-such-mark"}, "was": {', 1)


def _at_the_end(html: str, added: str) -> str:
    """Put before the last `</body>`: the chart library has one of its own in a text."""
    before, end, after = html.rpartition("</body>")
    return before + added + end + after


def _thrown_error(html: str) -> str:
    return _at_the_end(html, "<script>throw new Error('on purpose')</script>")


def _foreign_image(html: str) -> str:
    return _at_the_end(html, '<img src="http://127.0.0.1:9/x.png" alt="">')


def _foreign_image_allowed(html: str) -> str:
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", _foreign_image(html))


def _emptied_figure(html: str) -> str:
    return html.replace('"data": {"name": "points"}', '"data": {"name": "lost"}')


@pytest.mark.parametrize(
    ("damage", "expected"),
    slow_but(
        [(_emptied_figure, "figure with ")],
        [
            (_broken_chart, "script error"),
            (_thrown_error, "script error: Error: on purpose"),
            (_foreign_image, "violates the following Content Security Policy"),
            (_foreign_image_allowed, "request: http://127.0.0.1:9/x.png"),
            (_emptied_figure, "figure with "),
        ],
    ),
)
def test_the_check_notices_a_damaged_report(
    browser: Browser, page: Path, tmp_path: Path, damage: Callable[[str], str], expected: str
) -> None:
    """Each kind of damage the check is there for makes it fail."""
    whole = page.read_text(encoding="utf-8")
    damaged = damage(whole)
    assert damaged != whole
    copy = tmp_path / "report.html"
    copy.write_text(damaged, encoding="utf-8")
    record = browser.visit(copy, READY, MARKS, timeout_s=60)
    assert expected in "\n".join(problems(record, points_in(page)))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of three arms in two panels, with names made of characters that HTML minds."""
    odd = synthetic_comparison.odd()
    return comparison_documents.write(odd, tmp_path_factory.mktemp("compared"))


def rows_in(page: Path) -> dict[str, dict[str, int]]:
    """Return how many marks of each kind each chart of a comparison has to show."""
    charts = re.search(r'id="charts">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert charts
    return {
        name: {
            "points": len(chart["datasets"]["points"]),
            "rules": len(chart["datasets"]["intervals"]) + len(chart["datasets"].get("one", [])),
            "marks": len(chart["datasets"].get("marks", [])),
        }
        for name, chart in json.loads(charts[1]).items()
        if name.startswith("comparison-")
    }


def missing(record: PageRecord, page: Path) -> list[str]:
    """Everything the charts of a page lack, and every error and request of it."""
    drawn = {chart["id"]: chart for chart in record.value}
    return problems(record, points_in(page)) + [
        f"{name}: {drawn[name][kind]} of {expected} {kind}"
        for name, kinds in rows_in(page).items()
        for kind, expected in kinds.items()
        if drawn[name][kind] != expected
    ]


def test_a_comparison_shows_every_point_interval_and_mark(browser: Browser, compared: Path) -> None:
    """Three charts for each of two panels: as many marks of each kind as the comparison has figures."""
    record = browser.visit(compared, READY, MARKS)
    rows = rows_in(compared)
    assert missing(record, compared) == []
    assert sorted(rows) == [f"comparison-{n}-{kind}" for n in (1, 2) for kind in ("cpu", "fps", "ratio")]
    sizes = len(synthetic_comparison.SIZES)
    # One arm of five lost its figure at one size, another has a single repeat there: no interval.
    assert rows["comparison-1-fps"] == {"points": 5 * sizes - 1, "rules": 5 * sizes - 2, "marks": 1}
    assert rows["comparison-1-ratio"] == {"points": 2 * sizes - 1, "rules": 2 * sizes - 2 + 1, "marks": 1}
    # One arm of the other panel lost its figure at one size and is at the tester's limit at another.
    assert rows["comparison-2-fps"] == {"points": 5 * sizes - 1, "rules": 5 * sizes - 2, "marks": 2}
    assert rows["comparison-2-ratio"] == {"points": 2 * sizes - 2, "rules": 2 * sizes - 2 + 1, "marks": 2}
    assert rows["comparison-2-cpu"] == {"points": 11 * sizes - 3, "rules": 5 * sizes - 1, "marks": 0}
    assert [url for url in record.requests if url.startswith("file:")] == [compared.resolve().as_uri()]


def test_a_comparison_of_odd_names_is_drawn_whole(browser: Browser, tmp_path: Path) -> None:
    """Names are data to the charts as well."""
    names = {"strongswan": "a'b\"c\\d", "strongswan-libipsec": "</script><script>throw 'name'</script>"}
    page = comparison_documents.write(synthetic_comparison.comparison(names=names), tmp_path)
    assert missing(browser.visit(page, READY, MARKS), page) == []


def test_a_run_that_compares_shows_both_kinds_of_charts(browser: Browser, tmp_path: Path) -> None:
    """The comparison's three charts stand before the run's own two, all of them drawn."""
    run = synthetic_run.build(tmp_path, synthetic_run.Shape(stacks=("plain",), sizes=(64, 512)))
    page = write_report(run, comparison=synthetic_comparison.comparison())
    record = browser.visit(page, READY, MARKS)
    assert missing(record, page) == []
    ids = [chart["id"] for chart in record.value]
    assert [name.startswith("comparison-") for name in ids] == [True] * 3 + [False] * 2


def test_a_comparison_fits_a_narrow_window(narrow: Browser, compared: Path) -> None:
    """At the width of a telephone nothing but the wide tables needs to be moved sideways."""
    assert narrow.visit(compared, READY, PAGE_OVERFLOW).value == 0


@pytest.mark.parametrize("lost", slow_but(["marks"], ["points", "intervals", "marks", "one"]))
def test_the_check_notices_what_a_comparison_lost(
    browser: Browser, compared: Path, tmp_path: Path, lost: str
) -> None:
    """A chart without its points, intervals, marks or line at 1 makes the check fail."""
    whole = compared.read_text(encoding="utf-8")
    damaged = whole.replace(f'"data": {{"name": "{lost}"}}', '"data": {"name": "nowhere"}')
    assert damaged != whole
    copy = tmp_path / "comparison.html"
    copy.write_text(damaged, encoding="utf-8")
    kind = {"intervals": "rules", "one": "rules"}.get(lost, lost)
    complaints = "\n".join(missing(browser.visit(copy, READY, MARKS, timeout_s=60), compared))
    assert re.search(rf"comparison-1-\w+: \d+ of \d+ {kind}", complaints)
