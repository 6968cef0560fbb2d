# SPDX-License-Identifier: Apache-2.0
"""Reports the progress of a run in a file for the textfile collector of Prometheus' node exporter.

The file is replaced as a whole after a trial or a case, at most once a second, and at the end (docs/many-machines.md).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from espbench.errors import MachineLacks, UsageError, install_extra
from espbench.results.run_directory import RunDirectory
from espbench.terms import Finding, Outcome, Trial

_EACH_S = 1.0


class PrometheusFile:
    """The metrics of one run. Raise MachineLacks if prometheus-client is missing, UsageError if the folder is."""

    def __init__(self, file: Path) -> None:
        try:
            from prometheus_client import CollectorRegistry, Gauge, write_to_textfile  # noqa: PLC0415  (an extra)
        except ImportError:
            raise MachineLacks(
                "--metrics: the Python package prometheus-client is not installed",
                install_extra("metrics"),
            ) from None
        if not file.parent.is_dir():
            raise UsageError(
                f"--metrics {file}: expected a file in a folder that exists\n  got: no folder {file.parent}\n"
                "  what to do: name a file of the folder that node_exporter's --collector.textfile.directory names"
            )
        registry = CollectorRegistry()

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"espbench_run_{name}", text, ["run", *labels], registry=registry)

        self._cases = gauge("cases", "Cases of the run")
        self._done = gauge("cases_done", "Cases with a result")
        self._results = gauge("results", "Results by status", "status")
        self._trials = gauge("trials", "Trials on disk by validity", "validity")
        self._last = gauge("last_trial_timestamp_seconds", "When the last trial was written")
        self._left = gauge("time_left_seconds", "A rough guess of the time left")
        self._running = gauge("running", "1 while the run measures, 0 after its end")
        self._write: Callable[[], None] = lambda: write_to_textfile(str(file), registry)
        self._written = 0.0
        self._name = ""
        self._of_case: dict[str, list[str]] = {}  # case → statuses of its results

    def begin(self, run: RunDirectory) -> Self:
        """Count the trials and results that are on disk already, and write the file."""
        self._name = run.path.name
        self._of_case = {entry.case: [] for entry in run.manifest.cases}
        self._cases.labels(self._name).set(len(self._of_case))
        for validity, count in Counter(trial.validity for trial in run.trials()).items():
            self._trials.labels(self._name, validity).set(count)
        self._running.labels(self._name).set(1)
        self.case_done(run.results())
        self._save()
        return self

    def trial_done(self, record: Trial) -> None:
        """Count a trial that is on disk."""
        self._trials.labels(self._name, record.validity).inc()
        self._last.labels(self._name).set_to_current_time()
        self._save_at_times()

    def case_done(self, results: Iterable[Outcome | Finding]) -> None:
        """Count the cases of these results; it does no harm to report a case twice."""
        statuses_of: dict[str, list[str]] = {}
        for result in results:
            if result.case in self._of_case:  # otherwise it is a comparison at fixed loads
                statuses_of.setdefault(result.case, []).append(result.status)
        before = {status for statuses in self._of_case.values() for status in statuses}
        self._of_case |= statuses_of
        counted = Counter(status for statuses in self._of_case.values() for status in statuses)
        for status in before | counted.keys():  # a case that was measured again may have another status now
            self._results.labels(self._name, status).set(counted[status])
        self._done.labels(self._name).set(sum(map(bool, self._of_case.values())))
        self._save_at_times()

    def time_left(self, seconds: float) -> None:
        """Set the estimated time left, s."""
        self._left.labels(self._name).set(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.labels(self._name).set(0)
        self._left.labels(self._name).set(0)
        self._save()

    def _save_at_times(self) -> None:
        if time.monotonic() - self._written >= _EACH_S:
            self._save()

    def _save(self) -> None:
        """Write the file; ignore errors of the disk, since the time of the last trial shows how old the file is."""
        self._written = time.monotonic()
        try:
            self._write()
        except OSError:
            return
