# SPDX-License-Identifier: Apache-2.0
"""Reads and writes `trials.jsonl`: one trial on each line, on disk before the next trial starts.

A power cut can only leave the last line incomplete, since it was being written. Readers skip an incomplete last line,
and the next `append` removes it. Every other line that is not as it was written is damage: it and the later trials of
its case are left out. `damage` names them, and `mend` removes them, so that they are measured again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from espbench.errors import EspbenchError, UnreadableRun
from espbench.results import format_1, seals
from espbench.results.durable import sync_directory, write_failure
from espbench.results.records import first_mistake
from espbench.terms import Trial

_READ_AHEAD = 1 << 20  # bytes
_Made = TypeVar("_Made")
_Place = tuple[int, int, int]  # of a line: its number (0: not known), offset and length
_NO_LINE = b"\n\n"
_CASE = re.compile(rb'^\{"case":"([^"\\]*)"')


@dataclass(frozen=True)
class Damage:
    """The place from which on the trials of a case are damaged or missing.

    case: empty if the line does not name it. sequence: the first trial that is missing. line: counted from 1; 0 if
    trials are missing after the last line.
    """

    case: str
    sequence: int
    line: int
    why: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}case {self.case or 'not known'}, from its trial {self.sequence} on: {self.why}"


@dataclass
class _Contents:
    """The content of the file: the undamaged lines, by case, and the damage."""

    believed: list[_Place] = field(default_factory=list)
    places: dict[str, list[_Place]] = field(default_factory=dict)  # the same, by case
    seals: dict[str, str] = field(default_factory=dict)  # case → the seal of its last line
    damage: list[Damage] = field(default_factory=list)
    end: int = 0  # bytes of whole lines

    def take(self, number: int, offset: int, line: bytes, case: str, seal: str = "") -> None:
        """Add an undamaged line; seal: its own, if it is known."""
        place = (number, offset, len(line))
        if (places := self.places.get(case)) is None:
            places = self.places[case] = []
        places.append(place)
        self.believed.append(place)
        self.seals[case] = seal or seals.follows(line, self.seals.get(case, ""))


class TrialLog:
    """The trials of one run. It has in memory only the places of the lines, so that a long run needs little memory.

    A reader (`espbench report` on a run in progress) sees the lines that existed when it first read the file.
    """

    def __init__(self, path: Path, format_: int) -> None:
        self.path = path
        self._format = format_  # of the run directory
        self._fd: int | None = None
        self._read: _Contents | None = None

    def create(self) -> None:
        """Make the empty file, and wait until it is on disk."""
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.fsync(fd)
        os.close(fd)
        sync_directory(self.path.parent)

    def append(self, trial: Trial) -> None:
        """Write one line and wait until it is on disk.

        If the line, or a part of it, cannot be written, the part is removed again, so that the file never has a part of
        a trial; raise EspbenchError then.
        """
        contents = self._contents()
        line = seals.sealed(trial, contents.seals.get(trial.case, ""))
        try:
            self._write(line)
        except OSError as error:
            kept = f"the {len(contents.believed)} trials before it are safe; this one is lost"
            raise write_failure(self.path, error, kept) from error
        contents.take(0, contents.end, line, trial.case)
        contents.end += len(line)

    def trials(self) -> Iterator[Trial]:
        """Yield every undamaged trial in the order of the file; raise EspbenchError, with the line, for a bad one."""
        for line, number, offset in self._believed():
            yield self._parse(line, _where(number, offset))

    def each(
        self, of_line: Callable[[bytes], _Made | None], of_trial: Callable[[Trial], _Made]
    ) -> Iterator[_Made]:
        """Yield the value of `of_line` for each line with a seal, which needs no other check.

        A line without a seal, or for which `of_line` returns None, is read as a record, and `of_trial` gets it.
        """
        sealed = self._format > 1
        for line, number, offset in self._believed():
            made = of_line(line) if sealed and seals.is_sealed(line) else None
            yield of_trial(self._parse(line, _where(number, offset))) if made is None else made

    def of_case(self, case: str) -> list[Trial]:
        """Return the trials of one case in order; the rest of the file is not read again."""
        places = self._contents().places.get(case, [])
        if not places:
            return []
        with self._opened() as file:
            trials_read = []
            for _, offset, length in places:
                file.seek(offset)
                trials_read.append(self._parse(file.read(length), f"byte {offset}"))
            return trials_read

    def counts(self) -> dict[str, int]:
        """Return the number of trials of each case, without reading their contents into memory."""
        return {case: len(places) for case, places in self._contents().places.items()}

    def damage(self, expected: Mapping[str, int] | None = None) -> list[Damage]:
        """Return the damage, in the order of the file; expected: the number of trials of each finished case."""
        contents = self._contents()
        missing = [
            Damage(case, have, 0, f"{count - have} of its {count} trials are not in the file")
            for case, count in (expected or {}).items()
            if (have := len(contents.places.get(case, []))) < count
            and case not in {damage.case for damage in contents.damage}
        ]
        return [*contents.damage, *missing]

    def mend(self, copy: Path, without: Collection[str] = ()) -> None:
        """Keep only the undamaged lines, without those of the cases `without`; the old file is kept as `copy`."""
        contents = self._contents()
        dropped = {place for case in without for place in contents.places.get(case, [])}
        self._rewrite([place for place in contents.believed if place not in dropped], copy)

    def arrange(self, cases: Sequence[str]) -> None:
        """Put the lines into the order of these cases, those of other cases last; do nothing to a damaged file."""
        contents = self._contents()
        rank = {case: number for number, case in enumerate(cases)}
        whose = {place: case for case, places in contents.places.items() for place in places}
        arranged = sorted(contents.believed, key=lambda place: rank.get(whose[place], len(rank)))
        if arranged != contents.believed and not contents.damage:
            self._rewrite(arranged)

    def _rewrite(self, places: Sequence[_Place], copy: Path | None = None) -> None:
        """Replace the file as a whole by these of its lines; the old file is kept as `copy`, if that is named."""
        self.close()
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            with self._opened() as old, temporary.open("wb") as new:
                for _, offset, length in places:
                    old.seek(offset)
                    new.write(old.read(length))
                new.flush()
                os.fsync(new.fileno())
            if copy is not None:
                os.link(self.path, copy)
            temporary.replace(self.path)
            sync_directory(self.path.parent)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise write_failure(self.path, error, "the file is as it was") from error
        self._read = None

    def close(self) -> None:
        """Close the file; nothing is pending, since every appended trial is on disk already."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _write(self, line: bytes) -> None:
        end = self._contents().end
        if self._fd is None:
            self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            os.ftruncate(self._fd, end)  # removes an incomplete last line
        try:
            rest = memoryview(line)
            while rest:  # a full disk takes a part first, and then raises OSError
                rest = rest[os.write(self._fd, rest) :]
            os.fsync(self._fd)
        except OSError:
            os.ftruncate(self._fd, end)
            raise

    def _contents(self) -> _Contents:
        if self._read is None:
            self._read = self._look()
        return self._read

    def _believed(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield each undamaged line with its number and offset."""
        with self._opened() as file:
            at = 0
            for number, offset, length in list(self._contents().believed):
                if offset != at:  # an unnecessary seek would discard the data that were read ahead
                    file.seek(offset)
                at = offset + length
                yield file.read(length), number, offset

    def _opened(self) -> BinaryIO:
        """Open the file to read it from its begin; raise UnreadableRun if that is not possible."""
        try:
            return self.path.open("rb", buffering=_READ_AHEAD)
        except OSError as error:
            raise UnreadableRun(
                f"{self.path}: cannot read: {error.strerror}\n"
                f"  what to do: restore {self.path.name} from a copy of the run, or measure again"
            ) from error

    def _look(self) -> _Contents:
        contents = _Contents()
        rejected: list[_Rejected] = []
        offset = 0
        unreadable: _Rejected | None = None  # if no line follows, a power cut left it incomplete
        seals_begun = False
        case, begin = "", _NO_LINE  # of the line before: its case, and how the lines of this case begin
        with self._opened() as file:
            for number, line in enumerate(file, start=1):
                if unreadable is not None:
                    rejected.append(unreadable)
                unreadable = None
                if not line.startswith(begin):
                    case, begin = _case_in(line)
                if case and (seal := seals.held(line, contents.seals.get(case, ""))):
                    contents.take(number, offset, line, case, seal)  # most lines; they need not be parsed
                    seals_begun = True
                elif (head := _head(line)) is None:
                    unreadable = _Rejected(number, case, None, "not a trial")
                elif why := self._why_not(line, head, contents, seals_begun=seals_begun):
                    rejected.append(_Rejected(number, head.case, head.sequence, why))
                else:
                    contents.take(number, offset, line, head.case)
                    seals_begun = seals_begun or head.sealed
                offset += len(line)
                if unreadable is None:
                    contents.end = offset
        contents.damage = _damage(rejected, contents)
        return contents

    def _why_not(self, line: bytes, head: _Head, contents: _Contents, *, seals_begun: bool) -> str:
        """Say why a line that can be read is damaged; empty if it is not."""
        have = len(contents.places.get(head.case, ()))
        misplaced = head.sequence != have and (head.sealed or seals_begun or head.sequence is not None)
        if seals.held(line, contents.seals.get(head.case, "")):
            return ""
        if misplaced:
            return f"trial {head.sequence}, expected trial {have}: a line is missing or not in its place"
        if head.sealed or seals_begun or seals.was_sealed(line):
            return "not as it was written"
        try:  # there is no seal to check
            self._trial(line)
        except ValidationError as error:
            return _not_a_trial(error)
        return ""

    def _parse(self, line: bytes, where: str) -> Trial:
        try:
            trial = self._trial(line)
        except ValidationError as error:
            raise EspbenchError(f"{self.path}: {where}: {_not_a_trial(error)}") from error
        trial.host.pop(seals.KEY, None)  # belongs to the log, not to the trial
        return trial

    def _trial(self, line: bytes) -> Trial:
        """Return the trial of a line; raise ValidationError."""
        if self._format == 1:
            return Trial.model_validate(format_1.trial(from_json(line)))
        return Trial.model_validate_json(line)


def _where(number: int, offset: int) -> str:
    """Return the place of a line in words; number: 0 if it is not known."""
    return f"line {number}" if number else f"byte {offset}"


def _not_a_trial(error: ValidationError) -> str:
    """Say what is wrong with a line, by its first mistake."""
    return f"not a trial: {first_mistake(error)}"


@dataclass(frozen=True)
class _Head:
    """The part of a line that says to which place of which case it belongs."""

    case: str
    sequence: int | None
    sealed: bool


@dataclass(frozen=True)
class _Rejected:
    """A damaged line, and why it is one."""

    line: int
    case: str
    sequence: int | None
    why: str


def _head(line: bytes) -> _Head | None:
    """Return the head of a line; None if it is not the line of a trial.

    A power cut may also leave a last line that has zeros in it.
    """
    if not line.endswith(b"\n"):
        return None
    try:
        value = from_json(line)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("case"), str):
        return None
    sequence, host = value.get("sequence"), value.get("host")
    whole = isinstance(sequence, int) and not isinstance(sequence, bool)
    return _Head(value["case"], sequence if whole else None, isinstance(host, dict) and seals.KEY in host)


def _case_in(line: bytes) -> tuple[str, bytes]:
    """Return the case that the beginning of a line names, even if the rest is damaged, and this beginning.

    If it names none: an empty text, and a beginning that no line has.
    """
    match = _CASE.match(line)
    return (match[1].decode(errors="replace"), match[0]) if match else ("", _NO_LINE)


def _damage(rejected: list[_Rejected], contents: _Contents) -> list[Damage]:
    """Return an entry for each case that lost trials, at its first damaged line, and for each other damaged line."""
    by_case: dict[str, Damage] = {}
    others: list[Damage] = []
    for line in rejected:
        have = len(contents.places.get(line.case, ()))
        lost = line.sequence is None or line.sequence >= have
        damage = Damage(line.case, have, line.line, line.why)
        if line.case and lost:
            by_case.setdefault(line.case, damage)
        else:
            others.append(damage)
    return sorted([*by_case.values(), *others], key=lambda damage: damage.line)
