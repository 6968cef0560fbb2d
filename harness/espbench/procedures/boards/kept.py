# SPDX-License-Identifier: Apache-2.0
"""The figures of a board's test that a run has: on disk in the plan's order, each before the next is begun."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from espbench.results import RunDirectory
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult
from espbench.results.records import Records

Result = TypeVar("Result", AcceleratorResult, PublicKeyResult)
Figure = TypeVar("Figure", bound=Hashable)


@dataclass(frozen=True)
class File(Generic[Result, Figure]):
    """A file of results. figure_of: returns the figure that a result is of. wording: returns a result as text for
    people. is_valid: returns whether a result need not be measured again when a run is resumed.
    """

    name: str
    read: Callable[[Path], Records[Result]]
    save: Callable[[Path, Sequence[Result]], None]
    figure_of: Callable[[Result], Figure]
    wording: Callable[[Result], str]
    is_valid: Callable[[Result], bool] = lambda result: True


class Kept(Generic[Result, Figure]):
    """The store of a run's figures. operations: the number for each figure. Results of other numbers, and those of the
    earlier run that are not valid, are measured again.
    """

    def __init__(
        self,
        file: File[Result, Figure],
        listed: Sequence[Figure],
        operations: int,
        directory: RunDirectory,
        note: Callable[[str], None],
    ) -> None:
        self.operations = operations
        self._file: File[Result, Figure] = file
        self._listed = listed
        self._directory = directory
        self._note = note
        records = file.read(directory.path)
        self._done: dict[Figure, Result] = {
            file.figure_of(r): r for r in records.whole if r.operations == operations and file.is_valid(r)
        }
        if records.damaged:
            note(f"{file.name}: {records} not as written; measured again")
            file.save(directory.path, self.results)

    @property
    def results(self) -> list[Result]:
        """Return the results that the run has, in the plan's order."""
        return [self._done[figure] for figure in self._listed if figure in self._done]

    def missing(self) -> list[Figure]:
        """Return the figures that the run does not have yet."""
        return [figure for figure in self._listed if figure not in self._done]

    def take(self, result: Result) -> None:
        """Add a result; it is on disk when this returns."""
        self._done[self._file.figure_of(result)] = result
        self._file.save(self._directory.path, self.results)
        self._note(self._file.wording(result))
