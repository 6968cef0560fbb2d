# SPDX-License-Identifier: Apache-2.0
"""Makes data frames from rows; each column has a type and, if it holds numbers, a unit.

A column's name has the same meaning here as in the files of a run: `_fps` is a rate in frames/s, `_us` a time in µs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from espbench.quantities import UNIT_OF_ENDING

UNITS = "units"
"""The key of `DataFrame.attrs` that holds the units: column → unit, for every numeric column; empty: a plain number."""


@dataclass(frozen=True)
class Kind:
    """The kind of a column: its dtype, and the unit of its numbers (None if it has none)."""

    dtype: Literal["string", "bool", "Int64", "float64", "object"]
    unit: str | None = None


_TEXT = Kind("string")
_RATIO = Kind("float64", "ratio")
_OF_KIND: dict[Kind, tuple[str, ...]] = {
    Kind("bool"): (
        "rfc2544", "sustained", "is_lower_bound", "is_short", "is_void", "is_disturbed", "is_violated",
        "a_is_lower_bound", "b_is_lower_bound", "is_exact", "exactly",
    ),
    Kind("Int64", ""): ("ip_version", "repeat", "sequence", "attempt", "final_trial", "series"),
    Kind("Int64", "frames"): ("tx_frames", "rx_frames", "lost", "duplicated", "reordered", "corrupted", "frames"),
    Kind("Int64", "instructions"): ("instructions",),
    Kind("Int64", "trials"): ("trials", "void_finals"),
    Kind("Int64", "runs"): ("runs",),
    Kind("Int64", "measurements"): ("n", "repeats"),
    Kind("Int64", "bytes"): ("frame_bytes",),
    Kind("object", "bytes"): ("frame_size",),  # a number, or the name of a mix of sizes
    Kind("float64", "see column unit"): (
        "value", "minimum", "maximum", "stdev", "newest", "was", "now", "base", "low", "high", "change", "allowed",
    ),
    _RATIO: ("share", "loss_goal", "loss_bound", "at_least", "at_most"),
}  # fmt: skip
_NAMED = {name: of_names for of_names, names in _OF_KIND.items() for name in names}
_BY_ENDING = {
    **dict.fromkeys(
        ("instructions_home_per_frame", "instructions_office_per_frame", "instructions_per_frame"),
        Kind("float64", "instructions/frame"),
    ),
    **{
        ending: Kind("Int64" if ending == "_frames" else "float64", unit)
        for ending, unit in UNIT_OF_ENDING.items()
    },
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), _RATIO),
}


def kind(column: str) -> Kind:
    """Return the kind of a column with this name; text unless the name says otherwise."""
    by_ending = (each for ending, each in _BY_ENDING.items() if column.endswith(ending))
    return _NAMED.get(column) or next(by_ending, _TEXT)


def frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """Return a data frame with one row per mapping. A missing value or None becomes NaN or <NA>; a list is joined by
    `; `.
    """
    listed = list(rows)
    return frame_of_columns({name: [cell(row.get(name)) for row in listed] for name in columns}, columns)


def frame_of_columns(values: Mapping[str, Any], columns: Sequence[str]) -> pd.DataFrame:
    """Return a data frame from the values of each column, a list or an array, to which `cell` was already applied."""
    # These are arrays, because pandas aligns the index of each Series with those of the others, which copies
    # it.
    table = pd.DataFrame({name: _column(values[name], kind(name).dtype) for name in columns}, copy=False)
    table.attrs[UNITS] = units(columns)
    return table


def _column(values: Any, dtype: str) -> Any:
    """Return an array of this type; a list is converted by the fastest method for its values."""
    if dtype == "float64":
        return _numbers(values, "d") if isinstance(values, list) else np.array(values, dtype="float64")
    if dtype == "Int64" and isinstance(values, list) and (numbers := _numbers(values, "q")) is not None:
        return pd.array(numbers, dtype="Int64")
    return pd.Series(values, dtype=dtype).array


def _numbers(values: list[Any], code: Literal["d", "q"]) -> Any:
    """Return the numbers as an array of floats (d) or integers (q); None if an integer is missing or too large."""
    try:  # half the time that numpy takes for a list
        return np.frombuffer(array(code, values), dtype="float64" if code == "d" else "int64")
    except (TypeError, OverflowError):
        return np.array(values, dtype="float64") if code == "d" else None


def units(columns: Iterable[str]) -> dict[str, str]:
    """Return column → unit, for the columns that hold numbers."""
    return {name: unit for name in columns if (unit := kind(name).unit) is not None}


def frame_bytes(frame_size: object) -> int | None:
    """Return the frame size as a number; None for a mix of sizes, which has a name."""
    return frame_size if isinstance(frame_size, int) else None


def cell(value: object) -> object:
    """Return a value as a data frame has it: the items of a list become one text."""
    return "; ".join(map(str, value)) if isinstance(value, list) else value
