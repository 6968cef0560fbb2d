# SPDX-License-Identifier: Apache-2.0
"""report.pdf: Chromium prints the report's page whole, on A4, with its charts and what is folded on the screen."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from espbench.reporting.parts import printing
from espbench.reporting.report import write_report
from support.synthetic import run as synthetic_run

pytestmark = [pytest.mark.browser, pytest.mark.needs("poppler-utils")]

SHAPE = synthetic_run.Shape(sizes=(64, 256, 512, 1280, 1424), trials_per_case=4)


@pytest.fixture(scope="module")
def pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The PDF of a synthetic run."""
    return write_report(synthetic_run.build(tmp_path_factory.mktemp("runs"), SHAPE), ["pdf"])


def text_of(pdf: Path, page: int = 0) -> str:
    pages = ["-f", str(page), "-l", str(page)] if page else []
    done = subprocess.run(
        ["pdftotext", "-layout", *pages, pdf, "-"], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_pages_are_a4_numbered_and_begin_with_the_run(pdf: Path) -> None:
    assert pdf.name == "report.pdf"
    described = subprocess.run(["pdfinfo", pdf], capture_output=True, text=True, check=True).stdout
    assert "(A4)" in described
    assert re.search(r"Tagged: +yes", described)
    match = re.search(r"Pages: +(\d+)", described)
    assert match
    pages = int(match[1])
    assert "synthetic example" in text_of(pdf, 1)
    for page in range(1, pages + 1):
        assert f"{page} / {pages}" in text_of(pdf, page)


def test_each_chart_is_printed_and_what_is_folded_is_open(pdf: Path) -> None:
    """Two panels for each stack, with their axes; the Security Context is folded on the screen alone."""
    text = text_of(pdf)
    assert "could not be drawn" not in text
    assert text.count("Frame size, bytes with FCS") == 4
    assert "invented cipher of aes128-sha1" in text
    # Nobody can open a case's list of trials on paper, so the titles of these lists are not printed.
    assert "Only the cases that were opened" in text
    assert not re.search(r"\(4 trials", text)


def test_a_chart_that_is_not_drawn_is_noticed(pdf: Path, tmp_path: Path) -> None:
    """The check above can fail."""
    page = tmp_path / "report.html"
    whole = pdf.with_name("report.html").read_text(encoding="utf-8")
    page.write_text(
        whole.replace('"mark": {', '"mark": {"type": "no-such-mark"}, "was": {', 1), encoding="utf-8"
    )
    printing.print_page(page, tmp_path / "report.pdf")
    assert text_of(tmp_path / "report.pdf").count("Frame size, bytes with FCS") < 4


def test_no_row_of_a_table_and_no_heading_stands_alone(pdf: Path) -> None:
    """No page ends with a section's heading, or with a table's head."""
    for page in text_of(pdf).split("\f")[:-1]:
        lines = [line.strip() for line in page.splitlines() if line.strip()]
        assert re.fullmatch(r"\d+ / \d+", lines[-1])
        assert not re.match(r"Throughput ·|Suite\b|Stack and suite", lines[-2]), lines[-2]
