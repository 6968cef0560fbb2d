# SPDX-License-Identifier: Apache-2.0
"""published.html in a real browser: every chart drawn with all its points, no script error, nothing fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.reporting.published import published_documents
from support.headless import Browser
from support.synthetic import powerquicc as made

pytestmark = pytest.mark.browser

READY = "document.querySelector('.chart') && !document.querySelector('.chart:not([data-drawn])')"
MARKS = """Object.fromEntries([...document.querySelectorAll('.chart')].map((chart) => [chart.id,
  chart.querySelectorAll('svg .mark-symbol.role-mark path[d]').length]))"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
DUTS = ("mpc8548e", "mpc8313e", "mpc8379e", "mpc8379e-sec166")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = made.build(tmp_path_factory.mktemp("runs"), made.Shape(duts=DUTS))
    return published_documents.write([run], tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


def test_every_chart_has_its_emulated_and_its_published_points(browser: Browser, page: Path) -> None:
    record = browser.visit(page, READY, MARKS)
    assert (record.errors, record.foreign_requests, record.ready) == ([], [], True)
    charts = json.loads(re.findall(r'id="charts">(.*?)</script>', page.read_text(encoding="utf-8"))[0])
    expected = {name: sum(len(rows) for rows in chart["datasets"].values()) for name, chart in charts.items()}
    assert record.value == expected
    assert len(expected) == 2 * 3
    # Six behaviours at seven sizes; published: 1057 Mbps twice, 2 Gbps; OpenSwan's CPU, NanoSec's for two claims.
    assert (expected["published-mpc8548e-mbps"], expected["published-mpc8548e-cpu"]) == (6 * 7 + 3, 6 * 7 + 3)


def test_a_narrow_window_scrolls_tables_not_the_page(page: Path) -> None:
    with Browser(width=500) as narrow:
        assert narrow.visit(page, READY, OVERFLOW).value == 0
