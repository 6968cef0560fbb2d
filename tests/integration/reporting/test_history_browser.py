# SPDX-License-Identifier: Apache-2.0
"""The page of many runs in a real browser: offline, from a file, by mouse, by keyboard and by ear."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from espbench.cli.main import app
from espbench.over_time import History
from support.headless import Browser, PageRecord
from support.synthetic import run as synthetic_run
from support.synthetic.series import Night, write

pytestmark = pytest.mark.browser

ODD = "nightly <b>\"7\"</b> & </script><script>throw 'plan'</script>"
READY = "document.documentElement.dataset.ready"
DRAWN = "!!document.querySelector('#series-chart[data-drawn]')"
# A line of each visible table, as text.
TABLES = """[...document.querySelectorAll('table')].filter((t) => t.checkVisibility()).map((t) => ({
  caption: t.caption.textContent,
  rows: [...t.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim())),
}))"""
SIZES = (64, 512)
RUNS, CHANGED, VOID = 9, 5, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of nine runs in virtual time, slower from the sixth on, and INVALID once; two of another plan,
    and one of a third that is VIOLATED.
    """
    parent = tmp_path_factory.mktemp("many")
    runs = parent / "my runs"
    shape = synthetic_run.Shape(stacks=("xfrm",), suites=("aes128gcm16",), sizes=SIZES, goals=(0.0,))
    for number in range(RUNS):
        slower = number >= CHANGED
        night = Night(
            factor=0.9 if slower else 1.0,
            is_virtual=True,
            kernel="6.1.2" if slower else "6.1.1",
            status="INVALID" if number == VOID else None,
        )
        write(runs, number, night, shape, report="<p>the report</p>")
    for number in range(2):
        made = write(runs, number, Night(is_virtual=True, plan="weekly"), shape)
        made.save_manifest(made.manifest.model_copy(update={"name": ODD}))
    write(runs, 0, Night(is_virtual=True, plan="yearly", status="VIOLATED"), shape)
    index = parent / "index.sqlite"
    done = CliRunner().invoke(
        app, ["history", str(runs), "--html", str(parent / "out"), "--index", str(index)]
    )
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(parent / "out" / "index.html")
    return parent


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    """Its only file."""
    (page,) = (folder / "out").iterdir()
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the module."""
    with Browser() as started:
        yield started


def good(record: PageRecord) -> Any:
    """Return what was read, once nothing went wrong and the page asked for nothing outside itself."""
    assert record.errors == []
    assert record.foreign_requests == []
    assert record.ready
    return record.value


def test_it_lists_what_the_index_says(browser: Browser, page: Path, folder: Path) -> None:
    """Changes, series and runs, and as many of each."""
    record = browser.visit(page, READY, TABLES)
    changes, series, runs = good(record)
    assert [url for url in record.requests if url.startswith("file:")] == [page.resolve().as_uri()]
    with History.open([folder / "my runs"], folder / "index.sqlite") as history:
        all_changes = history.changes()
        assert len(changes["rows"]) == len(all_changes)
        assert changes["rows"][0][0] == f"at {all_changes[0].run}"
        assert "6.1.1 → 6.1.2" in changes["rows"][0][3]
        assert len(series["rows"]) == len(history.series())
        assert [row[0] for row in runs["rows"]] == [run.name for run in reversed(history.runs())]
    newest = {row[4] for row in series["rows"] if row[1] == "yearly"}
    assert newest == {"– (newest run: VIOLATED)"}
    assert {row[1] for row in runs["rows"]} == {"nightly", "yearly", ODD}


def test_a_series_is_drawn_with_its_changes_and_has_a_table_of_the_same(browser: Browser, page: Path) -> None:
    """A point a run, a mark for the one without a figure, a line for each change."""
    marks = f"""({{
      points: document.querySelectorAll('#series-chart .mark-symbol.role-mark path[d]').length,
      marks: document.querySelectorAll('#series-chart .mark-text.role-mark text').length,
      rules: document.querySelectorAll('#series-chart .mark-rule.role-mark line').length,
      labels: [...document.querySelectorAll('#series-chart .role-axis-label text')].map((text) => text.textContent),
      title: document.getElementById('detail-title').textContent, tables: {TABLES},
    }})"""
    values = good(browser.visit(page, DRAWN, marks, at="#series=0"))
    days = [label for label in values["labels"] if label.startswith("2026-")]
    assert days
    assert not [label for label in days if label.endswith("00:00")]
    (table,) = values["tables"]
    changed = [row[0] for row in table["rows"] if "changed here" in row[4]]
    assert (values["points"], values["marks"]) == (RUNS - 1, 1)
    assert values["rules"] == len(changed) == 3  # INVALID, again a figure, slower
    assert len(table["rows"]) == RUNS
    assert table["rows"][RUNS - 1 - VOID][3] == "INVALID"
    assert "64\xa0B one-way, loss goal 0\xa0%" in values["title"]


def test_figures_that_scatter_have_no_fractions(browser: Browser, tmp_path: Path) -> None:
    """Their digits stand below each other; the median of repeats may have any fraction."""
    for number in range(3):
        write(tmp_path / "runs", number, Night(factor=1 + number / 997))
    argv = [
        "history",
        str(tmp_path / "runs"),
        "--html",
        str(tmp_path),
        "--index",
        str(tmp_path / "index.sqlite"),
    ]
    assert CliRunner().invoke(app, argv).exit_code == 0
    (table,) = good(browser.visit(tmp_path / "index.html", DRAWN, TABLES, at="#series=0"))
    figures = [row[2] for row in table["rows"]]
    assert len(set(figures)) == 3
    assert not [figure for figure in figures if "." in figure]


def test_a_series_of_one_figure_is_drawn_without_warnings(browser: Browser, page: Path, folder: Path) -> None:
    """It has no change and no run without a figure; a page with a warning in its console would not be good."""
    with History.open([folder / "my runs"], folder / "index.sqlite") as history:
        quiet = {change.series.number for change in history.changes()}
        still = next(n for n, series in enumerate(history.series()) if series.number not in quiet)
    drawn = ("mark-rule.role-mark line", "mark-text.role-mark text")
    marks = f"document.querySelectorAll('{', '.join(f'#series-chart .{each}' for each in drawn)}').length"
    assert good(browser.visit(page, DRAWN, marks, at=f"#series={still}")) == 0


def test_two_runs_stand_side_by_side_with_what_differs(browser: Browser, page: Path) -> None:
    """The ratio of each figure both have, and the facts that are not the same."""
    listed = json.loads(re.findall(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))[0])["runs"]
    (a, b) = (
        n
        for n, run in enumerate(listed)
        if run["name"][:8] in ("20260101", "20260109") and run["plan"] == "nightly"
    )
    facts, figures = good(browser.visit(page, READY, TABLES, at=f"#runs={a},{b}"))
    assert {tuple(row[1:]) for row in facts["rows"]} == {("6.1.1", "6.1.2")}
    throughputs = [row for row in figures["rows"] if row[1] == "throughput"]
    assert [row[5:] for row in throughputs] == [["0.900", "worse"]] * len(SIZES)
    links = "[...document.querySelectorAll('#told a')].map((link) => link.href)"
    hrefs = good(browser.visit(page, READY, links, at=f"#runs={a},{b}"))
    runs = (page.parent.parent / "my runs").resolve()
    assert hrefs == [(runs / listed[n]["name"] / "report.html").as_uri() for n in (a, b)]


def test_the_keyboard_alone_filters_and_opens_a_series(browser: Browser, page: Path) -> None:
    """Keys go from the title's link to the filter, and past plan, figure and contents to the first change."""
    keys = ["Tab", "Tab", *"512 b", *["Tab"] * 2, *["Tab"] * 3, "Tab", "Tab", "Enter"]
    value = "({hash: location.hash, focus: document.activeElement.id, title: document.title})"
    shown = "document.activeElement.id === 'detail'"
    values = good(browser.visit(page, READY, value, keys=[(keys, shown)]))
    assert re.fullmatch(r"#series=\d+", values["hash"])
    assert values["focus"] == "detail"
    assert "512\xa0B" in values["title"]


def test_back_in_the_lists_the_keyboard_is_where_it_was(browser: Browser, page: Path) -> None:
    """Enter leads to a series; its first link leads back to the link that led there."""
    start = f"{READY} && (document.querySelectorAll('#series a')[1].focus(), true)"
    value = (
        "({back: document.activeElement === document.querySelectorAll('#series a')[1], hash: location.hash})"
    )
    opened = "document.activeElement.id === 'detail'"
    back = "!document.getElementById('lists').hidden && location.hash === ''"
    keys = [(["Enter"], opened), (["Tab", "Enter"], back)]
    assert good(browser.visit(page, start, value, keys=keys)) == {"back": True, "hash": ""}


def test_two_runs_are_chosen_by_the_keyboard(browser: Browser, page: Path) -> None:
    """The boxes are boxes: the space bar ticks them; what is chosen is said."""
    value = "({said: document.getElementById('chosen').textContent, link: document.getElementById('beside').hash})"
    start = f"{READY} && (document.querySelector('#runs input').focus(), true)"
    both = "document.getElementById('beside').hash.includes(',')"
    values = good(browser.visit(page, start, value, keys=[(["Space", "Tab", "Tab", "Space"], both)]))
    assert re.fullmatch(r"#runs=\d+,\d+", values["link"])
    assert values["said"].count("nightly") == 2


@pytest.mark.parametrize("at", ["", "#series=0", "#runs=0,3"])
def test_a_screen_reader_is_told_what_everything_is(browser: Browser, page: Path, at: str) -> None:
    """Nothing that can be used, no table and no picture is without a name."""
    record = browser.visit(page, DRAWN if "series" in at else READY, "1", at=at)
    good(record)
    named = {
        "link",
        "button",
        "checkbox",
        "searchbox",
        "combobox",
        "table",
        "image",
        "region",
        "group",
        "heading",
        "columnheader",
    }
    silent = [(role, name) for role, name in record.spoken if role in named and not name.strip()]
    assert silent == []
    roles = {role for role, _ in record.spoken}
    assert "table" in roles
    if at == "#series=0":
        assert any(role == "graphics-document" and "with 3 changes" in name for role, name in record.spoken)


def test_odd_texts_are_shown_as_they_are(browser: Browser, page: Path) -> None:
    """A plan's name is data to the page."""
    plans = "[...document.querySelectorAll('#plan option')].map((option) => option.value)"
    assert sorted(good(browser.visit(page, READY, plans))) == ["", "nightly", ODD, "yearly"]


def test_a_narrow_window_scrolls_tables_not_the_page(page: Path) -> None:
    overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    with Browser(width=500) as narrow:
        for at in ("", "#series=0", "#runs=0,3"):
            assert good(narrow.visit(page, DRAWN if "series" in at else READY, overflow, at=at)) == 0


def test_a_page_that_is_damaged_is_noticed(browser: Browser, page: Path, tmp_path: Path) -> None:
    """The checks above can fail."""
    whole = page.read_text(encoding="utf-8")
    for name in ("points", "runs"):
        damaged = re.sub(rf'"{name}": ?\[', f'"lost-{name}": [', whole)
        assert damaged != whole
        copy = tmp_path / "index.html"
        copy.write_text(damaged, encoding="utf-8")
        record = browser.visit(copy, READY, "1", timeout_s=60)
        assert record.errors
        assert not record.ready
