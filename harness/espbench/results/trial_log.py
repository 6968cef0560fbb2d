# SPDX-License-Identifier: Apache-2.0
"""`trials.jsonl`: one trial a line, on disk before the next trial starts, readable after a power cut.

A power cut can tear only the line being written, the last one. Reading passes over a torn last
line; the next `append` removes it. A line that cannot be read anywhere else is damage, and an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from espbench.errors import EspbenchError
from espbench.results.durable import sync_directory, to_json, write_failure
from espbench.terms import Trial


class TrialLog:
    """The trials of one run. Holds only where each case's lines are, so a long run stays small in memory.

    A reader (`espbench report` on a run in progress) sees the lines there were when it first read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._end = 0  # bytes of whole lines
        self._lines_of: dict[str, list[tuple[int, int]]] | None = None  # case → (offset, length)

    def create(self) -> None:
        """Make the empty file, on disk."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.fsync(fd)
        os.close(fd)
        sync_directory(self.path.parent)

    def append(self, trial: Trial) -> None:
        """Write one line and wait until it is on disk.

        The line is written with one call; when the disk refuses it, or takes only a part, the part
        is removed again and EspbenchError says so: the file never holds half a trial.
        """
        line = (to_json(trial) + "\n").encode()
        index = self._index()
        try:
            self._write(line)
        except OSError as error:
            kept = f"the {sum(map(len, index.values()))} trials before it are safe; this one is lost"
            raise write_failure(self.path, error, kept) from error
        index.setdefault(trial.case, []).append((self._end, len(line)))
        self._end += len(line)

    def trials(self) -> Iterator[Trial]:
        """Every trial in the order they were made; EspbenchError names a damaged line."""
        for number, _, line in self._whole_lines():
            yield self._parse(line, f"line {number}")

    def of_case(self, case: str) -> list[Trial]:
        """The trials of one case in order; the rest of the file is not read again."""
        places = self._index().get(case, [])
        if not places:
            return []
        with self.path.open("rb") as file:
            found = []
            for offset, length in places:
                file.seek(offset)
                found.append(self._parse(file.read(length), f"byte {offset}"))
            return found

    def counts(self) -> dict[str, int]:
        """How many trials each case has, without reading their contents into memory."""
        return {case: len(places) for case, places in self._index().items()}

    def close(self) -> None:
        """Let go of the file; nothing is pending, every append has been on disk already."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, line: bytes) -> None:
        if self._fd is None:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            os.ftruncate(self._fd, self._end)  # a torn tail
        try:
            written = os.write(self._fd, line)
            if written < len(line):
                os.write(self._fd, line[written:])  # on a full disk this one says why
            os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._end)
            raise

    def _index(self) -> dict[str, list[tuple[int, int]]]:
        if self._lines_of is None:
            places: dict[str, list[tuple[int, int]]] = {}
            end = 0
            for _, offset, line in self._whole_lines():
                places.setdefault(from_json(line)["case"], []).append((offset, len(line)))
                end = offset + len(line)
            self._lines_of, self._end = places, end
        return self._lines_of

    def _whole_lines(self) -> Iterator[tuple[int, int, bytes]]:
        """(line number from 1, byte offset, line) of each readable line, a torn last one left out."""
        offset = 0
        unreadable: int | None = None
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if unreadable is not None:
                    raise EspbenchError(
                        f"{self.path}: line {unreadable} is not a trial, and lines follow it: damaged\n"
                        "  expected: one JSON object a line (only the last line may be torn)\n"
                        f"  to mend it: restore the file from a copy, or delete line {unreadable}"
                        " to measure that trial again"
                    )
                if _is_trial(line):
                    yield number, offset, line
                else:
                    unreadable = number
                offset += len(line)

    def _parse(self, line: bytes, where: str) -> Trial:
        try:
            return Trial.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"]))
            raise EspbenchError(f"{self.path}: {where}: not a trial: {key}: {first['msg']}") from error


def _is_trial(line: bytes) -> bool:
    # A power cut may also leave a last line of the right length with holes of zeros in it.
    if not line.endswith(b"\n"):
        return False
    try:
        value = from_json(line)
    except ValueError:
        return False
    return isinstance(value, dict) and isinstance(value.get("case"), str)
