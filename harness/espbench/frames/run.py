# SPDX-License-Identifier: Apache-2.0
"""A run directory as data frames, and several runs in one data frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    """One run on disk, as `load` returns it. Its data frames are made when first asked for, and then kept.

    `DataFrame.attrs["units"]` of each data frame has the unit of every numeric column. Unknown values are missing
    (NaN, <NA>), never zero. docs/columns.md defines each column.
    """

    def __init__(
        self, directory: RunDirectory, results: Sequence[Outcome | Finding], damage: list[str]
    ) -> None:
        """Take what `load` has read; damage: the trials that are left out because they are damaged, and why."""
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
        """Everything about the run that is neither a trial nor a result, as a typed record."""
        return self.directory.manifest

    @cached_property
    def results(self) -> pd.DataFrame:
        """The rows of `results.csv`: one per case and loss goal; for tests other than throughput, one per case.

        The columns of the file, then `frame_bytes` (the size; missing for a mix, whose name is in `frame_size`),
        `is_lower_bound` (the DUT may be faster than `throughput_fps`) and `is_short` (trials shorter than RFC 2544
        24 wants). `throughput_fps` is missing unless `status` is OK or LOWER_BOUND.
        """
        return frame((_of_result(r) for r in self._results if r.test != PAIRED), _RESULTS)

    @cached_property
    def findings(self) -> pd.DataFrame:
        """The rows of `findings.csv`: one per case and quantity, of the tests other than throughput.

        The columns of the file, then the origin of the figures (`trials`, `encryption`, `words`, `reasons`,
        `warnings`, `rfc2544_deviations`), `frame_bytes` and `is_short`. `value`, `minimum`, `maximum` and `stdev`
        are in the `unit` of their row. If a case has no figure, `quantity` is empty and `n` is 0.
        """
        return frame(
            (row for r in self._results if isinstance(r, Finding) for row in _of_finding(r)), _FINDINGS
        )

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row per trial of `trials.jsonl`, in the order in which they were made, void ones included.

        `is_void`: INVALID, or a trial of a search that lost frames only in stalls of the host or the sender;
        `is_disturbed`: INVALID only because of the host; `is_violated`: frames crossed without encryption. Rates,
        frames and loss are of both directions together.
        Trials of a comparison at fixed loads belong to no case of the plan: of the columns that identify the case,
        they only have `case`.
        """
        return frame_of_trials(self.directory)

    @cached_property
    def profile(self) -> pd.DataFrame:
        """The rows of `profile.csv`, which `espbench profile` writes: one per function of each gateway.

        `instructions` are those of a trial with this number of `frames`; `instructions_per_frame` is their ratio.
        UnreadableRun if the run has no profile.
        """
        file = self.path / profiles.FILE
        if not file.is_file():
            raise UnreadableRun(
                f"{self.path}: no profile\n  expected: a run that espbench profile made, with a {profiles.FILE}\n"
                f"  got: a run without one\n  what to do: espbench profile {self.path}, and load the run that it names"
            )
        try:
            of_gateways = profiles.read(file.read_text(encoding="utf-8"), str(file))
        except (EspbenchError, OSError, ValueError) as error:
            where = "" if isinstance(error, EspbenchError) else f"{file}: cannot read: "
            raise UnreadableRun(f"{where}{error}\n  what to do: profile the run again") from error
        return frame((row for profile in of_gateways for row in profiles.rows(profile)), profiles.COLUMNS)

    def records(self) -> Iterator[Trial]:
        """Return the trials as typed records, with each direction, the places of frame loss, and the latency
        histograms.
        """
        return self.directory.trials()


RunLike = Run | str | PathLike[str]


def load(run: RunLike, *, allow_damaged: bool = False) -> Run:
    """Read a run directory as it is on disk now; the run may still be in progress.

    UnreadableRun if it is no run, or is damaged. allow_damaged: leave out the trials that are not as they were
    written, and list them in `Run.damage`.
    """
    if isinstance(run, Run):
        return run
    path = Path(run)
    with no_collection():
        try:
            directory = RunDirectory.open(path)
        except UsageError as error:
            raise UnreadableRun(str(error)) from error
        results = directory.results()
        damage = [str(damaged) for damaged in directory.damage(results)]
    if damage and not allow_damaged:
        listed = "".join(f"\n    {text}" for text in damage)
        raise UnreadableRun(
            f"{path / 'trials.jsonl'}: damaged\n  expected: every line as it was written\n  got:{listed}\n"
            f"  what to do: `espbench run --resume {path}` measures these cases again; or leave their "
            "trials out of the frames: espbench.load(…, allow_damaged=True)"
        )
    return Run(directory, results, damage)


def load_many(*runs: RunLike | Iterable[RunLike], table: Table = "results") -> pd.DataFrame:
    """Return one table of several runs, one below the other, with `run` and `platform` as the first columns.

    `run` is the run's name, or the part of its path that distinguishes it from the others, as in `compare`.
    UnreadableRun as for `load`; UsageError if no run is named, or one is named twice.
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
    """Return the loaded runs of these runs and lists of runs, in their order."""
    return [
        load(run) for named in runs for run in ([named] if isinstance(named, Run | str | PathLike) else named)
    ]


def _of_result(result: Outcome | Finding) -> dict[str, Any]:
    at_least = result.is_lower_bound if isinstance(result, Outcome) else result.status == "LOWER_BOUND"
    return {**outcome_files.row(result), **_marks(result), "is_lower_bound": at_least}


def _of_finding(finding: Finding) -> Iterator[dict[str, Any]]:
    beside = {name: getattr(finding, name) for name in _BESIDE_FIGURES} | _marks(finding)
    return ({**row, **beside} for row in finding_files.rows(finding))


def _marks(result: Outcome | Finding) -> dict[str, Any]:
    return {"frame_bytes": frame_bytes(result.frame_size), "is_short": result.is_short}
