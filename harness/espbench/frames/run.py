# SPDX-License-Identifier: Apache-2.0
"""A run directory as data frames, and several runs in one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from espbench.comparison.sorting.samples import names_of
from espbench.errors import EspbenchError, UnreadableRun, UsageError
from espbench.frames.columns import UNITS, frame, frame_bytes, units
from espbench.frames.trials import frame_of_trials, no_collection
from espbench.profile import csv_file as profiles
from espbench.results import RunDirectory, finding_files, outcome_files
from espbench.terms import PAIRED, Finding, Manifest, Outcome, Trial

Table = Literal["results", "trials", "findings"]
_RESULTS = (*outcome_files.COLUMNS, "frame_bytes", "is_lower_bound", "is_short")
_BESIDE_FIGURES = ("trials", "encryption", "words", "reasons", "warnings", "rfc2544_deviations")
_FINDINGS = (*finding_files.COLUMNS, *_BESIDE_FIGURES, "frame_bytes", "is_short")


class Run:
    """One run on disk: what `load` returns. Its frames are made when first asked for, and then kept.

    `DataFrame.attrs["units"]` of each frame has the unit of every numeric column. What is not known is missing (NaN,
    <NA>), never zero. docs/python.md says what each column means.
    """

    def __init__(
        self, directory: RunDirectory, results: Sequence[Outcome | Finding], damage: list[str]
    ) -> None:
        """Made by `load`; damage: which trials are left out since they cannot be believed, and why."""
        self.directory = directory
        self.damage = damage
        self._results = results

    def __repr__(self) -> str:
        return f"<espbench run {self.path}: {len(self.manifest.cases)} cases>"

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory.path

    @property
    def manifest(self) -> Manifest:
        """Everything about the run that is no trial and no result, as a typed record."""
        return self.directory.manifest

    @cached_property
    def results(self) -> pd.DataFrame:
        """The rows of `results.csv`: one a case and loss goal, one a case of another test than throughput.

        The columns of the file, then `frame_bytes` (the size; missing for a mix, which has a name in `frame_size`),
        `is_lower_bound` (the DUT may be faster than `throughput_fps`) and `is_short` (against RFC 2544 24).
        `throughput_fps` is missing unless `status` is OK or LOWER_BOUND.
        """
        return frame((_of_result(r) for r in self._results if r.test != PAIRED), _RESULTS)

    @cached_property
    def findings(self) -> pd.DataFrame:
        """The rows of `findings.csv`: one a case and quantity, of the tests other than throughput.

        The columns of the file, then how the figures came about (`trials`, `encryption`, `words`, `reasons`,
        `warnings`, `rfc2544_deviations`), `frame_bytes` and `is_short`. `value`, `minimum`, `maximum` and `stdev` are
        in the `unit` of their row. `quantity` is empty and `n` 0 where a case has no figure.
        """
        return frame(
            (row for r in self._results if isinstance(r, Finding) for row in _of_finding(r)), _FINDINGS
        )

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row a trial of `trials.jsonl`, in the order they were made, void ones included.

        `is_void`: INVALID, so it neither passed nor missed; `is_disturbed`: for the host's sake alone; `is_violated`:
        frames crossed without encryption. Rates, frames and loss are of both directions together. Trials of a
        comparison at fixed loads are of no case of the plan: all that says which case is missing but `case`.
        """
        return frame_of_trials(self.directory)

    @cached_property
    def profile(self) -> pd.DataFrame:
        """Return the rows of `profile.csv`, which `espbench profile` writes: for each function of each gateway.

        `instructions` are those of a trial with so many `frames`, `instructions_per_frame` their ratio. UnreadableRun
        if the run has no profile.
        """
        file = self.path / profiles.FILE
        if not file.is_file():
            raise UnreadableRun(
                f"{self.path}: no profile\n  expected: a run that espbench profile made, with a {profiles.FILE}\n"
                f"  got: a run without one\n  what to do: espbench profile {self.path}, and load the run that it names"
            )
        with _saying_what_to_do(file, "profile the run again"):
            of_gateways = profiles.read(file.read_text(encoding="utf-8"), str(file))
        return frame((row for profile in of_gateways for row in profiles.rows(profile)), profiles.COLUMNS)

    def records(self) -> Iterator[Trial]:
        """Return the trials as typed records: each direction, the place of every loss, the histograms of latency."""
        return self.directory.trials()


RunLike = Run | str | PathLike[str]


def load(run: RunLike, *, allow_damaged: bool = False) -> Run:
    """Read a run directory, which may still be growing: what is on disk now.

    UnreadableRun where it is none, or is damaged. allow_damaged: leave out the trials that are not as they were
    written, and say which in `Run.damage`.
    """
    if isinstance(run, Run):
        return run
    path = Path(run)
    with _saying_what_to_do(path, "restore manifest.json from a copy of the run, or measure again"):
        directory = RunDirectory.open(path)
    again = f"espbench run --resume {path}"
    anew = f"move it away, and `{again}` works the results out again from trials.jsonl"
    with no_collection(), _saying_what_to_do(path, f"restore results.json from a copy of the run; or {anew}"):
        results = directory.results()
    with (
        no_collection(),
        _saying_what_to_do(path, "restore trials.jsonl from a copy of the run, or measure again"),
    ):
        damage = [str(damaged) for damaged in directory.damage(results)]
    if damage and not allow_damaged:
        listed = "".join(f"\n    {text}" for text in damage)
        raise UnreadableRun(
            f"{path / 'trials.jsonl'}: damaged\n  expected: every line as it was written\n  got:{listed}\n"
            f"  what to do: `{again}` measures these cases again; or leave their trials out of the frames: "
            "espbench.load(…, allow_damaged=True)"
        )
    return Run(directory, results, damage)


def load_many(*runs: RunLike | Iterable[RunLike], table: Table = "results") -> pd.DataFrame:
    """Return one of the frames of several runs, one under the other, with `run` and `platform` as its first columns.

    `run` is the run's name, or as much of its path as tells it from the others: as `compare` names it. UnreadableRun
    as of `load`; UsageError where no run is named, or one twice.
    """
    loaded = load_each(runs)
    if not loaded:
        raise UsageError("espbench.load_many: expected at least one run, got none; name run directories")
    tables = []
    for name, run in zip(names_of([run.directory for run in loaded]), loaded, strict=True):
        part: pd.DataFrame = getattr(run, table).copy()
        for column, value in (("platform", run.manifest.platform), ("run", name)):
            part.insert(0, column, pd.Series(value, index=part.index, dtype="string"))
        tables.append(part)
    together = pd.concat(tables, ignore_index=True)
    together.attrs[UNITS] = units(together.columns)
    return together


def load_each(runs: Iterable[RunLike | Iterable[RunLike]]) -> list[Run]:
    """Runs and lists of runs, loaded, in their order."""
    return [
        load(run) for named in runs for run in ([named] if isinstance(named, Run | str | PathLike) else named)
    ]


@contextmanager
def _saying_what_to_do(path: Path, what_to_do: str) -> Iterator[None]:
    """Turn whatever goes wrong in reading into one UnreadableRun."""
    try:
        yield
    except UsageError as error:  # says itself what to do
        raise UnreadableRun(str(error)) from error
    except (EspbenchError, OSError, ValueError) as error:
        where = "" if isinstance(error, EspbenchError) else f"{path}: cannot read: "
        raise UnreadableRun(f"{where}{error}\n  what to do: {what_to_do}") from error


def _of_result(result: Outcome | Finding) -> dict[str, Any]:
    at_least = result.is_lower_bound if isinstance(result, Outcome) else result.status == "LOWER_BOUND"
    return {**outcome_files.row(result), **_marks(result), "is_lower_bound": at_least}


def _of_finding(finding: Finding) -> Iterator[dict[str, Any]]:
    beside = {name: getattr(finding, name) for name in _BESIDE_FIGURES} | _marks(finding)
    return ({**row, **beside} for row in finding_files.rows(finding))


def _marks(result: Outcome | Finding) -> dict[str, Any]:
    return {"frame_bytes": frame_bytes(result.frame_size), "is_short": result.is_short}
