# SPDX-License-Identifier: Apache-2.0
"""The forms of a report for other programs: JUnit XML and one wide table; and a PDF where nothing can print one."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree.ElementTree import Element, fromstring

import pytest

from espbench.cli.finished.report import FORMATS
from espbench.cli.finished.report import report as report_command
from espbench.cli.run import ANSWERED
from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.reporting.parts import printing
from espbench.reporting.report import ALL_FORMATS, write_report
from espbench.results import RunDirectory, accelerator, kernels
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult
from espbench.results.exports.junit_file import junit_text
from espbench.results.exports.wide_file import ROW_COLUMNS, csv_text
from espbench.sentences import Code
from espbench.terms import Finding, Outcome, Reason, Remark
from support.synthetic import run as synthetic_run
from support.synthetic.kernels import made

SHAPE = synthetic_run.Shape(
    suites=("null-null", "3des-sha1", "aes128-sha1"),
    sizes=(64, 128, 256, 1024, 1280, 1424, "imix"),
    tests=("throughput", "latency"),
    repeats=2,
    trials_per_case=2,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run with every status."""
    return synthetic_run.build(tmp_path_factory.mktemp("runs"), SHAPE)


@pytest.fixture(scope="module")
def junit(run: RunDirectory) -> Element:
    """Its JUnit XML as the command writes it."""
    path = write_report(run, ["junit"])
    assert path == run.path / "junit.xml"
    return fromstring(path.read_text(encoding="utf-8"))


def kinds(case: Element) -> set[str]:
    return {child.tag for child in case} & {"failure", "error", "skipped"}


def test_each_result_is_a_test_case_that_fails_as_the_run_does(run: RunDirectory, junit: Element) -> None:
    """VIOLATED fails, what makes a run end with 3 is an error, the rest passes."""
    results = run.results()
    cases = junit.findall("testcase")
    assert len(cases) == len(results) == int(junit.attrib["tests"])
    names = [case.attrib["name"] for case in cases]
    assert len(set(names)) == len(names)
    for result, case in zip(results, cases, strict=True):
        assert case.attrib["name"].startswith(result.case)
        expected = {"failure"} if result.status == "VIOLATED" else set()
        if result.status not in (*ANSWERED, "VIOLATED"):
            expected = {"error"}
        assert kinds(case) == expected, result
    assert {result.status for result in results} >= {"VIOLATED", "LOWER_BOUND", "INVALID", "BELOW_MINIMUM"}
    assert int(junit.attrib["failures"]) == sum(r.status == "VIOLATED" for r in results)


def test_a_case_that_was_not_measured_is_skipped_and_no_success(run: RunDirectory) -> None:
    """A run that was interrupted does not look complete."""
    some = run.results()[:3]
    made = fromstring(junit_text(run.manifest, some, "here"))
    left = len(run.manifest.cases) - len({result.case for result in some})
    assert int(made.attrib["skipped"]) == left > 0
    assert len(made.findall("testcase/skipped")) == left


def test_what_xml_cannot_hold_is_replaced(run: RunDirectory) -> None:
    """A gateway's last words may hold anything."""
    odd = 'it said \x00\x1b[31m<&"]]>'
    result = run.results()[0].model_copy(update={"status": "INVALID", "reasons": [Reason.of_text(odd)]})
    error = fromstring(junit_text(run.manifest, [result], "here")).find("testcase/error")
    assert error is not None
    assert error.attrib["message"] == odd.replace("\x00", "\ufffd").replace("\x1b", "\ufffd")


def wide(results: list[Outcome | Finding]) -> list[dict[str, str]]:
    return list(csv.DictReader(csv_text(results).splitlines()))


def test_the_wide_table_has_each_figure_once_at_its_place(run: RunDirectory) -> None:
    """A row for each configuration and repeat; the figures are those of results.csv."""
    rows = wide(run.results())
    places = [tuple(row[name] for name in ROW_COLUMNS) for row in rows]
    assert len(set(places)) == len(places) == (1 + 3) * 2
    by_place = dict(zip(places, rows, strict=True))
    figures = 0
    for outcome in run.outcomes():
        row = by_place[tuple(str(getattr(outcome, name)) for name in ROW_COLUMNS)]
        goal = "0 %" if outcome.loss_goal == 0 else "0.001 %"
        place = f"throughput/{outcome.frame_size}/{goal}"
        assert row[f"{place}/status"] == outcome.status
        cell = row[f"{place}/throughput_fps"]
        if outcome.throughput_fps is None:
            assert cell == ""
        else:
            figures += 1
            assert float(cell) == pytest.approx(outcome.throughput_fps, abs=0.001)
    assert figures > 20
    of_latency = [finding for finding in run.findings() if finding.quantities]
    first = of_latency[0]
    quantity = first.quantities[0]
    row = by_place[tuple(str(getattr(first, name)) for name in ROW_COLUMNS)]
    assert float(row[f"latency/{first.frame_size}/{quantity.name} [{quantity.unit}]"]) == quantity.value


def test_the_wide_table_says_what_each_figure_is_worth(run: RunDirectory) -> None:
    """An OK result that met a limit is a bound; encryption that was not proven and short trials are named."""
    exact = next(o for o in run.outcomes() if o.status == "OK" and not o.is_lower_bound)
    doubtful = {"encryption": "not proven", "rfc2544": False, "final_trial_s": 2.0}
    bound = exact.model_copy(update={"warnings": [Remark.of(Code.AT_MAXIMUM, fps=1.0)], **doubtful})
    place = f"throughput/{exact.frame_size}/0 %"
    for outcome, is_bound in ((exact, "false"), (bound, "true")):
        (row,) = wide([outcome])
        assert (row[f"{place}/status"], row[f"{place}/is_lower_bound"]) == ("OK", is_bound)
    assert [row[f"{place}/{name}"] for name in ("encryption", "rfc2544", "is_short")] == [
        "not proven",
        "false",
        "true",
    ]
    latency = next(iter(run.findings()))
    (row,) = wide([latency.model_copy(update={"encryption": "not proven", "rfc2544": True})])
    of_latency = f"latency/{latency.frame_size}"
    assert (row[f"{of_latency}/encryption"], row[f"{of_latency}/rfc2544"]) == ("not proven", "true")
    assert row[f"{of_latency}/is_short"] == str(latency.is_short).lower()


def test_no_column_of_the_wide_table_is_empty(run: RunDirectory) -> None:
    """A figure that no case has gets no column either: namespaces count no instructions."""
    rows = wide(run.results())
    assert all(any(row[column] for row in rows) for column in rows[0])
    assert not [column for column in rows[0] if "instructions" in column]


def test_without_chromium_one_message_names_the_package_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic_run.build(tmp_path, synthetic_run.Shape(sizes=(64,), trials_per_case=2))
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(MachineLacks, match=r"apt-get install .*chromium"):
        report_command(run.path, format=["pdf"])
    assert not (run.path / "report.html").exists()


@pytest.mark.parametrize(
    "script",
    ["exit 0", "echo no room >&2", "for a; do case $a in --print-to-pdf=*) echo x > ${a#*=};; esac; done"],
)
def test_a_browser_that_prints_nothing_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """A file that is no PDF does not stay, either; what the browser said last is in the message."""
    program = tmp_path / "chromium"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(program))
    with pytest.raises(EspbenchError, match="no room" if "room" in script else "not written"):
        printing.print_page(tmp_path / "report.html", tmp_path / "report.pdf")
    assert not list(tmp_path.glob("*.pdf")) + list(tmp_path.glob(".*"))


def test_a_run_of_kernels_has_no_cases_to_tell(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path, synthetic_run.Shape(sizes=(64,), trials_per_case=2))
    kernels.save(run.path, [made()])
    for name in ("junit", "csv-wide"):
        with pytest.raises(UsageError, match="cipher kernels"):
            write_report(run, [name])


def driver_level_run(parent: Path) -> RunDirectory:
    """A run without cases whose host disturbed one of its figures."""
    with RunDirectory.create(
        parent, "engine", synthetic_run.manifest([], "engine"), "name: engine\n"
    ) as made_run:
        good = AcceleratorResult(
            dut="mpc8548e", suite="3des-sha1", size=64, operations=1_000, driver="made-up",
            after_ns=4_000_000, at_once_ns=1_000_000, full=0,
        )  # fmt: skip
        disturbed = good.model_copy(update={"size": 1_024, "disturbed_pct": 7.5})
        accelerator.save(made_run.path, [good, disturbed])
        of_unit = PublicKeyResult(
            dut="mpc8548e", clock_mhz=83.0, by="unit", operation="rsa", bits=512, exponent_bits=512,
            operations=1, whole_ns=8_000_000, idle_ns=0, overhead_ns=0,
        )  # fmt: skip
        accelerator.save_public_key(made_run.path, [of_unit])
    return RunDirectory.open(made_run.path)


def test_a_figure_without_a_case_is_a_test_case_and_an_error_if_it_is_invalid(tmp_path: Path) -> None:
    """`espbench run` ends with 3 for such a figure."""
    suite = fromstring(write_report(driver_level_run(tmp_path), ["junit"]).read_text(encoding="utf-8"))
    cases = {case.attrib["name"]: kinds(case) for case in suite.findall("testcase")}
    assert cases == {
        "accelerator-mpc8548e-async-3des-sha1-64": set(),
        "accelerator-mpc8548e-async-3des-sha1-1024": {"error"},
        "public-key-mpc8548e-83MHz-unit-rsa-512-512": set(),
    }
    assert (suite.attrib["tests"], suite.attrib["errors"]) == ("3", "1")
    assert "7.5 %" in suite.findall("testcase/error")[0].attrib["message"]


def test_a_run_without_cases_has_no_wide_table(tmp_path: Path) -> None:
    """It would be empty, as if there were no figures."""
    run = driver_level_run(tmp_path)
    with pytest.raises(UsageError, match=accelerator.FILE):
        write_report(run, ["csv-wide"])
    assert not (run.path / "results-wide.csv").exists()


def test_the_command_knows_the_forms_that_there_are() -> None:
    """It has a list of its own, since the report is slow to import."""
    assert FORMATS == ALL_FORMATS
