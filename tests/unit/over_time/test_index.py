# SPDX-License-Identifier: Apache-2.0
"""The index of many runs: what it says is what the run directories say, whatever became of either."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from espbench.cli.main import app
from espbench.errors import UsageError
from espbench.over_time import Change, History, facts, index, telling
from espbench.reporting.over_time import page
from espbench.results import RunDirectory
from espbench.runs.workers import machines
from espbench.sentences import Code
from espbench.terms import Remark
from support.synthetic import run as synthetic_run
from support.synthetic.series import SHAPE, Night, write

VIRTUAL = Night(is_virtual=True)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder for runs."""
    return tmp_path / "runs"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def virtual(factor: float = 1.0, **more: str) -> Night:
    return Night(factor=factor, is_virtual=True, **more)  # type: ignore[arg-type]


def changes(runs: Path, **named: str) -> list[Change]:
    with History.open([runs]) as history:
        return history.changes(**named)


def seen(runs: Path, file: Path | None = None) -> object:
    """All that the index says."""
    with History.open([runs], file) as history:
        series = history.series()
        return (
            history.runs(),
            [
                (s.plan, s.case, s.figure, s.runs, s.newest, s.newest_status, history.points(s))
                for s in series
            ],
            [
                (c.run, c.before, c.was, c.now, c.series.case, c.series.figure, c.differs)
                for c in history.changes()
            ],
        )


def test_a_change_is_named_by_its_first_run_with_what_else_changed(runs: Path) -> None:
    """The kernel of the gateways changed with it; the host's did too, which is in no figure of virtual time."""
    for number in range(6):
        changed = number >= 3
        write(
            runs,
            number,
            virtual(0.9 if changed else 1.0, kernel="6.1.2" if changed else "6.1.1", host_kernel=str(number)),
        )
    jumps = changes(runs, case="64 B", figure="throughput")
    assert [(c.run, c.before, c.word, c.exactly) for c in jumps] == [
        ("20260104T120000Z-nightly", "20260103T120000Z-nightly", "worse", True)
    ]
    assert jumps[0].ratio == pytest.approx(0.9, abs=1e-6)
    differs = [("6.1.1", "6.1.2")] * 2
    assert [(was, now) for _, was, now in jumps[0].differs] == differs
    assert all("kernel" in what for what, _, _ in jumps[0].differs)
    assert telling.where(jumps[0]) == "at 20260104T120000Z-nightly"
    assert "-10 %, worse" in telling.move(jumps[0])
    costs = changes(runs, case="64 B", figure="instructions per frame, home")
    assert [c.word for c in costs] == ["worse"]


@pytest.mark.needs("jumpavg")
def test_a_noisy_series_is_changed_near_a_run(runs: Path) -> None:
    """The host's kernel may be the reason in real time."""
    scatter = [1.003, 0.997, 1.001, 0.999, 1.002, 0.998]
    for number in range(12):
        changed = number >= 6
        factor = scatter[number % 6] * (1.2 if changed else 1.0)
        write(runs, number, Night(factor=factor, host_kernel="Linux 6.13" if changed else "Linux 6.12"))
    (jump,) = changes(runs, case="512 B", figure="throughput")
    assert telling.where(jump) == "near 20260107T120000Z-nightly"
    assert jump.word == "better"
    assert jump.differs == [("host: kernel", "Linux 6.12", "Linux 6.13")]


def test_a_fact_of_the_machine_has_one_name() -> None:
    """The conditions of a check name the same machine and programs otherwise; a change would be told twice."""
    manifest = synthetic_run.manifest(synthetic_run.cases_of(SHAPE), "nightly")
    known = [
        facts.of_machine(
            manifest.model_copy(update={"host": {"machine": number}, "tools": {"generator": number}}), number
        )
        for number in ("01", "02")
    ]
    assert facts.differences(*known) == [("host: machine", "01", "02"), ("tool: generator", "01", "02")]


def test_nothing_else_changed_is_said(runs: Path) -> None:
    write(runs, 0, VIRTUAL)
    write(runs, 1, virtual(1.1))
    jumps = changes(runs, figure="throughput")
    assert len(jumps) == len(SHAPE.sizes)
    assert telling.what_else(jumps[0]) == (
        "nothing else in its manifest differs from that of 20260101T120000Z-nightly"
    )


@pytest.mark.parametrize("other", [{"plan": "weekly"}, {"trial": "4s"}])
def test_other_conditions_are_another_series(runs: Path, other: dict[str, str]) -> None:
    """Another plan, other settings: their figures are not held against each other."""
    write(runs, 0, VIRTUAL)
    write(runs, 1, virtual(1.1, **other))
    assert changes(runs) == []
    with History.open([runs]) as history:
        assert len(history.series()) == 2 * 3 * len(SHAPE.sizes)


@pytest.mark.parametrize(
    ("changed", "is_another"),
    [
        ({"options": {"tunnels": 100}}, True),
        ({"stack_kind": "strongswan"}, True),
        ({"options": {"prefix": "/opt/mine", "version": "5.9.14"}}, False),
        ({"stack_kind": "xfrm"}, False),  # as of older runs, which have its label alone
    ],
)
def test_other_options_of_a_stack_are_another_series(
    runs: Path, changed: dict[str, Any], is_another: bool
) -> None:
    """A hundred tunnels cost more than one, whatever the stack's version."""
    write(runs, 0, VIRTUAL)
    directory = write(runs, 1, virtual(1.1))
    with directory:
        cases = [case.model_copy(update=changed) for case in directory.manifest.cases]
        directory.update_manifest(cases=cases)
    with History.open([runs]) as history:
        assert {series.runs for series in history.series()} == {1 if is_another else 2}


def test_in_real_time_another_cpu_is_another_series(runs: Path) -> None:
    write(runs, 0, Night())
    write(runs, 1, Night(cpu="another"))
    with History.open([runs]) as history:
        assert [series.runs for series in history.series(figure="throughput")] == [1] * 4


def test_in_real_time_another_machine_is_another_series(runs: Path) -> None:
    """A run on two machines has points in the series of each."""
    for number, names in enumerate([("a", "a"), ("b", "b"), ("a", "b")]):
        directory = write(runs, number, Night())
        cases = [entry.case for entry in directory.manifest.cases]
        of_case = dict(zip(cases, names, strict=True))
        host = directory.manifest.host
        with directory:
            directory.update_manifest(
                machines={name: {"host": host} for name in names}, machine_of_case=of_case
            )
    with History.open([runs]) as history:
        throughput = [s for s in history.series() if s.figure == "throughput"]
        assert len(throughput) == 4
        assert sorted(s.runs for s in throughput) == [1, 1, 2, 2]
        named = {telling.case_name(s) for s in throughput}
        assert len(named) == 4
        assert {s.machine for s in throughput} == {"a", "b"}
        assert all(
            f"[machine {s.machine}, conditions {s.conditions}]" in telling.case_name(s) for s in throughput
        )


def test_series_of_other_settings_are_told_apart_by_their_conditions(runs: Path) -> None:
    """Both are of one plan, edited between the runs."""
    write(runs, 0, virtual())
    write(runs, 1, virtual(trial="4s"))
    with History.open([runs]) as history:
        series = history.series(figure="throughput", case=" 64 B")
        assert len({telling.case_name(s) for s in series}) == len(series) == 2
        assert all(telling.case_name(s).endswith(f" [conditions {s.conditions}]") for s in series)


def test_a_series_that_has_its_name_alone_is_named_without_its_conditions(runs: Path) -> None:
    write(runs, 0, Night())
    write(runs, 1, virtual(plan="other"))
    with History.open([runs]) as history:
        assert {telling.case_name(s) for s in history.series()} == {s.case for s in history.series()}
        assert {s.machine for s in history.series(plan="other")} == {""}


def write_of_two(runs: Path, number: int, night: Night, **of_b: Any) -> None:
    """Write a run in real time on two machines: `a` measured plain, `b` measured xfrm.

    night: its kernels are those of the gateways on `b`. of_b: what the tables of `b` have that those of `a` have not.
    """
    shape = dataclasses.replace(SHAPE, stacks=("plain", "xfrm"), sizes=(64,))
    directory = write(runs, number, night, shape)
    tables = {"host": directory.manifest.host, "placement": {"tester": {"x": [0]}}}
    manifest = directory.manifest.model_copy(update={"machines": {"a": tables, "b": tables}})
    of_plain = {manifest.context_of_case[entry.case] for entry in manifest.cases if entry.stack == "plain"}
    contexts = {
        name: {**context, "kernel": {"home": "6.1.0"}} if name in of_plain else context
        for name, context in manifest.contexts.items()
    }
    with directory:
        directory.update_manifest(
            **machines.merged(manifest, "b", of_b),
            contexts=contexts,
            machine_of_case={entry.case: "a" if entry.stack == "plain" else "b" for entry in manifest.cases},
        )


@pytest.mark.needs("jumpavg")
def test_what_else_changed_is_that_of_the_machine_that_measured(runs: Path) -> None:
    """The kernels of one machine do not explain the loss of another, and a table in a table explains its own."""
    scatter = [1.003, 0.997, 1.001, 0.999, 1.002, 0.998]
    for number in range(12):
        changed = number >= 6
        write_of_two(
            runs,
            number,
            Night(scatter[number % 6] * (0.8 if changed else 1), kernel="6.1.2" if changed else "6.1.1"),
            host={"kernel": "Linux 6.13" if changed else "Linux 6.12"},
            placement={"tester": {"x": [1 if changed else 0]}},
        )
    (of_a,) = changes(runs, case="plain", figure="throughput")
    (of_b,) = changes(runs, case="xfrm", figure="throughput")
    assert (of_a.run, of_a.differs) == (of_b.run, []) == ("20260107T120000Z-nightly", [])
    assert of_b.differs == [
        ("host: kernel", "Linux 6.12", "Linux 6.13"),
        ("placement.tester.x", "0", "1"),
        ("synthetic: kernel.home", "6.1.1", "6.1.2"),
        ("synthetic: kernel.office", "6.1.1", "6.1.2"),
    ]
    done = CliRunner().invoke(app, ["history", str(runs), "--figure", "throughput"])
    assert (
        done.output.count("what else changed: nothing else") == done.output.count("placement.tester.x") == 1
    )
    with History.open([runs]) as history:
        of_run = [history.runs()[number].facts for number in (0, -1)]
    assert [known["placement.tester.x"] for known in of_run] == ["0", "a: 0; b: 1"]
    assert [known["host: kernel"] for known in of_run] == ["Linux 6.12", "a: Linux 6.12; b: Linux 6.13"]


def test_espbench_itself_does_not_begin_a_series_anew(runs: Path) -> None:
    write(runs, 0, VIRTUAL)
    write(runs, 1, virtual(1.1, espbench="0.2.0"))
    jumps = changes(runs, figure="throughput")
    assert jumps
    assert all(change.differs == [("espbench", "0.1.0", "0.2.0")] for change in jumps)


def test_what_is_no_figure_is_no_point_but_a_status(runs: Path) -> None:
    """An exact series that is VIOLATED from one run on has changed there."""
    write(runs, 0, VIRTUAL)
    write(runs, 1, Night(is_virtual=True, status="VIOLATED"))
    jumps = changes(runs, case="64 B", figure="throughput")
    assert [(c.now, c.now_status, c.word) for c in jumps] == [(None, "VIOLATED", "other")]
    assert telling.move(jumps[0]).endswith("→ VIOLATED frames/s")


def test_a_bound_is_no_figure_whatever_its_status(runs: Path) -> None:
    """A search that met the plan's maximum is OK; with another maximum, the DUT has not changed. What a frame costs is
    a figure all the same.
    """
    for number, factor in enumerate((1.0, 0.9)):
        made = write(runs, number, virtual(factor))
        at_limit = [
            outcome.model_copy(update={"warnings": [Remark.of(Code.AT_MAXIMUM, fps=1.0)]})
            for outcome in made.outcomes()
        ]
        with made:
            made.save_results(at_limit)
    with History.open([runs]) as history:
        listed = history.series(figure="throughput")
        points = [point for series in listed for point in history.points(series)]
        assert {(point.value, point.status) for point in points} == {(None, "LOWER_BOUND")}
        assert history.changes(figure="throughput") == []
        assert {change.word for change in history.changes(figure="instructions")} == {"worse"}


@pytest.mark.needs("jumpavg")
@pytest.mark.parametrize("is_virtual", [True, False])
def test_an_old_figure_is_not_the_newest_in_silence(runs: Path, is_virtual: bool) -> None:
    """Since the second night nothing is forwarded encrypted: its costs, and the figures of other tests, are absent."""
    shape = dataclasses.replace(SHAPE, sizes=(64,), tests=("throughput", "latency"))
    write(runs, 0, Night(is_virtual=is_virtual), shape)
    latency = next(case for case in synthetic_run.cases_of(shape) if case.test == "latency")
    _, results = synthetic_run.results_of(latency, shape)
    for number, status in enumerate(["OK", *["VIOLATED"] * 3]):
        made = write(
            runs, number, Night(is_virtual=is_virtual, status=None if status == "OK" else "VIOLATED"), shape
        )
        more = results if status == "OK" else [
            result.model_copy(update={"status": status, "quantities": []}) for result in results
        ]  # fmt: skip
        kept = [
            outcome.model_copy(update={"instructions_home_per_frame": None, "cpu_home_us_per_frame": None})
            if status != "OK" else outcome
            for outcome in made.outcomes() if outcome.test == "throughput"
        ]  # fmt: skip
        with made:
            made.save_results([*kept, *more])
    with History.open([runs]) as history:
        listed = history.series()
        assert {"throughput", "latency"} == {series.test for series in listed}
        assert {(series.runs, series.newest_status) for series in listed if series.newest} == {
            (4, "VIOLATED")
        }
        assert len([s for s in listed if s.newest]) > 2
        ended = [(c.run, c.now, c.now_status) for c in history.changes(figure="throughput")]
        assert ended == [("20260102T120000Z-nightly", None, "VIOLATED")]
    done = CliRunner().invoke(app, ["history", str(runs), "--list", "series", "--figure", "throughput"])
    assert "frames/s (newest run: VIOLATED)" in done.output


def _add(runs: Path) -> None:
    write(runs, 9, virtual(2.0))


def _remove(runs: Path) -> None:
    shutil.rmtree(next(path for path in sorted(runs.iterdir()) if "0103" in path.name))


def _measure_again(runs: Path) -> None:
    write(runs, 2, virtual(3.0))


def _damage(runs: Path) -> None:
    (next(runs.glob("*0102T*")) / "results.json").write_text("{")


def _violate(runs: Path) -> None:
    write(runs, 9, Night(is_virtual=True, status="VIOLATED"))


def _only_violated(runs: Path) -> None:
    """Without a run that has them, the costs per frame of a VIOLATED run are no series."""
    _violate(runs)
    seen(runs)
    for path in sorted(runs.iterdir())[:-1]:
        shutil.rmtree(path)


def _nothing(runs: Path) -> None:
    pass


@pytest.mark.parametrize("do", [_add, _remove, _measure_again, _damage, _violate, _only_violated, _nothing])
def test_the_index_follows_the_directories(runs: Path, tmp_path: Path, do: Callable[[Path], None]) -> None:
    """Brought up to date it says what one made anew does."""
    for number in range(4):
        write(runs, number, virtual(1.0 + number // 2))
    before = seen(runs)
    do(runs)
    after = seen(runs)
    assert after == seen(runs, tmp_path / "anew.sqlite")
    assert (after == before) == (do is _nothing)


def test_an_index_that_is_none_is_made_anew(runs: Path, tmp_path: Path) -> None:
    """Damaged, of another version, or gone."""
    write(runs, 0, VIRTUAL)
    file = tmp_path / "index.sqlite"
    before = seen(runs, file)
    made = file.read_bytes()
    for text in (made[:100] + b"no database " * 1000, b""):
        file.write_bytes(text)
        assert seen(runs, file) == before
    file.unlink()
    assert seen(runs, file) == before
    _execute(file, "PRAGMA user_version = 1", "DROP TABLE series")
    assert seen(runs, file) == before


def test_an_index_in_the_cache_is_made_anew_whatever_it_is(runs: Path, cache: Path) -> None:
    """Earlier versions did not mark theirs, and the folder is espbench's own."""
    write(runs, 0, VIRTUAL)
    before = seen(runs)
    (file,) = (cache / "espbench" / "history").iterdir()
    _execute(file, "PRAGMA user_version = 2", "PRAGMA application_id = 0", "DROP TABLE series")
    assert seen(runs) == before
    file.write_bytes(b"no database " * 1000)
    assert seen(runs) == before


def _text(file: Path) -> None:
    file.write_text("notes\n" * 1000)


def _of_another_program(file: Path) -> None:
    _execute(file, "CREATE TABLE photos (name TEXT)", "INSERT INTO photos VALUES ('one')")


@pytest.mark.parametrize("make", [_text, _of_another_program])
def test_a_file_that_is_no_index_stays_as_it_is(
    runs: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """Neither a text nor the database of another program is taken for an index that has to be made anew."""
    write(runs, 0, VIRTUAL)
    file = tmp_path / "mine"
    make(file)
    before = file.read_bytes()
    done = CliRunner().invoke(app, ["history", str(runs), "--index", str(file)])
    assert isinstance(done.exception, UsageError)
    assert f"--index {file}: not an index of espbench history" in str(done.exception)
    assert file.read_bytes() == before


def _execute(file: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def test_a_copy_of_a_run_confirms_nothing(runs: Path) -> None:
    """It stands in no series; when the run itself is gone, the copy stands for it."""
    for number in range(4):
        write(runs, number, virtual(0.9 if number == 3 else 1.0))
    archive = runs / "archive"
    last = runs / "20260104T120000Z-nightly"
    for name in ("again", "once more"):
        shutil.copytree(last, archive / name)
    with History.open([runs]) as history:
        copies = [run for run in history.runs() if run.problem]
        assert sorted(run.name for run in copies) == ["again", "once more"]
        assert {run.problem for run in copies} == {f"a copy of {last.resolve()}"}
        assert {series.runs for series in history.series()} == {4}
    shutil.rmtree(last)
    with History.open([runs]) as history:
        assert {series.runs for series in history.series()} == {4}
        assert [run.problem for run in history.runs() if run.problem] == [
            f"a copy of {(archive / 'again').resolve()}"
        ]


@pytest.mark.parametrize("changed", [{"asked": {"seed": "2"}}, {"conditions": {"seed": 2}}])
def test_runs_that_began_in_the_same_second_are_no_copies(runs: Path, changed: dict[str, Any]) -> None:
    """`espbench run PLAN --seed N &`, several times in one line of a shell."""
    for folder in ("one", "two"):
        made = write(runs / folder, 0, VIRTUAL)
        if folder == "two":
            made.save_manifest(made.manifest.model_copy(update=changed))
    with History.open([runs]) as history:
        assert [run.problem for run in history.runs()] == ["", ""]


def test_the_copy_with_more_results_stands_for_a_run(runs: Path) -> None:
    """A backup was made while the last cases were measured; the backup may be read first, or be found first."""
    whole = write(runs / "runs", 0, VIRTUAL).path
    backup = runs / "backup" / "early"
    shutil.copytree(whole, backup)
    early = RunDirectory.open(backup)
    with early:
        early.save_results(early.results()[:1])
    with History.open([runs / "backup"], runs / "index.sqlite") as history:
        some = len(history.series())
    for file in (runs / "index.sqlite", None):
        with History.open([runs], file) as history:
            assert len(history.series()) > some
            assert [(run.name, run.problem) for run in history.runs() if run.problem] == [
                ("early", f"a copy of {whole.resolve()}")
            ]


def test_runs_that_did_not_change_are_not_read_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        write(runs, number, VIRTUAL)
    before = seen(runs)
    monkeypatch.setattr("espbench.over_time.index._read", lambda *_: pytest.fail("it was read again"))
    assert seen(runs) == before


def test_a_run_that_cannot_be_read_is_told_and_costs_no_other(runs: Path) -> None:
    write(runs, 0, VIRTUAL)
    broken = write(runs, 1, VIRTUAL).path
    (broken / "manifest.json").write_text("{}")
    with History.open([runs]) as history:
        good, bad = history.runs()
        assert (good.problem, bad.name) == ("", broken.name)
        assert "manifest.json" in bad.problem
    done = CliRunner().invoke(app, ["history", str(runs)])
    assert done.exit_code == 0
    assert f"left out: {broken}: manifest.json: damaged" in done.output.replace("\n", "")


def without_profiles(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["conditions"]["profiles"] = {"synthetic": 5, "other": None}
    (path / "manifest.json").write_text(json.dumps(manifest))


def with_null_profiles(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["conditions"]["profiles"] = None
    (path / "manifest.json").write_text(json.dumps(manifest))


def with_half_a_character(path: Path) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"name": "half \ud800"}))


ODD = [
    without_profiles,
    with_null_profiles,
    with_half_a_character,
    lambda path: path.rename(os.fsdecode(os.fsencode(path) + b"-\xff")),
    lambda path: (path / "results.json").write_text('{"format":1,"outcomes":[5]}'),
    lambda path: (path / "results.json").write_text("[" * 100_000),
    lambda path: (path / "manifest.json").write_text("[" * 100_000),
]


@pytest.mark.parametrize("spoil", ODD)
def test_one_odd_run_costs_no_other(runs: Path, spoil: Callable[[Path], object]) -> None:
    """An edited file or a name of another encoding ended the whole command."""
    write(runs, 0, VIRTUAL)
    spoil(write(runs, 1, VIRTUAL).path)
    write(runs, 2, virtual(0.9))
    with History.open([runs]) as history:
        listed = {run.name: run.problem for run in history.runs()}
        assert len(listed) == 3
        assert [listed[f"2026010{day}T120000Z-nightly"] for day in (1, 3)] == ["", ""]
        assert history.changes(figure="throughput")
    done = CliRunner().invoke(app, ["history", str(runs), "--list", "runs"])
    assert done.exit_code == 0, done.output
    assert seen(runs) == seen(runs)


def test_a_folder_whose_name_is_not_utf_8_may_be_named(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"runs-\xff")
    write(folder, 0, VIRTUAL)
    with History.open([folder]) as history:
        (run,) = history.runs()
    assert (run.problem, Path(run.path).parent.name) == ("", r"runs-\udcff")


def test_a_folder_that_is_removed_meanwhile_has_no_runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(runs / "kept", 0, VIRTUAL)
    (runs / "gone").mkdir()
    scan = os.scandir

    def scan_late(folder: str) -> Any:
        if folder.endswith("gone"):
            raise FileNotFoundError(folder)
        return scan(folder)

    monkeypatch.setattr("espbench.over_time.index.os.scandir", scan_late)
    with History.open([runs]) as history:
        assert len(history.runs()) == 1


def test_values_that_the_index_refuses_cost_one_run_and_not_the_index(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index was deleted and made again, and the second time ended in a traceback."""
    write(runs, 0, VIRTUAL)
    with History.open([runs]):
        pass
    write(runs, 1, VIRTUAL)

    def twice(database: sqlite3.Connection, owner: Any, of_keys: Any) -> None:
        save(database, owner, of_keys)
        save(database, owner, of_keys)

    save = index._save_figures
    monkeypatch.setattr(index, "_save_figures", twice)
    monkeypatch.setattr(index, "_remove", lambda _: pytest.fail("the index was removed"))
    with History.open([runs]) as history:
        good, bad = history.runs()
        assert good.problem == ""
        assert "IntegrityError: UNIQUE constraint failed" in bad.problem
        assert {series.runs for series in history.series()} == {1}


def test_what_is_left_out_is_named_with_its_folder_and_copies_are_not_called_unreadable(runs: Path) -> None:
    whole = write(runs, 0, VIRTUAL).path
    copy = runs / "again"
    shutil.copytree(whole, copy)
    dateless = write(runs, 1, VIRTUAL)
    dateless.save_manifest(dateless.manifest.model_copy(update={"started": "yesterday"}))
    copied, undated = f"{copy}: a copy of {whole}", f"{dateless.path}: Invalid isoformat string: 'yesterday'"
    done = CliRunner().invoke(app, ["history", str(runs), "--list", "runs"])
    for text in (copied, undated):
        assert f"left out: {text}" in done.output.replace("\n", "")
    with History.open([runs]) as history:
        page_data = page.data(history, runs)
        text = page.write(history, runs / "page").read_text(encoding="utf-8")
    assert (page_data["copies"], page_data["unread"]) == ([copied], [undated])
    assert "1 run left out</strong>, of which another folder has a copy" in text
    assert "1 run left out</strong>, which could not be read" in text


def test_runs_at_any_depth_are_found_and_links_are_not_followed(runs: Path) -> None:
    write(runs / "a" / "b", 0, VIRTUAL)
    write(runs / "c", 1, VIRTUAL)
    (runs / "loop").symlink_to(runs)
    with History.open([runs]) as history:
        assert len(history.runs()) == 2
    with History.open([next((runs / "c").iterdir())]) as history:
        assert len(history.runs()) == 1


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir(), lambda p: p.write_text("x")])
def test_folders_without_runs_are_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "there")
    with pytest.raises(UsageError, match="what to do"):
        History.open([tmp_path / "there"])


def test_the_command_lists_changes_series_and_runs(runs: Path) -> None:
    """The lists are text, or JSON with the same figures."""
    shape = synthetic_run.Shape(
        stacks=("xfrm",), suites=("aes128gcm16",), sizes=(64,), goals=(0.0,), repeats=3
    )
    for number in range(3):
        write(runs, number, virtual(1.5 if number == 2 else 1.0), shape)

    def said(*more: str) -> str:
        done = CliRunner().invoke(app, ["history", str(runs), *more])
        assert done.exit_code == 0, done.output
        return done.output

    text = said("--figure", "throughput")
    assert "at 20260103T120000Z-nightly (2026-01-03T12:00:00+00:00), after 20260102T120000Z-nightly" in text
    assert "+50 %, better" in text
    assert "3 runs, 1 series; 1 change in 1 of them" in text
    (change,) = map(json.loads, said("--figure", "throughput", "--json").splitlines())
    assert (change["run"], change["word"]) == ("20260103T120000Z-nightly", "better")
    (series,) = map(json.loads, said("--list", "series", "--figure", "throughput", "--json").splitlines())
    assert [point["run"] for point in series["points"]] == [f"2026010{n}T120000Z-nightly" for n in (1, 2, 3)]
    assert series["points"][-1]["value"] == change["now"]
    listed = [json.loads(line)["name"] for line in said("--list", "runs", "--json").splitlines()]
    assert listed == [f"2026010{n}T120000Z-nightly" for n in (1, 2, 3)]
    assert "exact" in said("--list", "series")
    assert "20260103T120000Z-nightly" in said("--list", "runs")
    assert said("--plan", "no such").splitlines() == [
        "3 runs, 0 series; 0 changes in 0 of them",
        "no series has these texts in its names: --plan 'no such'; there are the plans nightly",
    ]
