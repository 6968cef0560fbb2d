# SPDX-License-Identifier: Apache-2.0
"""Reads and writes files of JSON records, one on each line, with a checksum of the line as its last key.

These files need no chain of checksums, as `trials.jsonl` has it (seals.py): a record names its figure, and a missing
record is measured again. Files of versions without checksums have none at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from espbench.errors import EspbenchError
from espbench.results.durable import to_json
from espbench.terms import Record

_Kind = TypeVar("_Kind", bound=Record)
_DIGITS = 16
_SEAL = re.compile(rb'^(\{.*),"seal":"([0-9a-f]{%d})"\}$' % _DIGITS, re.DOTALL)
# Such a line had a checksum, even if the name of its key or a digit is damaged.
_WAS_SEALED = re.compile(rb'"seal":|,"[^"]{4}":"[0-9a-f]{%d}"\}$' % _DIGITS)


class Records(NamedTuple, Generic[_Kind]):
    """The undamaged records of a file, and the numbers of the damaged lines, from 1."""

    whole: list[_Kind]
    damaged: list[int]

    def __str__(self) -> str:
        lines = ", ".join(map(str, self.damaged))
        return f"line {lines} is" if len(self.damaged) == 1 else f"lines {lines} are"


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake in a record: the key, and what is wrong with it."""
    first = error.errors()[0]
    if not first["loc"]:
        return f"expected an object with keys, got {_kind(first['input'])}"
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _kind(value: object) -> str:
    """Return what a value of a JSON document is, in words."""
    words = {list: "a list", str: "a text", dict: "another object", bool: "true or false", type(None): "null"}
    return words.get(type(value), "a number")


def sealed(records: Sequence[Record]) -> str:
    """Return the text of a file with these records and their checksums."""
    return "".join(
        f'{line[:-1]},"seal":"{_digest(line[:-1].encode())}"}}\n' for line in map(to_json, records)
    )


def read_what_is_whole(path: Path, kind: type[_Kind]) -> Records[_Kind]:
    """Return the undamaged records of a file, and which lines are damaged; none if there is no file."""
    whole: list[_Kind] = []
    damaged: list[int] = []
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    has_seals = any(_WAS_SEALED.search(line) for line in lines)
    for number, line in enumerate(lines, 1):
        try:
            if line:
                whole.append(kind.model_validate_json(_unsealed(line) if has_seals else line))
        except ValueError:  # pydantic's ValidationError is one
            damaged.append(number)
    return Records(whole, damaged)


def read_records(path: Path, kind: type[_Kind]) -> list[_Kind]:
    """Return the records of a file, none if there is no file; raise EspbenchError, which names damaged lines."""
    records = read_what_is_whole(path, kind)
    if records.damaged:
        raise EspbenchError(
            f"{path}:{records.damaged[0]}: damaged\n  expected: lines as espbench wrote them\n"
            f"  got: {records} not as written\n  what to do: espbench run --resume {path.parent} measures them again"
        )
    return records.whole


def _unsealed(line: bytes) -> bytes:
    """Return the line without its checksum; raise ValueError if the line is not as it was written."""
    match = _SEAL.match(line)
    if match is None or match[2].decode() != _digest(match[1]):
        raise ValueError("not as it was written")
    return match[1] + b"}"


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()[:_DIGITS]
