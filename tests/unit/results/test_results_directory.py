# SPDX-License-Identifier: Apache-2.0
"""The run directory: names, locks, formats, and results files that compare equal."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import EspbenchError, UsageError
from espbench.results import FORMAT, RunDirectory, finding_files, outcome_files
from espbench.results.durable import write_atomically
from espbench.results.outcome_files import COLUMNS, CONTRACT_COLUMNS
from espbench.terms import PAIRED, Finding, Reason
from support.synthetic import findings as synthetic_findings
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape()
CASES = synthetic_run.cases_of(SHAPE)
MANIFEST = synthetic_run.manifest(CASES, "directory")
OUTCOMES = [outcome for case in CASES for outcome in synthetic_run.outcomes_of(case, SHAPE)]
PROMISED = (
    "case,test,dut,stack,suite,frame_size,direction,loss_goal,status,throughput_fps,throughput_mbps,"
    "line_rate_pct,trials,final_trial_s,rfc2544,cpu_home_pct,cpu_office_pct,repeat"
)


def create(parent: Path, name: str = "a run") -> RunDirectory:
    """A new run in `parent`."""
    return RunDirectory.create(parent, name, MANIFEST, "name: a run # as given\n")


def test_two_runs_of_one_name_and_second_get_two_directories(tmp_path: Path) -> None:
    """Neither writes into the other's."""
    runs = [create(tmp_path) for _ in range(5)]
    assert len({run.path for run in runs}) == 5


@pytest.mark.parametrize(
    ("name", "ending"),
    [("zwei Läufe / §3", "zwei-Laufe-3"), ("../../etc", "etc"), ("测试", "run"), ("x" * 300, "x" * 60)],
)
def test_any_name_makes_a_plain_file_name(tmp_path: Path, name: str, ending: str) -> None:
    """Spaces, accents, slashes and endless names end up as a short word inside the parent."""
    run = create(tmp_path, name)
    assert run.path.parent == tmp_path
    assert run.path.name.split("Z-")[1] == ending


def test_a_new_run_holds_its_plan_manifest_and_logs(tmp_path: Path) -> None:
    """The plan is kept as the user gave it, comments and all."""
    run = create(tmp_path)
    assert run.plan_text == "name: a run # as given\n"
    assert RunDirectory.open(run.path).manifest == MANIFEST
    assert run.logs.is_dir()
    assert run.outcomes() == []


def test_a_plan_below_a_folder_whose_name_is_no_text_can_be_measured(tmp_path: Path) -> None:
    """A folder that was named on a machine of another encoding; its run goes on beside the same plan."""
    plan = tmp_path / os.fsdecode(b"jos\xe9") / "plan.yaml"
    manifest = MANIFEST.model_copy(update={"plan_path": str(plan)})
    run = RunDirectory.create(tmp_path, "a run", manifest, "name: a run\n")
    words = [Reason.of_text(f"{plan}: gone")]
    run.append(synthetic_run.trials_of(CASES[0], SHAPE)[0].model_copy(update={"reasons": words}))
    run.save_results([OUTCOMES[0].model_copy(update={"reasons": words})])
    again = RunDirectory.open(run.path)
    assert again.manifest.plan_path == str(plan)
    assert [result.reasons for result in again.results()] == [words]
    assert (
        again.damage()[0].why
        == f"{OUTCOMES[0].trials - 1} of its {OUTCOMES[0].trials} trials are not in the file"
    )
    assert len(again.trials_of(CASES[0].case)) == 1


def test_a_run_of_a_newer_format_is_refused_with_both_versions(tmp_path: Path) -> None:
    """The message says what this version reads, what came, and what to use."""
    run = create(tmp_path)
    manifest = json.loads((run.path / "manifest.json").read_text())
    manifest.update(format=FORMAT + 1, espbench="9.9.9", cases="a shape of the future")
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError) as caught:
        RunDirectory.open(run.path)
    for part in (f"format {FORMAT} or older", f"format {FORMAT + 1}", "9.9.9 or newer"):
        assert part in str(caught.value)


@pytest.mark.parametrize("kind", ["missing", "empty", "file"])
def test_what_is_not_a_run_directory_is_refused(tmp_path: Path, kind: str) -> None:
    """The user learns what was there and what was expected."""
    path = tmp_path / "run"
    if kind == "empty":
        path.mkdir()
    elif kind == "file":
        path.write_text("")
    with pytest.raises(UsageError, match="not a run directory"):
        RunDirectory.open(path)


def test_a_damaged_manifest_is_an_error_that_names_the_field(tmp_path: Path) -> None:
    """A manifest edited by hand is told from a run that is none."""
    run = create(tmp_path)
    manifest = json.loads((run.path / "manifest.json").read_text())
    manifest["line_rate_bps"] = "fast"
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(EspbenchError, match=r"manifest\.json: damaged: line_rate_bps"):
        RunDirectory.open(run.path)


def test_a_run_cannot_be_written_by_two_processes(tmp_path: Path) -> None:
    """The second is told the first one's process id; after a kill the lock is free at once."""
    code = (
        "import sys, time; from pathlib import Path; from espbench.results import RunDirectory\n"
        "run = RunDirectory.open(Path(sys.argv[1])); run.lock(); print('locked', flush=True); time.sleep(60)"
    )
    run = create(tmp_path)
    run.close()
    with subprocess.Popen([sys.executable, "-c", code, run.path], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(UsageError, match=f"process {other.pid}"):
            RunDirectory.open(run.path).lock()
        other.kill()
    with RunDirectory.open(run.path).lock():
        pass


def test_a_second_writer_sees_what_the_first_one_wrote(tmp_path: Path) -> None:
    """A directory opened before another process finished does not cut off that process's trials."""
    run = create(tmp_path)
    trials = synthetic_run.trials_of(CASES[0], SHAPE)
    early = RunDirectory.open(run.path)
    assert early.trials_of(CASES[0].case) == []
    run.append(trials[0])
    run.close()
    early.append(trials[1])
    assert list(early.trials()) == trials[:2]


def test_results_csv_begins_with_the_promised_columns(tmp_path: Path) -> None:
    """Scripts of users rely on them; figures that are not there are empty, booleans lower case."""
    run = create(tmp_path)
    run.save_results(OUTCOMES)
    header, *rows = csv.reader((run.path / "results.csv").read_text(encoding="utf-8").splitlines())
    assert ",".join(header[: len(CONTRACT_COLUMNS)]) == PROMISED
    assert header == list(COLUMNS)
    assert {"encryption", "ip_version", "words", "latency_p99_us"} <= set(header)
    by_status = {row[header.index("status")]: dict(zip(header, row, strict=True)) for row in rows}
    assert by_status["INVALID"]["throughput_fps"] == ""
    assert by_status["OK"]["rfc2544"] == "false"
    assert float(by_status["OK"]["throughput_fps"]) > 0
    assert {row[header.index("loss_goal")] for row in rows} == {"0", "1e-05"}


def test_results_read_again_and_saved_again_are_the_same_files(tmp_path: Path) -> None:
    """A resumed run's files are equal byte for byte."""
    first, second = create(tmp_path), create(tmp_path)
    first.save_results(OUTCOMES)
    second.save_results(first.outcomes())
    for name in ("results.json", "results.csv"):
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()


def test_a_report_rewrites_no_tables_that_another_process_writes(tmp_path: Path) -> None:
    """A result that the process saves meanwhile would be lost."""
    run = synthetic_run.build(tmp_path)
    table = run.path / "results.csv"
    whole = table.read_text()
    table.write_text("old")
    with RunDirectory.open(run.path).lock():
        assert not RunDirectory.open(run.path).rewrite_results()
        assert table.read_text() == "old"
    assert RunDirectory.open(run.path).rewrite_results()
    assert table.read_text() == whole
    RunDirectory.open(run.path).lock().release()  # nobody holds it any more


def test_a_full_disk_leaves_the_results_before_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file stays, the new half is gone, and the message gives the reason."""
    run = create(tmp_path)
    run.save_results(OUTCOMES[:1])
    before = sorted(path.name for path in run.path.iterdir())

    def refuse(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(EspbenchError, match="No space left on device"):
        run.save_results(OUTCOMES)
    assert len(run.outcomes()) == 1
    assert sorted(path.name for path in run.path.iterdir()) == before


def test_results_of_a_newer_format_are_refused(tmp_path: Path) -> None:
    """They are not read as if they were understood."""
    run = create(tmp_path)
    (run.path / "results.json").write_text('{"format": 99, "outcomes": []}')
    with pytest.raises(EspbenchError, match="format 99"):
        run.outcomes()


def test_results_of_several_tests_are_read_in_the_plans_order(tmp_path: Path) -> None:
    """The command `report` writes the same results.csv again; a comparison at fixed loads comes last."""
    shape = synthetic_run.Shape(stacks=("xfrm",), sizes=(512, 1280), tests=("latency", "throughput"))
    cases = synthetic_run.cases_of(shape)
    made = [result for case in cases for result in synthetic_run.results_of(case, shape)[1]]
    assert [isinstance(result, Finding) for result in made[:4]] == [True, True, False, False]
    first = next(result for result in made if isinstance(result, Finding))
    compared = first.model_copy(update={"case": "elsewhere", "test": PAIRED, "trials": 9})
    run = RunDirectory.create(tmp_path, "order", synthetic_run.manifest(cases, "order"), "name: order\n")
    run.save_results([*made, compared])
    before = (run.path / "results.csv").read_bytes()
    run.save_results(run.results())
    assert (run.path / "results.csv").read_bytes() == before
    assert run.results()[-1] == compared
    assert "elsewhere" not in {damage.case for damage in run.damage()}, "its trials are filed under its arms"


def test_ctrl_c_in_the_middle_of_a_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The half-written file is removed, the version before it stays."""
    file = tmp_path / "results.csv"
    file.write_text("old")

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(file, "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_findings_come_back_as_they_went_and_stand_in_both_tables(tmp_path: Path) -> None:
    """results.json whole, results.csv with what each is about, findings.csv with every figure of each."""
    shape = synthetic_run.Shape(stacks=("xfrm",), sizes=(512, 1280), tests=synthetic_findings.TESTS)
    run = synthetic_run.build(tmp_path, shape)
    made = [
        result
        for case in synthetic_run.cases_of(shape)
        for result in synthetic_run.results_of(case, shape)[1]
        if isinstance(result, Finding)
    ]
    assert run.findings() == made
    with (run.path / "results.csv").open(newline="") as file:
        rows = {row["case"]: row for row in csv.DictReader(file) if row["test"] != "throughput"}
    with (run.path / "findings.csv").open(newline="") as file:
        figures = list(csv.DictReader(file))
    assert len(figures) == sum(max(1, len(f.quantities)) for f in made)
    for f in made:
        first = f.quantities[0] if f.quantities else None
        row = rows[f.case]
        assert (row["quantity"], row["unit"]) == ((first.name, first.unit) if first else ("", ""))
        assert row["value"] == ("" if first is None else str(first.value).removesuffix(".0"))
        assert row["throughput_fps"] == "", "a latency is no throughput"
        mine = [r for r in figures if r["case"] == f.case]
        assert [r["quantity"] for r in mine] == [q.name for q in f.quantities] or (
            not f.quantities and len(mine) == 1
        )
        assert {r["status"] for r in mine} == {f.status}


def test_the_documentation_names_every_column() -> None:
    root = Path(__file__).parents[3]
    of_results, of_findings = (
        (root / "docs" / "results.md").read_text(encoding="utf-8").split("## findings.csv")
    )
    header = finding_files.csv_text([]).strip().split(",")
    assert [name for name in COLUMNS if f"`{name}`" not in of_results] == []
    assert [name for name in header if f"`{name}`" not in of_findings] == []


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r", "\n", "'=", "''@"])
def test_no_cell_is_a_formula_and_reading_gives_the_original(begins: str) -> None:
    """A label or a reason may begin as a formula does; a number stays a number."""
    said = begins + 'HYPERLINK("http://x")'
    text = outcome_files.table_text(["text", "number"], [[said, -5.5], [[said, "b"], -3]])
    header, first, second = csv.reader(io.StringIO(text, newline=""))
    assert header == ["text", "number"]
    assert first == [f"'{said}", "-5.5"]
    assert second == [f"'{said}; b", "-3"]
    assert outcome_files.as_it_was(first[0]) == said


@given(st.text())
def test_any_text_survives_the_way_through_its_cell(text: str) -> None:
    """The text may begin with anything."""
    cell = outcome_files.harmless(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert outcome_files.as_it_was(cell) == text
