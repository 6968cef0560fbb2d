# SPDX-License-Identifier: Apache-2.0
"""Published against emulated as documents, and as a user asks for it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.claims import Points, claims, judge_all
from espbench.claims.points import points
from espbench.reporting.parts.wording import goal_name, number
from espbench.reporting.published import published_documents
from espbench.reporting.published.published_figures import figures
from espbench.reporting.published.published_view import (
    UNEXPLAINED,
    UNPREDICTED,
    accelerator_table,
    kernel_table,
    published_view,
)
from espbench.reporting.report import write_report
from espbench.results import RunDirectory, accelerator
from espbench.results.accelerator import AcceleratorResult, Variant
from espbench.terms import layer2_mbps
from support.command_line import in_process
from support.synthetic import powerquicc as made
from support.synthetic import run as synthetic_run
from support.synthetic.kernels import made as kernel_result
from support.synthetic.kernels import on_board

MARK = "core: e500 standing in for e300"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    built = made.build(
        tmp_path_factory.mktemp("runs"),
        made.Shape(duts=("mpc8548e", "mpc8313e"), failing={("async", 64): "BELOW_MINIMUM"}),
    )
    result = AcceleratorResult(
        dut="mpc8548e", suite="aes128-sha1", size=64, operations=50_000, driver="made-up",
        after_ns=400_000_000, at_once_ns=100_000_000, full=3,
    )  # fmt: skip
    accelerator.save(built.path, [result])
    return built


@pytest.fixture(scope="module")
def page(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published_documents.write([run], tmp_path_factory.mktemp("page"))


def test_a_figure_that_the_host_disturbed_is_shown_as_invalid() -> None:
    result = AcceleratorResult(
        dut="uml", suite="aes128-sha1", size=64, operations=1000, crypto="software", driver="made-up",
        after_ns=2, at_once_ns=1, full=0, variant=Variant(keys=3, check="after"),
    )  # fmt: skip
    disturbed = result.model_copy(update={"disturbed_pct": 60.0})
    (sound,), (invalid,) = (accelerator_table([one]).rows for one in (result, disturbed))
    assert (sound[2], sound[-1]) == ("keys=3, check=after", "2.00")
    assert invalid[-5:] == [*"––––", "INVALID: the host took 60 %"]
    assert invalid[:-5] == sound[:-5]


def test_an_unfinished_run_is_named_as_one(run: RunDirectory, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "cut short")
    cut = RunDirectory.open(tmp_path / "cut short")
    results = cut.results()
    cut.save_results([result for result in results if result.case != results[0].case])
    pages = [published_documents.write([of], tmp_path / of.path.name / "page") for of in (run, cut)]
    whole, unfinished = (file.with_suffix(".md").read_text(encoding="utf-8") for file in pages)
    cases = len(run.manifest.cases)
    assert "unfinished" not in whole
    assert f"cut short (unfinished: {cases - 1} of {cases} cases)" in unfinished


def test_every_claim_is_in_every_document(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    ids = [c.id for c in claims()]
    assert re.findall(r'<tr id="claim-([^"]+)">', html) == ids or set(
        re.findall(r'<tr id="claim-([^"]+)">', html)
    ) == set(ids)
    markdown = page.with_suffix(".md").read_text(encoding="utf-8")
    rows = [
        line for line in markdown.splitlines() if re.search(r"\| [✓✗·–] (agrees|differs|not|cannot)", line)
    ]
    assert len(rows) == len(ids)
    document = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert [entry["id"] for entry in document["claims"]] == ids


@pytest.mark.parametrize(("because", "shown"), [("", UNEXPLAINED), ("it is so", "It is so")])
def test_a_difference_without_a_reason_is_marked(because: str, shown: str) -> None:
    """The row says so, and the top counts it; a claim that agrees needs no reason."""
    (any_claim,) = [c for c in claims() if c.id == "link-clear"]
    differing = any_claim.model_copy(update={"value": 1.0, "because": because})
    view = published_view(judge_all([differing, any_claim], Points(())), Points(()), ["made up"])
    rows = [row for section in view.sections for row in section.rows]
    assert [(row.word, row.why) for row in rows] == [("differs", shown), ("agrees", "")]
    counted = "Claims that differ without a written reason: 1." in view.conclusion
    assert counted == (not because)


def test_what_is_computed_with_an_assumed_time_is_no_measurement() -> None:
    """A run gives only one side of the coarse timer."""
    measured = [
        AcceleratorResult(
            dut="mpc8548e", suite="3des-sha1", size=size, operations=1000, driver="made-up", after_ns=us * 1_000_000,
            at_once_ns=us * 500_000, full=0,
        )
        for size, us in ((64, 4), (256, 5))
    ]  # fmt: skip
    points_of_it = Points((), tuple(measured))
    view = published_view(judge_all(claims(), points_of_it), points_of_it, ["made up"])
    basis = {row.id: row.basis for section in view.sections for row in section.rows}
    assert basis["accelerator-timer"] == "computed"


def test_the_page_says_which_rows_nobody_predicted(page: Path) -> None:
    number = sum(c.unpredicted == "none written down" for c in claims())
    assert number > 30
    for file in (page, page.with_suffix(".md")):
        assert file.read_text(encoding="utf-8").count(UNPREDICTED) == number


def test_what_runs_do_not_answer_is_folded_away_and_counted(page: Path) -> None:
    """The table at the top counts each claim once; answered claims stand open, the others in a fold."""
    html = page.read_text(encoding="utf-8")
    overview = html[html.index('id="overview"') : html.index("</table>", html.index('id="overview"'))]
    counts = re.findall(r'<td class="n">(\d*)</td>', overview)
    assert sum(int(n) for n in counts if n) == len(claims())
    folds = "".join(re.findall(r"<details.*?</details>", html, re.S))
    words = {
        name: re.search(r'class="claim-(\w+)"', row, re.S)
        for name, row in re.findall(r'<tr id="claim-([^"]+)">(.*?)</tr>', html, re.S)
    }
    for name, word in words.items():
        assert word is not None
        is_folded = f'id="claim-{name}"' in folds
        assert is_folded == (word[1] in ("not", "cannot")), name


def test_kernels_of_a_run_are_in_a_table() -> None:
    """One row a kernel, one column a DUT; optimised and compiled otherwise is left to the report."""
    table = kernel_table(
        [
            kernel_result(),
            kernel_result(level=2, cycles=1),
            kernel_result(compiler="clang", cycles=1),
            kernel_result(faster_dram=0.165, cycles=1),
            on_board(),
            on_board(kernel="md5"),
        ]
    )
    assert table.head == ["Kernel", "ixp2800, Mbps", "mpc8548e, Mbps"]
    assert [row[:2] for row in table.rows] == [["AES", number(kernel_result().mbps)], ["MD5", "–"]]


def test_the_core_that_stands_in_is_marked_wherever_its_device_appears(page: Path) -> None:
    """The device's heading, its caption, each measured figure, the picture, and each claim as data."""
    html = page.read_text(encoding="utf-8")
    section = html[html.index('id="published-mpc8313e"') : html.index('id="published-mpc8323e"')]
    heading, rest = section.split("</h2>", 1)
    assert MARK in heading
    assert section.count(f"mpc8313e ({MARK})") == 6 * 7 - 1
    assert MARK in re.findall(r"<figcaption>.*?</figcaption>", rest)[0]
    other = html[html.index('id="published-mpc8548e"') : html.index('id="published-mpc8544e"')]
    assert MARK not in other
    assert MARK in (page.parent / "figures" / "published-mpc8313e-mbps.svg").read_text(encoding="utf-8")
    document = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    marked = {entry["device"] for entry in document["claims"] if entry["core"] == MARK}
    assert marked == {"MPC8313E", "MPC8323E", "MPC8349EA", "MPC8360EA", "MPC8379E"}


def test_each_judgement_shows_what_it_rests_on(page: Path) -> None:
    html = page.read_text(encoding="utf-8")

    def row(name: str) -> str:
        match = re.search(rf'<tr id="claim-{name}">.*?</tr>', html, re.S)
        assert match
        return " ".join(re.sub("<[^>]+>", " ", match[0]).split())

    assert "Of those that arithmetic decides, 8 of 9 agree." in html
    calibrated = row("mpc8548e-nanosec-1456")
    assert "agrees used for calibration, ± 10 %" in calibrated
    assert "1,057 Mbps" in calibrated
    assert "not fitted, ± 20 %" in row("mpc8548e-null-cost")
    assert "above 512 B, up to 1024 B: too wide to tell" in row("mpc8548e-openswan-saturation")
    assert "above 512 B, up to 1024 B" in row("mpc8548e-openswan-saturation")
    differing = row("mpc8548e-nanosec-1456-cpu")
    assert "differs" in differing
    assert "NanoSec is not to be had" in differing
    assert "not measured" in row("mpc8313e-strongswan-small")
    assert "BELOW_MINIMUM" in row("mpc8313e-strongswan-small")
    assert "cannot be measured here" in row("mpc8313e-nanosec-openswan")
    assert "To measure it: plans/powerquicc-flood.yaml" in row("flood-higher")
    assert "espbench lacks a second operating system" in row("operating-systems")
    assert "To measure it" not in row("link-tunnel")
    assert "4.00 ×" in row("accelerator-small")
    assert "computed" in row("link-tunnel")
    assert "Note: the tolerance: the sentence sets 990 against 950 Mbps" in row("link-tunnel")


def charted(
    shape: made.Shape, rename: Mapping[str, str] | None = None
) -> tuple[set[str], list[dict[str, Any]]]:
    """Return the names in the legend of the MPC8548E's throughput, and its points; rename: DUT → another name."""
    measured = points([made.outcomes(shape)])
    renamed = [replace(p, dut=(rename or {}).get(p.dut, p.dut)) for p in measured.points]
    chart = figures([], Points(tuple(renamed)), [p.dut for p in renamed], "MPC8548E", as_picture=False)[
        "mbps"
    ]
    return set(chart["layer"][0]["encoding"]["color"]["scale"]["domain"]), chart["datasets"]["points"]


def test_only_the_device_itself_has_curves_without_a_name() -> None:
    """A variant that was measured alone is still one."""
    both = made.Shape(duts=("mpc8548e", "mpc8544e"), behaviours=("plain", "async"))
    variant = {"mpc8544e": "mpc8548e-bus"}
    named = {"plain (mpc8548e-bus)", "async (mpc8548e-bus)"}
    assert charted(both, variant)[0] == {"plain", "async"} | named
    alone = made.Shape(duts=("mpc8544e",), behaviours=("plain", "async"))
    assert charted(alone, variant)[0] == named


@given(st.dictionaries(st.sampled_from([0.0, 1e-6, 1e-5, 2e-5, 1e-3]), st.floats(0.5, 1.5), min_size=1))
def test_a_chart_shows_the_loosest_goal_of_the_articles_and_names_it(goals: dict[float, float]) -> None:
    known = [goal for goal in goals if goal <= 1e-5]
    shape = made.Shape(behaviours=("async",), sizes=(64, 512), goals=goals)
    if not known:
        with pytest.raises(KeyError):
            charted(shape)
        return
    _, rows = charted(shape)
    (fps, _) = made.truth(made.DEVICES["mpc8548e"], "async", 64)
    assert {row["goal"] for row in rows} == {max(known)}
    assert {row["loss"] for row in rows} == {goal_name(max(known))}
    assert rows[0]["mbps"] == pytest.approx(layer2_mbps(goals[max(known)] * fps, 64))


def test_short_trials_are_labelled_in_every_document(page: Path) -> None:
    assert "Short trials: not RFC 2544." in page.read_text(encoding="utf-8")
    assert "Short trials: not RFC 2544." in page.with_suffix(".md").read_text(encoding="utf-8")
    assert "short trials" in (page.parent / "figures" / "published-mpc8548e-mbps.svg").read_text(
        encoding="utf-8"
    )


def test_a_run_of_such_devices_has_the_page_beside_its_report(run: RunDirectory) -> None:
    report = write_report(run, {"html", "md"})
    assert 'href="published.html"' in report.read_text(encoding="utf-8")
    assert "published.md" in (run.path / "report.md").read_text(encoding="utf-8")
    assert "All at once is faster" in report.read_text(encoding="utf-8")
    assert (run.path / "published.html").exists()
    assert (run.path / "published.md").exists()


def test_another_run_has_not(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path, synthetic_run.Shape(sizes=(64,), suites=("3des-sha1",)))
    report = write_report(run, {"html"})
    assert "published" not in report.read_text(encoding="utf-8").replace("published point", "")
    assert not (run.path / "published.html").exists()


def test_as_a_user_asks_for_it(run: RunDirectory, tmp_path: Path) -> None:
    done = in_process("compare", run.path, "--by", "published", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.strip().splitlines()[-1])
    assert page.name == "published.html"
    assert page.parent.name.endswith("-compare-published")
    assert re.search(r"MPC8548E +NanoSec forwards 1057 Mbps at 1456 B.* agrees", done.stdout)


def test_a_run_of_anything_else_is_refused_in_one_message(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path, synthetic_run.Shape(sizes=(64,), suites=("3des-sha1",)))
    done = in_process("compare", run.path, "--by", "published", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert (
        "expected: a DUT that reports/published has claims about: ixp1200, ixp2400, ixp2800, mpc8313e"
        in done.stderr
    )
    assert "got: synthetic" in done.stderr
    assert not (tmp_path / "out").exists()
    with_reference = in_process("compare", run.path, "--by", "published", "--reference", "x")
    assert with_reference.returncode == 2
