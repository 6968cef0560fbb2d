# SPDX-License-Identifier: Apache-2.0
"""The file for Prometheus: how far a run is, counted on when the run is continued, never a reason to end it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from espbench.cli.progress import TerminalObserver
from espbench.cli.side_by_side import ManyCases
from espbench.errors import MachineLacks, UsageError
from espbench.results import RunDirectory
from espbench.results.exports import prometheus_file
from espbench.results.exports.prometheus_file import PrometheusFile
from espbench.terms import PAIRED
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(stacks=("xfrm",), suites=("3des-sha1",), sizes=(64, 256, 1280), trials_per_case=4)
needs_the_library = pytest.mark.needs("prometheus-client")


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Three cases; of 256 bytes the results are VIOLATED, of 1280 INVALID."""
    return synthetic_run.build(tmp_path / "runs", SHAPE)


def read(file: Path) -> dict[str, float]:
    """Metric → value, the name of the run left out."""
    values = {}
    for line in file.read_text().splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            labels = [label for label in name.partition("{")[2].rstrip("}").split(",") if "run=" not in label]
            values[name.partition("{")[0].removeprefix("espbench_run_") + "".join(labels)] = float(value)
    return values


@needs_the_library
@pytest.mark.parametrize("many", [False, True])
def test_the_file_says_how_far_the_run_is(run: RunDirectory, tmp_path: Path, many: bool) -> None:
    """Told by the same events as the terminal, and counted on when a run is continued."""
    file = tmp_path / "espbench.prom"
    trials, results = list(run.trials()), run.results()
    (run.path / "trials.jsonl").write_bytes(
        b"".join((run.path / "trials.jsonl").read_bytes().splitlines(True)[:4])
    )
    run.save_results([result for result in results if result.case == trials[0].case])
    begun = RunDirectory.open(run.path)
    with PrometheusFile(file).begin(begun) as metrics:
        values = read(file)
        assert values["cases"] == 3
        assert (values["cases_done"], values["running"]) == (1, 1)
        assert values['trialsvalidity="VALID"'] == 4
        assert values['resultsstatus="OK"'] == 2
        console = Console(file=io.StringIO())
        observer = (
            ManyCases(console, None, metrics).of("a") if many else TerminalObserver(console, None, metrics)
        )
        for trial in trials[4:]:
            observer.trial_done(trial)
        for case in {trial.case for trial in trials}:  # the first is told again
            observer.case_done([result for result in results if result.case == case])
    values = read(file)
    assert (values["cases_done"], values["running"], values["time_left_seconds"]) == (3, 0, 0)
    assert values['trialsvalidity="VALID"'] + values['trialsvalidity="INVALID"'] == len(trials) == 12
    assert values['resultsstatus="OK"'] == values['resultsstatus="VIOLATED"'] == 2
    assert values["last_trial_timestamp_seconds"] > 1.6e9
    assert list(tmp_path.glob("*.prom*")) == [file]


@needs_the_library
def test_a_comparison_at_fixed_loads_is_no_case(run: RunDirectory, tmp_path: Path) -> None:
    file = tmp_path / "espbench.prom"
    with PrometheusFile(file).begin(run) as metrics:
        before = read(file)
        (first, *_) = run.results()
        metrics.case_done([first.model_copy(update={"case": "a-pair", "test": PAIRED})])
    assert read(file)["cases_done"] == before["cases_done"] == 3


@needs_the_library
def test_a_status_that_no_case_has_any_more_is_0(run: RunDirectory, tmp_path: Path) -> None:
    """A share of a cluster begins anew elsewhere."""
    file = tmp_path / "espbench.prom"
    with PrometheusFile(file).begin(run) as metrics:
        for result in run.results():
            metrics.case_done([result.model_copy(update={"status": "INVALID"})])
    values = read(file)
    assert (values['resultsstatus="OK"'], values['resultsstatus="INVALID"']) == (0, 3)


@needs_the_library
def test_the_time_left_is_that_of_the_terminal(
    run: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_file, "_EACH_S", 0.0)
    file = tmp_path / "espbench.prom"
    with PrometheusFile(file).begin(run) as metrics:
        ManyCases(Console(file=io.StringIO()), None, metrics).time_left(90.0)
        metrics.trial_done(next(run.trials()))
        assert read(file)["time_left_seconds"] == 90


@needs_the_library
def test_a_disk_that_refuses_the_file_ends_no_run(run: RunDirectory, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with PrometheusFile(folder / "espbench.prom").begin(run) as metrics:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        metrics.case_done(run.results())


@needs_the_library
def test_a_folder_that_is_not_there_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a file in a folder that exists"):
        PrometheusFile(tmp_path / "nowhere" / "espbench.prom")


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MachineLacks) as raised:
        PrometheusFile(tmp_path / "espbench.prom")
    assert "pip install 'espbench[metrics]'" in str(raised.value)
