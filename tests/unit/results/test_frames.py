# SPDX-License-Identifier: Apache-2.0
"""Runs as data frames: what the files say, marked where it is a bound, void or missing; one error with what to do."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import espbench
from espbench.comparison import compare as compare_runs
from espbench.errors import EspbenchError, UnreadableRun, UsageError
from espbench.frames import many_runs, measuring, trials, verdicts
from espbench.frames import run as one_run
from espbench.frames.columns import kind
from espbench.frames.run import Table
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.profile import csv_file
from espbench.results import RunDirectory, finding_files, outcome_files
from espbench.results.outcome_files import as_it_was
from espbench.terms import (
    PAIRED,
    WITH_FIGURE,
    CaseIdentity,
    Finding,
    Outcome,
    Quantity,
    Record,
    Status,
    Trial,
)
from support.session.examples import examples
from support.simulated import pairs as simulated_pairs
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(
    suites=("null-null", "3des-sha1", "aes128-sha1"),
    sizes=(64, 128, 256, 1024, 1280, 1424, "simple IMIX"),
    directions=("one-way", "both-ways"),
    tests=("throughput", "latency"),
    trials_per_case=4,
)
COMPARED = synthetic_run.Shape(
    stacks=("xfrm", "strongswan"),
    suites=("3des-sha1", "aes128-sha1", "null-null"),
    sizes=(128, 1024, "simple IMIX"),
    ip_versions=(4, 6),
    repeats=3,
    trials_per_case=2,
)
SMALL = synthetic_run.Shape(stacks=("xfrm",), suites=("aes128gcm16", "3des-sha1"), sizes=(64, 512), repeats=3)
TABLES = get_args(Table)
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> espbench.Run:
    """A run with every status, every test, both directions and a mix of sizes."""
    return espbench.load(synthetic_run.build(tmp_path_factory.mktemp("run"), SHAPE).path)


@pytest.fixture
def small(tmp_path: Path) -> RunDirectory:
    """Two suites, three repeats."""
    return synthetic_run.build(tmp_path, SMALL)


def of(run: espbench.Run, table: str) -> pd.DataFrame:
    frame: pd.DataFrame = getattr(run, table)
    return frame


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def says(cell: str, value: Any) -> bool:
    """Say whether a cell of a CSV file and a value of a frame are the same."""
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return cell == ""
    if isinstance(value, bool):
        return cell == str(value).lower()
    return as_it_was(cell) == value if isinstance(value, str) else float(cell) == value


def assert_agrees(text: str, table: pd.DataFrame) -> None:
    """A CSV file's text and a frame, row by row and column by column; the frame may have more columns."""
    head, *lines = csv.reader(io.StringIO(text, newline=""))
    assert head == list(table.columns[: len(head)])
    for line, row in zip(lines, rows_of(table), strict=True):
        differ = [
            (name, cell, row[name])
            for name, cell in zip(head, line, strict=True)
            if not says(cell, row[name])
        ]
        assert differ == []


# ── as in the files ──────────────────────────────────────────────────────────────────────────────────────────────


def test_results_and_findings_are_the_rows_of_their_files(run: espbench.Run) -> None:
    assert_agrees((run.path / "results.csv").read_text(encoding="utf-8"), run.results)
    assert_agrees((run.path / "findings.csv").read_text(encoding="utf-8"), run.findings)
    assert set(run.results["status"]) == set(get_args(Status))


@cache
def an_outcome() -> Outcome:
    (case, *_) = synthetic_run.cases_of(SMALL)
    return synthetic_run.outcomes_of(case, SMALL)[0]


@cache
def a_finding() -> Finding:
    identity = {name: getattr(an_outcome(), name) for name in CaseIdentity.model_fields} | {"test": "latency"}
    return Finding(
        **identity, status="OK", load_fps=None, quantities=[], trials=1, rfc2544=False, encryption="proven"
    )


TEXT = st.text(st.characters(codec="ascii", min_codepoint=32), min_size=1, max_size=4)
MAYBE = st.none() | st.floats(0.001, 1e9)
OF_BOTH: Mapping[str, st.SearchStrategy[Any]] = {
    "stack": TEXT, "frame_size": st.integers(64, 9000) | TEXT, "status": st.sampled_from(get_args(Status)),
    "rfc2544": st.booleans(), "reasons": st.lists(TEXT, max_size=2),
}  # fmt: skip
OUTCOMES = st.fixed_dictionaries(
    {
        **OF_BOTH,
        "throughput_fps": MAYBE,
        "cpu_office_pct": MAYBE,
        "final_trial": st.none() | st.integers(0, 99),
    }
).map(lambda drawn: an_outcome().model_copy(update=drawn))
QUANTITIES = st.builds(Quantity, name=TEXT, unit=TEXT, value=MAYBE, n=st.integers(0, 9), stdev=MAYBE)
FINDINGS = st.fixed_dictionaries({**OF_BOTH, "quantities": st.lists(QUANTITIES, max_size=2)}).map(
    lambda drawn: a_finding().model_copy(update=drawn)
)


@settings(max_examples=examples(50))
@given(results=st.lists(OUTCOMES | FINDINGS, min_size=1, max_size=3))
def test_whatever_a_run_found_its_frames_are_its_files(results: list[Outcome | Finding]) -> None:
    """Names that look like formulas, mixes, missing figures and all."""
    nowhere = RunDirectory(Path("nowhere"), synthetic_run.manifest([], "nowhere"))
    run = espbench.Run(nowhere, results, [])
    assert_agrees(outcome_files.csv_text(results), run.results)
    findings = [result for result in results if isinstance(result, Finding)]
    assert_agrees(finding_files.csv_text(findings), run.findings)


def test_a_trial_is_a_row_with_its_case_and_each_gateway(run: espbench.Run) -> None:
    cases = {entry.case: entry for entry in run.manifest.cases}
    for row, trial in zip(rows_of(run.trials), run.records(), strict=True):
        entry = cases[trial.case]
        for name in CaseIdentity.model_fields:
            assert row[name] == getattr(entry, name)
        for name in (
            "sequence",
            "phase",
            "offered_fps",
            "tx_frames",
            "lost",
            "frame_loss_ratio",
            "sustained",
        ):
            assert row[name] == getattr(trial, name)
        for gateway, reading in trial.gateways.items():
            assert says(_told(reading.cpu_pct), row[f"cpu_{gateway}_pct"])
            assert says(_told(reading.cpu_us_per_frame), row[f"cpu_{gateway}_us_per_frame"])
            assert says(_told(reading.encrypted_frames), row[f"encrypted_{gateway}_frames"])
            assert says(_told(reading.decrypted_frames), row[f"decrypted_{gateway}_frames"])
        assert says(_told(trial.latency_us.p99), row["latency_p99_us"])
        assert row["is_void"] == (trial.validity == "INVALID" or trial.only_in_stalls)
        assert row["reasons"] == "; ".join(map(str, trial.reasons))
    assert run.trials["is_void"].any()


def _told(value: object) -> str:
    return "" if value is None else str(value)


# ── the fine points ──────────────────────────────────────────────────────────────────────────────────────────────


def test_only_a_status_with_a_figure_has_one_and_a_bound_is_marked(run: espbench.Run) -> None:
    table = run.results[run.results["test"] == "throughput"]
    has_figure = table["status"].isin(WITH_FIGURE)
    assert table.loc[has_figure, "throughput_fps"].notna().all()
    assert table.loc[~has_figure, "throughput_fps"].isna().all()
    bounds = table[table["status"] == "LOWER_BOUND"]
    assert len(bounds) > 0
    assert bounds["is_lower_bound"].all()
    assert not table.loc[~has_figure, "is_lower_bound"].any()
    at_limit = table["is_lower_bound"] & (table["status"] == "OK")
    assert table.loc[at_limit, "warnings"].str.contains("tester-limited").all()
    assert at_limit.any(), "a figure that the tester limits may be too low as well"
    assert table.loc[has_figure, "is_short"].all(), "final trials of 10 s"


def test_loss_goals_are_numbers_and_sizes_that_are_mixes_names(run: espbench.Run) -> None:
    table = run.results
    assert set(table["loss_goal"].dropna()) == {0.0, 1e-5}
    assert table.loc[table["test"] != "throughput", "loss_goal"].isna().all()
    is_mix = table["frame_size"] == "simple IMIX"
    assert is_mix.any()
    assert table.loc[is_mix, "frame_bytes"].isna().all()
    assert (table.loc[~is_mix, "frame_bytes"] == table.loc[~is_mix, "frame_size"]).all()


def test_a_violated_and_a_disturbed_trial_are_marked(small: RunDirectory) -> None:
    first, second, *rest = small.trials()
    changed = [
        first.model_copy(update={"proof": {"violated": True}}),
        second.model_copy(update={"validity": "INVALID", "host": {"disturbed": True}}),
        *rest,
    ]
    write_log(small, changed)
    table = espbench.load(small.path).trials
    assert list(table.loc[table["is_violated"], "sequence"]) == [0]
    assert list(table.loc[table["is_disturbed"] & table["is_void"], "sequence"]) == [1]


def test_a_trial_of_no_case_of_the_plan_has_its_case_alone(small: RunDirectory) -> None:
    """Such are those of a comparison at fixed loads; what no gateway says is missing, not zero."""
    trial = next(small.trials()).model_copy(update={"case": "elsewhere-at-a", "gateways": {}})
    small.save_results([])
    write_log(small, [trial])
    (row,) = rows_of(espbench.load(small.path).trials)
    assert row["case"] == "elsewhere-at-a"
    for name in (
        "stack",
        "ip_version",
        "frame_size",
        "frame_bytes",
        "cpu_home_pct",
        "encrypted_office_frames",
    ):
        assert pd.isna(row[name]), name


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_numbers_has_a_unit_and_its_values_a_type(run: espbench.Run, table: str) -> None:
    """A column that is new in the files and not known here would become text: this names it."""
    comparison = of(run, table)
    units = comparison.attrs["units"]
    is_number = {
        str(name): pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        for name, dtype in comparison.dtypes.items()
    }
    assert {name for name, numeric in is_number.items() if numeric and name not in units} == set()
    assert set(units) <= set(comparison)
    records: list[Record] = list(run.records()) if table == "trials" else list(run.directory.results())
    numbers = {name for record in records for name, value in record if _number(value)} & set(comparison)
    assert {name for name in numbers if kind(name).unit is None} == set()


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@pytest.mark.parametrize("table", TABLES)
def test_a_run_that_has_measured_nothing_has_empty_frames_of_the_same_types(
    run: espbench.Run, tmp_path: Path, table: str
) -> None:
    manifest = synthetic_run.manifest([], "empty")
    RunDirectory.create(tmp_path, "empty", manifest, "name: empty\n").close()
    (path,) = tmp_path.iterdir()
    empty = of(espbench.load(path), table)
    assert len(empty) == 0
    pd.testing.assert_series_equal(empty.dtypes, of(run, table).dtypes)
    assert empty.attrs == of(run, table).attrs


def test_records_of_older_versions_are_read(small: RunDirectory) -> None:
    """They lack what later ones record; their logs have no seals."""
    later = {"void_finals", "loss_bound", "upper_fps", "cpu_home_us_per_frame", "final_trial"}
    results = json.loads((small.path / "results.json").read_text())
    results["outcomes"] = [{k: v for k, v in o.items() if k not in later} for o in results["outcomes"]]
    (small.path / "results.json").write_text(json.dumps(results))
    manifest = json.loads((small.path / "manifest.json").read_text())
    for name in ("asked", "conditions", "compare", "placement"):
        manifest.pop(name, None)
    (small.path / "manifest.json").write_text(json.dumps(manifest))
    lines = [json.loads(line) for line in (small.path / "trials.jsonl").read_text().splitlines()]
    without = [
        {k: v for k, v in line.items() if k not in ("waits_s", "measured", "warnings")} for line in lines
    ]
    (small.path / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in without))

    loaded = espbench.load(small.path)
    assert len(loaded.results) == 12 * 2
    assert loaded.results["loss_bound"].isna().all()
    assert loaded.results["throughput_fps"].notna().all()
    assert len(loaded.trials) == 12 * SMALL.trials_per_case


def test_a_profile_is_the_rows_of_its_file(small: RunDirectory) -> None:
    text = (
        "case,gateway,frames,function,module,where,instructions,instructions_per_frame\n"
        "c,home,1000,esp_output,esp4,softirq,640500,640.500000\n"
        "c,home,1000,[unnamed],,idle,3,0.003000\n"
    )
    (small.path / "profile.csv").write_text(text)
    profile = espbench.load(small.path).profile
    assert_agrees(text, profile)
    assert profile.attrs["units"] == {
        "frames": "frames", "instructions": "instructions", "instructions_per_frame": "instructions/frame",
    }  # fmt: skip


def test_a_run_without_a_profile_says_how_to_make_one(small: RunDirectory) -> None:
    with pytest.raises(UnreadableRun, match="what to do: espbench profile"):
        _ = espbench.load(small.path).profile
    (small.path / "profile.csv").write_text("something else\n")
    with pytest.raises(UnreadableRun, match=r"profile\.csv: no profile"):
        _ = espbench.load(small.path).profile


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────────


def write_log(run: RunDirectory, trials: list[Trial]) -> None:
    """The log anew, sealed, each case's trials numbered."""
    (run.path / "trials.jsonl").write_text("")
    with RunDirectory.open(run.path) as again:
        for trial in trials:
            number = len(again.trials_of(trial.case))
            again.append(trial.model_copy(update={"sequence": number}))


def _damaged(name: str, change: Callable[[bytes], bytes]) -> Callable[[RunDirectory], Path]:
    def damage(run: RunDirectory) -> Path:
        path = run.path / name
        path.write_bytes(change(path.read_bytes()))
        return run.path

    return damage


def _gone(name: str) -> Callable[[RunDirectory], Path]:
    def remove(run: RunDirectory) -> Path:
        (run.path / name).unlink()
        return run.path

    return remove


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda run: run.path / "no-such-run", "not a run directory"),
        (lambda run: run.path.parent, "a directory without one"),
        (lambda run: run.path / "plan.yaml", "got: a file"),
        (_damaged("manifest.json", lambda text: text[:100]), "manifest.json: damaged, not JSON"),
        (_damaged("manifest.json", lambda text: b"\xff" + text), "manifest.json: damaged, not JSON"),
        (
            _damaged("manifest.json", lambda text: text.replace(b'"line_rate_bps"', b'"rate"')),
            "line_rate_bps",
        ),
        (_damaged("manifest.json", lambda text: text.replace(b'"format": ', b'"format": 9')), "newer format"),
        (_damaged("results.json", lambda text: text[:-20]), "results.json: not a results file"),
        (
            _damaged("results.json", lambda text: text.replace(b"OK", b"\xff\xff")),
            "results.json: not a results file",
        ),
        (_gone("trials.jsonl"), "trials.jsonl"),
        (_damaged("trials.jsonl", lambda text: text.replace(b'"lost":', b'"last":', 1)), "got:\n    line 1:"),
    ],
)
def test_what_cannot_be_read_is_one_error_that_says_what_to_do(
    small: RunDirectory, spoil: Callable[[RunDirectory], Path], said: str
) -> None:
    write_log(small, [next(small.trials())])
    with pytest.raises(UnreadableRun) as caught:
        espbench.load(spoil(small))
    assert said in str(caught.value)
    assert "what to do: " in str(caught.value)
    assert isinstance(caught.value, EspbenchError)


def test_damaged_trials_are_left_out_where_that_is_allowed(small: RunDirectory) -> None:
    trials = list(small.trials())
    write_log(small, trials)
    log = small.path / "trials.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"lost":', b'"last":', 1))
    with pytest.raises(UnreadableRun, match="allow_damaged=True"):
        espbench.compare(small.path, by="suite")
    loaded = espbench.load(small.path, allow_damaged=True)
    assert [text for text in loaded.damage if trials[0].case in text] == loaded.damage != []
    assert len(loaded.trials) == len(trials) - SMALL.trials_per_case, "the rest of its case follows from it"
    assert len(espbench.compare(loaded, by="suite")) > 0


# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("table", TABLES)
def test_runs_stand_one_under_the_other_under_their_names(tmp_path: Path, table: Table) -> None:
    shape = replace(SMALL, repeats=1, tests=("throughput", "latency"))
    paths = [synthetic_run.build(tmp_path, shape, name).path for name in ("first", "second")]
    together = espbench.load_many(paths, table=table)
    one = of(espbench.load(paths[0]), table)
    assert list(together.columns) == ["run", "platform", *one.columns]
    for name in ("first", "second"):
        part = together[together["run"] == name].drop(columns=["run", "platform"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(part, one)
    assert set(together["platform"]) == {"synthetic"}
    assert together.attrs == one.attrs
    pd.testing.assert_frame_equal(
        together, espbench.load_many(espbench.load(paths[0]), str(paths[1]), table=table)
    )


def test_runs_of_one_name_are_told_apart_by_their_directories(tmp_path: Path) -> None:
    paths = [synthetic_run.build(tmp_path, replace(SMALL, repeats=1)).path for _ in range(2)]
    assert set(espbench.load_many(paths)["run"]) == {path.name for path in paths}
    with pytest.raises(UsageError, match="named twice"):
        espbench.load_many(paths[0], paths[0])
    with pytest.raises(UsageError, match="at least one run"):
        espbench.load_many([])


# ── comparisons ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Two stacks, three suites, a mix, bounds."""
    return synthetic_run.build(tmp_path_factory.mktemp("compared"), COMPARED)


@pytest.mark.parametrize("by", ["suite", "frame_size", "stack"])
def test_verdicts_are_those_of_the_command(made: RunDirectory, by: str) -> None:
    """Row by row, each with the conditions that it stands under."""
    expected = compare_runs([made], by)
    table = espbench.compare(made.path, by=by)
    points = [
        (panel, pair, point) for panel in expected.panels for pair in panel.pairs for point in pair.points
    ]
    for row, (panel, pair, point) in zip(rows_of(table), points, strict=True):
        fixed = {**expected.common, **panel.conditions}
        x = {"frame size": "frame_size"}.get(panel.x_name, panel.x_name)
        assert (row["a"], row["b"], row[x]) == (pair.a, pair.b, point.x)
        assert (row["verdict"], row["why"], row["loss_goal"]) == (point.word, point.why, panel.loss_goal)
        named = {"A faster": pair.a, "B faster": pair.b}.get(point.word)
        assert row["faster"] == named if named else pd.isna(row["faster"])
        for name, key in (("test", "test"), ("dut", "DUT"), ("direction", "direction")):
            assert row[name] == fixed[key]
        assert f"IPv{row['ip_version']}" == fixed["IP version"]
        assert pd.isna(row[by]), "what the arms differ in"
        for name, estimate in (("ratio", point.ratio), ("cpu_ratio", point.cpu_ratio)):
            got = (row[name], row[f"{name}_low"], row[f"{name}_high"])
            assert (
                got == (estimate.value, estimate.low, estimate.high) if estimate else all(map(pd.isna, got))
            )
        assert says(_told(point.at_least), row["at_least"])
        assert says(_told(point.at_most), row["at_most"])
        for arm, name in (("a", pair.a), ("b", pair.b)):
            curve = panel.curves[name][point.x]
            assert says(_told(curve.fps and curve.fps.value), row[f"{arm}_fps"])
            assert says(_told(curve.cpu_us and curve.cpu_us.value), row[f"{arm}_cpu_us_per_frame"])
            assert row[f"{arm}_is_lower_bound"] == curve.at_least
    assert table.attrs["axis"] == by
    assert (table.attrs["words"], table.attrs["warnings"]) == (expected.words, expected.warnings)
    assert table["method"].eq("searches").all()
    units = table.attrs["units"]
    assert [n for n in table if table[n].dtype == "float64" and n not in units] == []
    if by == "suite":
        assert {"LOWER_BOUND", "BELOW_MINIMUM"} <= set(espbench.load(made.path).results["status"])
        assert table["at_least"].notna().any(), "a bound alone"
        assert table["bound_by"].notna().any()


def test_a_verdict_at_fixed_loads_is_a_row_of_its_own(small: RunDirectory) -> None:
    measured = simulated_pairs.measured(
        simulated_pairs.SHARED, 1.3, random.Random(1), FixedLoads(pairs=6, rounds=3)
    )
    names = {"a": "3des-sha1", "b": "aes128gcm16"}
    finding = measured.finding(simulated_pairs.IDENTITY, names, "proven", [])  # type: ignore[arg-type]
    small.save_results([*small.results(), finding])
    small.update_manifest(compare={"by": "suite", "reference": "3des-sha1", "seed": 1})
    table = espbench.compare(small.path)
    (verdict,) = compare_runs([small]).fixed_loads
    (row,) = rows_of(table[table["method"] == PAIRED])
    assert (row["a"], row["b"], row["verdict"]) == ("3des-sha1", "aes128gcm16", verdict.word)
    assert verdict.cpu is not None
    assert (row["cpu_verdict"], row["cpu_ratio"]) == (verdict.cpu_word, verdict.cpu.value)
    assert (table["method"] == "searches").sum() == 2 * 2
    assert (espbench.load(small.path).findings["test"] == PAIRED).any()
    assert not (espbench.load(small.path).results["test"] == PAIRED).any(), "as in results.csv"


def test_what_cannot_be_compared_is_refused_as_by_the_command(small: RunDirectory) -> None:
    with pytest.raises(UsageError, match="nothing to compare by kernel"):
        espbench.compare(small.path, by="kernel")


def test_an_allowed_difference_is_told(tmp_path: Path) -> None:
    first, second = (synthetic_run.build(tmp_path, SMALL, name) for name in ("first", "second"))
    second.update_manifest(line_rate_bps=1e10)
    with pytest.raises(UsageError, match="line rate"):
        espbench.compare(first.path, second.path, by="run")
    table = espbench.compare(first.path, second.path, by="run", reference="second", allow_different=True)
    assert table.attrs["differences"] == ["line rate: first: 1e+09 bit/s; second: 1e+10 bit/s"]
    assert set(table["a"]) == {"second"}


# ── the package ──────────────────────────────────────────────────────────────────────────────────────────────────

SLOW = "('numpy', 'pandas', 'pydantic', 'vl_convert')"
DRAWING = "('numpy', 'pandas', 'vl_convert')"  # a process that measures pays for no drawing and no comparing


@pytest.mark.parametrize(
    ("script", "loaded"),
    [
        (f"import sys, espbench; print([m for m in {SLOW} if m in sys.modules])", "[]"),
        (
            "import sys; from espbench.cli import main\n"
            f"sys.argv = ['espbench', 'validate', {str(ROOT / 'plans' / 'quick.yaml')!r}]\n"
            "try:\n    main.main()\nexcept SystemExit:\n    pass\n"
            f"print([m for m in {DRAWING} if m in sys.modules])",
            "[]",
        ),
        ("import sys, espbench; espbench.load; print('pandas' in sys.modules)", "True"),
    ],
)
def test_pandas_is_paid_for_by_whom_uses_it(script: str, loaded: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == loaded


def test_the_package_has_the_names_it_documents_and_no_others() -> None:
    assert {"load", "load_many", "compare", "Run", "EspbenchError", "UnreadableRun"} <= set(dir(espbench))
    for name in espbench.__all__:
        assert getattr(espbench, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        espbench.lod  # type: ignore[attr-defined]  # noqa: B018
    assert (Path(espbench.__file__).parent / "py.typed").is_file()


def test_the_document_lists_every_column_with_its_frames_type_and_unit() -> None:
    """The columns of each frame are a part of the API (docs/columns.md)."""
    frames = {
        "results": one_run._RESULTS,
        "findings": one_run._FINDINGS,
        "trials": trials.COLUMNS,
        "profile": csv_file.COLUMNS,
        "compare": verdicts._COLUMNS,
        "runs": many_runs._RUNS,
        "series": (*many_runs._SERIES, *many_runs._OF_SERIES),
        "points": many_runs._POINTS,
        "changes": many_runs._CHANGES,
        "check": measuring._CHECKED,
    }
    of: dict[str, list[str]] = {}
    for name, columns in frames.items():
        for column in columns:
            of.setdefault(column, []).append(name)
    expected = {
        column: [
            ", ".join(names),
            "timestamp" if column in many_runs._TIMES else kind(column).dtype,
            kind(column).unit or "",
        ]
        for column, names in of.items()
    }
    document = (Path(__file__).parents[3] / "docs" / "columns.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in document.splitlines() if line.startswith("| `")]
    listed = {row[0].strip(" `"): [cell.strip() for cell in row[1:4]] for row in rows}
    assert listed == expected
    assert len(rows) == len(listed)
    assert all(row[4].strip() for row in rows)
