# SPDX-License-Identifier: Apache-2.0
"""Reads `trials.jsonl` as a data frame, without making a typed record of each line whose seal holds.

A sealed line is exactly as espbench wrote it. So only the fields of a row are read from it and put into columns;
making a `Trial` of each line takes six times as long. A line without a seal, or with a missing field, is read as a
`Trial`, which gives the same row.
"""

from __future__ import annotations

import gc
import json
import math
import operator
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator, core_schema

from espbench.frames.columns import cell, frame_bytes, frame_of_columns, kind
from espbench.results import RunDirectory
from espbench.terms import (
    GATEWAY_SPEED,
    CaseEntry,
    CaseIdentity,
    GatewayReading,
    Latency,
    Reason,
    Remark,
    Statement,
    Trial,
)

_GATEWAYS = ("home", "office")
_OF_GATEWAY = {
    "cpu_pct": "cpu_{}_pct",
    "cpu_us_per_frame": "cpu_{}_us_per_frame",
    "instructions_per_frame": "instructions_{}_per_frame",
    "encrypted_frames": "encrypted_{}_frames",
    "decrypted_frames": "decrypted_{}_frames",
}
_IDENTITY = tuple(CaseIdentity.model_fields)
_OF_TRIAL = (
    "sequence", "phase", "attempt", "validity", "intended_fps", "offered_fps", "intended_duration_s", "duration_s",
    "tx_frames", "rx_frames", "lost", "duplicated", "reordered", "corrupted", "frame_loss_ratio", "sustained",
    "reasons", "warnings", "not_measured",
)  # fmt: skip
_LATENCIES = {name: f"latency_{name}_us" for name in Latency.model_fields if name != "hdr"}
_READINGS = {
    column.format(gateway): (gateway, name) for name, column in _OF_GATEWAY.items() for gateway in _GATEWAYS
}
COLUMNS = (
    *_IDENTITY, *_OF_TRIAL, "frame_bytes", "is_void", "is_disturbed", "is_violated", "cpu_speed_pct",
    *_READINGS, *_LATENCIES.values(),
)  # fmt: skip
# Lines are read in batches of this size, so that their short-lived objects stay few.
_AT_ONCE = 100

_Row = tuple[Any, ...]


@contextmanager
def no_collection() -> Iterator[None]:
    """Switch off the search for reference cycles: when many records are made, it would take a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@no_collection()
def frame_of_trials(run: RunDirectory) -> pd.DataFrame:
    """Return a data frame with a row for each trial, in the order of the file. Raise EspbenchError that names a bad
    line.
    """
    columns = _columns(run)
    columns |= _identities(run.manifest.cases, columns["case"])
    columns["lost"] = np.subtract(columns["tx_frames"], columns["rx_frames"])
    invalid = (validity == "INVALID" for validity in columns["validity"])
    columns["is_void"] = [*map(operator.or_, invalid, columns[_IN_STALLS])]
    return frame_of_columns(columns, COLUMNS)


def _identities(entries: Sequence[CaseEntry], cases: list[str]) -> dict[str, Any]:
    """Return the columns that identify the case, made once per case and repeated for each of its trials."""
    numbers, names = pd.factorize(pd.Series(cases, dtype="object"))
    of_name = {entry.case: entry for entry in entries}
    known = [of_name.get(name) for name in names]
    values = {name: [getattr(entry, name, None) for entry in known] for name in _IDENTITY}
    values["case"] = list(names)
    values["frame_bytes"] = list(map(frame_bytes, values["frame_size"]))
    return {
        name: pd.Series(of_cases, dtype=kind(name).dtype).array.take(numbers)
        for name, of_cases in values.items()
    }


def _columns(run: RunDirectory) -> dict[str, Any]:
    """Return, by column, the fields that the lines themselves have."""
    columns = {name: _Column(name) for name in _ROW}
    rows = run.each_trial(_of_line, _of_trial)
    for some in _batches(rows):
        for column, values in zip(columns.values(), zip(*some, strict=True), strict=True):
            column.add(values)
    return {name: column.values() for name, column in columns.items()}


class _Column:
    """The values of a column as they will be in the data frame.

    Numbers go into an array with each batch, as long as none is missing (a missing float is NaN). Millions of objects
    that wait for the end of the file would take longer, because they are no longer in the CPU's cache then.
    """

    def __init__(self, name: str) -> None:
        self._made = _MADE.get(name)
        self._code = _CODES.get(kind(name).dtype, "")
        self._values: Any = array(self._code) if self._code else []

    def add(self, values: Sequence[Any]) -> None:
        """Add the values of a batch."""
        some = [self._made(value) for value in values] if self._made else values
        if isinstance(self._values, array):
            if (numbers := self._numbers(some)) is not None:
                self._values.extend(numbers)
                return
            self._values = list(self._values)
        self._values.extend(some)

    def values(self) -> Any:
        """Return all values: an array of numbers, or a list."""
        return np.array(self._values) if isinstance(self._values, array) else self._values

    def _numbers(self, values: Sequence[Any]) -> Any:
        """Return the values as an array; None if an integer is missing or too large."""
        try:
            return array(self._code, values)
        except (TypeError, OverflowError):
            floats = (math.nan if value is None else value for value in values)
            return array("d", floats) if self._code == "d" else None


def _batches(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    while some := list(islice(rows, _AT_ONCE)):
        yield some


def _of_line(line: bytes) -> _Row | None:
    """Return the fields of a sealed line; None if it is not exactly what espbench writes today, or if the loss of each
    direction must be known.
    """
    try:
        fields = _LINE.validate_json(_without_directions(line))
    except ValidationError:
        return None
    excused, excused_backlog = fields.pop("lost_in_stalls"), fields.pop("backlog_in_stalls")
    if (excused or excused_backlog) and fields["validity"] == "VALID":
        lost = fields["tx_frames"] - fields["rx_frames"]
        if excused_backlog or 0 < lost <= excused:
            return None
    return (*fields.values(), False)


def _without_directions(line: bytes) -> bytes:
    """Return the line without `per_direction`, which few rows need, often more than half of the line.

    No text can contain these keys unescaped.
    """
    begin = line.find(b',"per_direction":{')
    end = line.find(b',"gateways":{', begin)
    return line[:begin] + line[end:] if 0 < begin < end else line


def _of_trial(trial: Trial) -> _Row:
    """Return a row from a typed record."""
    readings = (getattr(trial.gateways.get(gateway), name, None) for gateway, name in _READINGS.values())
    latencies = (getattr(trial.latency_us, name) for name in _LATENCIES)
    return (
        *_PLAIN_OF(trial),
        trial.reasons,
        trial.warnings,
        trial.disturbed,
        trial.violated,
        trial.host.get(GATEWAY_SPEED),
        *readings,
        *latencies,
        trial.only_in_stalls,
    )


def _text(kind: type[Statement], statements: Sequence[Any]) -> str:
    if not statements:
        return ""
    if isinstance(statements[0], Statement):
        return "; ".join(map(str, statements))
    return _text_of_json(kind, json.dumps(statements))


@lru_cache(maxsize=1024)
def _text_of_json(kind: type[Statement], statements: str) -> str:
    """Return the sentences; cached, because the same few occur in many trials."""
    return "; ".join(str(kind.model_validate(statement)) for statement in json.loads(statements))


def _fields() -> dict[str, core_schema.TypedDictField]:
    """Return, by column, the fields of a line that a row needs, in the order of `_of_trial`, and those of stalls."""

    def needed(kind: Any, key: str) -> core_schema.TypedDictField:
        return core_schema.typed_dict_field(TypeAdapter(kind).core_schema, validation_alias=key)

    def or_else(default: FieldInfo | None, kind: Any, *path: str | int) -> core_schema.TypedDictField:
        """Return a field that may be missing; then it has the default of the field `default`, or None."""
        inner = TypeAdapter(kind).core_schema
        if default is None:
            schema = core_schema.with_default_schema(inner, default=None)
        else:
            schema = core_schema.with_default_schema(
                inner, default_factory=lambda: default.get_default(call_default_factory=True)
            )
        return core_schema.typed_dict_field(schema, required=False, validation_alias=[*path])

    plain = {name: Trial.model_fields[name] for name in _PLAIN}
    return {
        **{
            name: needed(of.annotation, name) if of.is_required() else or_else(of, of.annotation, name)
            for name, of in plain.items()
        },
        "reasons": needed(list[Any], "reason_codes"),
        "warnings": needed(list[Any], "warning_codes"),
        "is_disturbed": or_else(None, Any, "host", "disturbed"),
        "is_violated": or_else(None, Any, "proof", "violated"),
        "cpu_speed_pct": or_else(None, float | None, "host", GATEWAY_SPEED),
        **{
            column: or_else(None, GatewayReading.model_fields[name].annotation, "gateways", gateway, name)
            for column, (gateway, name) in _READINGS.items()
        },
        **{
            column: or_else(None, Latency.model_fields[name].annotation, "latency_us", name)
            for name, column in _LATENCIES.items()
        },
        **{name: or_else(None, Any, "host", name) for name in _OF_STALLS},
    }


# These make the value of a cell from the field of a line; for other columns, the two are the same.
_MADE: dict[str, Callable[[Any], object]] = {
    "reasons": partial(_text, Reason),
    "warnings": partial(_text, Remark),
    "not_measured": lambda names: cell(names) if names else "",
    "is_disturbed": bool,
    "is_violated": bool,
}
_CODES = {"float64": "d", "Int64": "q"}
_PLAIN = ("case", *(name for name in _OF_TRIAL if name not in ("lost", "reasons", "warnings")))
_PLAIN_OF = operator.attrgetter(*_PLAIN)
_IN_STALLS = "only_in_stalls"  # a column that no frame has
_OF_STALLS = ("lost_in_stalls", "backlog_in_stalls")
_FIELDS = _fields()
_ROW = (*(name for name in _FIELDS if name not in _OF_STALLS), _IN_STALLS)
# It makes a dictionary instead of a model, which takes a quarter less time.
_LINE = SchemaValidator(
    core_schema.typed_dict_schema(
        _FIELDS, extra_behavior="ignore", config=core_schema.CoreConfig(strict=True)
    )
)
