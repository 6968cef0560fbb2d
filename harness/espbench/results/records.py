# SPDX-License-Identifier: Apache-2.0
"""Reads a file that holds one record a line, as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from espbench.errors import EspbenchError

_Kind = TypeVar("_Kind", bound=BaseModel)


def read_records(path: Path, kind: type[_Kind]) -> list[_Kind]:
    """Return the records of a file; none where there is no such file. EspbenchError names a damaged line."""
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            records.append(kind.model_validate_json(line))
        except ValidationError as error:
            raise EspbenchError(f"{path}:{number}: damaged: {error}") from error
    return records
