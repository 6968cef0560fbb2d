# SPDX-License-Identifier: Apache-2.0
"""Reads and writes run directories, which contain the manifest, trials, results and logs of a run.

<time>-<name>/
    manifest.json   plan.yaml   trials.jsonl   results.json   results.csv   findings.csv
    report.html     report.md   figures/       logs/          .lock
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from pydantic import ValidationError

from espbench.errors import UnreadableRun, UsageError
from espbench.results import contradictions, finding_files, outcome_files
from espbench.results.durable import refused_by_disk, sync_directory, to_json, write_atomically, write_failure
from espbench.results.records import first_mistake
from espbench.results.run_lock import NAME as LOCK
from espbench.results.run_lock import RunLock
from espbench.results.trial_log import Damage, TrialLog
from espbench.terms import (
    ARM_AT_FIXED_LOADS,
    PAIRED,
    CaseEntry,
    Finding,
    Manifest,
    Outcome,
    Trial,
    at_fixed_loads,
    kind_of_test,
)
from espbench.version import __version__

# Version of the run directory; espbench reads its own version and older ones.
#   1  the first; sentences without codes (format_1.py)
#   2  codes and values beside each sentence of trials and results, keys of quantities
FORMAT = 2

_Made = TypeVar("_Made")
_ANOTHER = "restore {name} from a copy of the run, or measure again"
_NAME_LIMIT = 60
# The name of an arm of a comparison at fixed loads, under which its trials are stored: that of a case, and which arm
# it is (runs/paired_run.py).


class RunDirectory:
    """One run on disk. `create` and `lock` make this process the only writer of the run until `close`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._log = TrialLog(path / "trials.jsonl", manifest.format)
        self._lock: RunLock | None = None
        self._marking = contradictions.Marking()
        self._json_line = outcome_files.Once(outcome_files.json_line)
        self._csv_line = outcome_files.Once(outcome_files.csv_line)
        self._finding_lines = outcome_files.Once(finding_files.csv_lines)

    @classmethod
    def create(cls, parent: Path, name: str, manifest: Manifest, plan_text: str) -> RunDirectory:
        """Make `<parent>/<time>-<name>` and lock it; two runs in the same second get different directories.

        The manifest is written last: a directory without one is not a run. Raise UsageError if no directory can be made
        there, and CannotWrite if the disk refuses it.
        """
        try:
            path = _new_directory(parent, name)
            (path / "logs").mkdir()
        except OSError as error:
            if refused_by_disk(error):
                raise write_failure(parent, error, "no run was started") from error
            raise UsageError(
                f"{parent}: cannot make a run directory there\n"
                "  expected: a folder in which you may make files, or a new name for one\n"
                f"  got: {'a file' if parent.is_file() else error.strerror}\n"
                "  what to do: name another folder with --out"
            ) from error
        run = cls(path, manifest)
        try:
            run.lock()
            run._log.create()
            write_atomically(path / "plan.yaml", plan_text)
            run.save_manifest(manifest)
            sync_directory(parent)
        except BaseException as error:
            run.close()
            if isinstance(error, OSError):
                raise write_failure(path, error, "no run was started") from error
            raise
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open an existing run, to read it or (after `lock`) to resume it; raise UsageError if it is not a run."""
        return cls(path, _read_manifest(path))

    @property
    def logs(self) -> Path:
        """The folder for the logs of the parts of a run."""
        return self.path / "logs"

    @property
    def flame_graph(self) -> Path:
        """The file with the flame graph of a run that `espbench profile` made; other runs have no such file."""
        return self.path / "profile.html"

    @property
    def plan_text(self) -> str:
        """The text of the plan as the user gave it."""
        return (self.path / "plan.yaml").read_text(encoding="utf-8")

    def lock(self) -> RunLock:
        """Become the only writer of the run and return the lock; a second call returns the same lock.

        Raise UsageError, which names the other process, if another one is writing.
        """
        if self._lock is None or not self._lock.held:
            self._lock = RunLock(self.path / LOCK)
            # Another process may have written since this one read the log, so the log is read again.
            self._log.close()
            self._log = TrialLog(self._log.path, self.manifest.format)
        return self._lock

    def append(self, trial: Trial) -> None:
        """Write a trial to disk; once this has returned, a power cut does not lose the trial.

        It takes the lock if this process does not hold it. Raise EspbenchError if the disk is full: the trials before
        are safe, and the file has no part of this one.
        """
        self.lock()
        self._log.append(trial)

    def trials(self) -> Iterator[Trial]:
        """Return every trial in order, one at a time, without an incomplete last line and without damaged trials."""
        return self._log.trials()

    def each_trial(
        self, of_line: Callable[[bytes], _Made | None], of_trial: Callable[[Trial], _Made]
    ) -> Iterator[_Made]:
        """Yield for each trial, in order, the value of `of_line` if the line has a seal, else that of `of_trial`."""
        return self._log.each(of_line, of_trial)

    def trials_of(self, case: str) -> list[Trial]:
        """Return the trials of one case, in order."""
        return self._log.of_case(case)

    def trial_counts(self) -> dict[str, int]:
        """Return the number of trials on disk, by case."""
        return self._log.counts()

    def damage(self, results: Sequence[Outcome | Finding] | None = None) -> list[Damage]:
        """Return the lines of `trials.jsonl` that are not as they were written; all other methods leave them out.

        results: those of the run, if the caller has read them.
        """
        found = self.results() if results is None else results
        # The trials of a comparison at fixed loads are stored under its arms; its case itself has none.
        return self._log.damage({result.case: result.trials for result in found if result.test != PAIRED})

    def mend(self) -> list[str]:
        """Remove the trials of each damaged case from the damage on, so that the run can be resumed; say what was done.

        Other tests at the same point may use the damaged case's throughput as their load, so their trials are all
        removed. So are those of a comparison at fixed loads if its loads may change, or if trials of one arm are
        damaged. Results whose trials are removed are removed too; a copy of the damaged file is kept.
        """
        self.lock()
        damage = self.damage()
        if not damage:
            return []
        cut = {damaged.case for damaged in damage}
        entries = {entry.case: entry for entry in self.manifest.cases}
        begun = self._log.counts()
        searched_again = [
            entries[case] for case in cut & set(entries) if kind_of_test(entries[case].test) == "throughput"
        ]
        anew = sorted(
            {
                entry.case
                for again in searched_again
                for entry in entries.values()
                if kind_of_test(entry.test) != "throughput"
                and _point(entry) == _point(again)
                and begun.get(entry.case)
            }
            | {case for case in begun if self._is_pair_in_doubt(case, entries, searched_again, cut)}
        )
        kept = [result for result in self.results() if result.case not in cut and result.case not in anew]
        if len(kept) < len(self.results()):
            self.save_results(kept)
        copy = _free_name(self._log.path.with_suffix(".damaged.jsonl"))
        self._log.mend(copy, without=anew)
        said = [f"{self._log.path}: {damaged}; measured again from there" for damaged in damage]
        said += [
            f"{case}: begun anew, its loads or its other half are of trials that are measured again"
            for case in anew
        ]
        return [*said, f"the damaged file is kept as {copy}"]

    def _is_pair_in_doubt(
        self, case: str, entries: dict[str, CaseEntry], searched_again: Sequence[CaseEntry], cut: set[str]
    ) -> bool:
        """Return whether a case is an arm of a comparison at fixed loads whose trials or loads are in doubt.

        They are if trials of either arm are damaged, or if a throughput is searched again that its loads may depend on.
        The loads are shares of the throughputs of both arms, which are measured at the same point except for one axis.
        """
        arm = ARM_AT_FIXED_LOADS.fullmatch(case)
        if arm is None or case in entries or (entry := entries.get(arm[1])) is None:
            return False
        arms = {at_fixed_loads(arm[1], letter) for letter in "ab"}
        return bool(arms & cut) or any(_beside(entry) == _beside(again) for again in searched_again)

    def filed(self, cases: Collection[str]) -> list[str]:
        """Return the names under which trials of these cases are filed; also those of comparisons at fixed loads."""
        begun = self._log.counts()
        return [
            name
            for name in begun
            if name in cases or ((of := ARM_AT_FIXED_LOADS.fullmatch(name)) and of[1] in cases)
        ]

    def begin_anew(self, cases: Collection[str]) -> Path | None:
        """Remove all trials and results of these cases; the manifest stays as it is.

        Returns where the file of trials is kept as it was; None if it had none of these.
        """
        self.lock()
        filed = self.filed(cases)
        names = {*cases, *map(at_fixed_loads, cases)}
        results = self.results()
        kept = [result for result in results if result.case not in names]
        if len(kept) < len(results):
            self.save_results(kept)
        if not filed:
            return None
        copy = _free_name(self._log.path.with_suffix(".left.jsonl"))
        self._log.mend(copy, without=filed)
        return copy

    def arrange(self, cases: Sequence[str]) -> None:
        """Put the trials into the order of these cases, those of other cases last; the lines do not change."""
        self.lock()
        self._log.arrange(cases)

    def save_manifest(self, manifest: Manifest) -> None:
        """Replace `manifest.json` as a whole."""
        write_atomically(self.path / "manifest.json", to_json(manifest, indent=2) + "\n")
        self.manifest = manifest

    def update_manifest(self, **changes: Any) -> None:
        """Replace these fields of the manifest."""
        self.save_manifest(self.manifest.model_copy(update=changes))

    def save_results(self, results: Sequence[Outcome | Finding]) -> None:
        """Replace `results.json`, `results.csv` and, if there are findings, `findings.csv`, each as a whole.

        Throughputs that contradict each other are marked.
        """
        results = self._marking(results)
        write_atomically(self.path / "results.json", outcome_files.json_text(results, self._json_line))
        write_atomically(self.path / "results.csv", outcome_files.csv_text(results, self._csv_line))
        findings = [result for result in results if isinstance(result, Finding)]
        if findings or (self.path / "findings.csv").exists():
            write_atomically(
                self.path / "findings.csv", finding_files.csv_text(findings, self._finding_lines)
            )

    def rewrite_results(self) -> bool:
        """Write the tables anew from the results that were saved last, and return True.

        If another process is writing the run, return False: it keeps them up to date, and would lose a result that it
        saves meanwhile.
        """
        held = self._lock is not None and self._lock.held
        try:
            lock = self.lock()
        except UsageError:
            return False
        except OSError as error:
            raise write_failure(self.path / LOCK, error, "nothing was changed") from error
        try:
            self.save_results(self.results())
        finally:
            if not held:
                lock.release()
        return True

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes of throughput tests that were saved last; none before the first case has ended."""
        return [result for result in self.results() if isinstance(result, Outcome)]

    def findings(self) -> list[Finding]:
        """Return the results of the other tests that were saved last."""
        return [result for result in self.results() if isinstance(result, Finding)]

    def results(self) -> list[Outcome | Finding]:
        """Return outcomes and findings in the plan's order; those that belong to no case of the plan come last."""
        path = self.path / "results.json"
        if not path.exists():
            return []
        try:
            saved = outcome_files.from_json_text(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            again = f"`espbench run --resume {self.path}` works the results out again from trials.jsonl"
            to_do = f"restore {{name}} from a copy of the run; or move it away, and {again}"
            raise _unreadable(path, f"not a results file: {error}", to_do) from error
        # The file has outcomes first; sorting keeps the order within a case.
        place = {entry.case: number for number, entry in enumerate(self.manifest.cases)}
        # An earlier espbench saved them without marks.
        return contradictions.marked(sorted(saved, key=lambda result: place.get(result.case, len(place))))

    def close(self) -> None:
        """Release the lock and close the files; every appended trial is on disk already."""
        self._log.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def slug(name: str) -> str:
    """Return a name that fits into file names: only ASCII letters, digits, dots, dashes and underscores."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", ascii_name).strip("-.")[:_NAME_LIMIT] or "run"


def _point(entry: CaseEntry) -> tuple[object, ...]:
    """Return the point of a case: everything in which cases differ except the test."""
    return (
        entry.dut, entry.stack, entry.suite, entry.ip_version, entry.frame_size, entry.direction, entry.repeat
    )  # fmt: skip


def _beside(entry: CaseEntry) -> tuple[object, ...]:
    """Return the conditions that a case shares with every case that it can be compared with, whatever the axis."""
    return entry.test, entry.frame_size, entry.direction, entry.ip_version


def _free_name(path: Path) -> Path:
    """Return the path; if there is such a file already, the path with a number."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def _new_directory(parent: Path, name: str) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{slug(name)}"
    number = 1
    while True:
        path = parent / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path


def _read_manifest(path: Path) -> Manifest:
    file = path / "manifest.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        got = "a directory without one" if path.is_dir() else "a file" if path.exists() else "nothing there"
        raise UsageError(
            f"{path}: not a run directory\n"
            "  expected: a directory with a manifest.json, as `espbench run` makes it\n"
            f"  got: {got}\n"
            "  what to do: name one of the directories in runs/ (or where --out said)"
        ) from None
    except ValueError as error:
        raise _unreadable(file, f"damaged, not JSON: {error}", _ANOTHER) from error
    except OSError as error:
        raise _unreadable(file, f"cannot read: {error.strerror}", _ANOTHER) from error
    written = document.get("format") if isinstance(document, dict) else None
    if isinstance(written, int) and written > FORMAT:
        writer = document.get("espbench", "of a later version")
        raise UsageError(
            f"{path}: run directory of a newer format\n"
            f"  expected: format {FORMAT} or older, which this espbench ({__version__}) reads\n"
            f"  got: format {written}, written by espbench {writer}\n"
            f"  what to do: read it with espbench {writer} or newer; nothing was changed"
        )
    try:
        return Manifest.model_validate(document)
    except ValidationError as error:
        raise _unreadable(file, f"damaged: {first_mistake(error)}", _ANOTHER) from error


def _unreadable(file: Path, what: str, to_do: str) -> UnreadableRun:
    return UnreadableRun(f"{file}: {what}\n  what to do: {to_do.format(name=file.name)}")
