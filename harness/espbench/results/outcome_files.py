# SPDX-License-Identifier: Apache-2.0
"""Writes results as `results.json` (everything) and `results.csv`, and reads `results.json`.

The CSV file has a row for each case and loss goal of throughput tests, and for each case of other tests.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from espbench.results import format_1
from espbench.results.durable import to_json
from espbench.results.records import first_mistake
from espbench.terms import PAIRED, Finding, Latency, Outcome

# Version of `results.json`; version 1 had sentences without codes (format_1.py).
FORMAT = 2

_HEAD = f'{{"format":{FORMAT},'

# Scripts of users rely on these eighteen columns: they are never renamed or moved.
CONTRACT_COLUMNS = (
    "case", "test", "dut", "stack", "suite", "frame_size", "direction", "loss_goal", "status",
    "throughput_fps", "throughput_mbps", "line_rate_pct", "trials", "final_trial_s", "rfc2544",
    "cpu_home_pct", "cpu_office_pct", "repeat",
)  # fmt: skip
LATENCY_COLUMNS = tuple(f"latency_{name}_us" for name in Latency.model_fields if name != "hdr")
FURTHER_COLUMNS = (
    *(name for name in Outcome.model_fields if name not in (*CONTRACT_COLUMNS, "latency_us", "answer")),
    *LATENCY_COLUMNS,
)
# The main figure of a test other than throughput; its other figures are in findings.csv.
FINDING_COLUMNS = ("load_fps", "quantity", "value", "unit")
COLUMNS = (*CONTRACT_COLUMNS, *FURTHER_COLUMNS, *FINDING_COLUMNS)

# Decimals of results.*; the raw records in trials.jsonl are not rounded.
_DECIMALS = {
    "throughput_fps": 3, "lower_fps": 3, "upper_fps": 3, "offered_fps": 3, "throughput_mbps": 4,
    "line_rate_pct": 4, "cpu_home_pct": 2, "cpu_office_pct": 2, "cpu_home_us_per_frame": 3,
    "cpu_office_us_per_frame": 3, "instructions_home_per_frame": 1, "instructions_office_per_frame": 1,
    "final_trial_s": 3, "cpu_speed_pct": 1,
}  # fmt: skip
_LATENCY_DECIMALS = 3
# Spreadsheets evaluate text that begins like this. Some of them skip a tab or a line break before it.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_Item = TypeVar("_Item")
_Text = Callable[[Outcome | Finding], str]


def rounded(outcome: Outcome) -> Outcome:
    """Return the outcome with its figures rounded to meaningful decimals, so that files of equal results are equal."""
    latency = {
        name: round(value, _LATENCY_DECIMALS) if isinstance(value, float) else value
        for name, value in outcome.latency_us
    }
    figures = {
        name: round(value, decimals)
        for name, decimals in _DECIMALS.items()
        if (value := getattr(outcome, name)) is not None
    }
    if outcome.loss_bound is not None:
        figures["loss_bound"] = float(f"{outcome.loss_bound:.4g}")
    return outcome.model_copy(update={**figures, "latency_us": Latency.model_validate(latency)})


class Once(Generic[_Item]):
    """Makes the text of each item only once, because a run saves all its results again after each case."""

    def __init__(self, make: Callable[[_Item], str]) -> None:
        self._make = make
        self._made: dict[int, tuple[_Item, str]] = {}

    def __call__(self, item: _Item) -> str:
        known = self._made.get(id(item))
        if known is None or known[0] is not item:
            known = self._made[id(item)] = (item, self._make(item))
        return known[1]


class _Document(BaseModel):
    """The content of `results.json` as this version writes it."""

    outcomes: list[Outcome]
    findings: list[Finding] = []


def json_line(result: Outcome | Finding) -> str:
    """Return the line of a result in `results.json`."""
    return to_json(rounded(result) if isinstance(result, Outcome) else result)


def json_text(results: Iterable[Outcome | Finding], line: _Text = json_line) -> str:
    """Return the text of `results.json`: a header line, then a line for each result, so that diff is useful."""
    listed = list(results)
    outcomes = ",\n".join(line(result) for result in listed if isinstance(result, Outcome))
    findings = ",\n".join(line(result) for result in listed if isinstance(result, Finding))
    more = f',"findings":[\n{findings}\n]' if findings else ""
    return f'{{"format":{FORMAT},"outcomes":[\n{outcomes}\n]{more}}}\n'


def from_json_text(text: str) -> list[Outcome | Finding]:
    """Return the results of a `results.json`, outcomes first; raise ValueError if it is damaged or too new."""
    if text.startswith(_HEAD):
        try:  # half the time that the steps below take, which find out what is wrong
            document = _Document.model_validate_json(text)
        except ValidationError:
            pass
        else:
            return [*document.outcomes, *document.findings]
    return _slowly_from(text)


def _slowly_from(text: str) -> list[Outcome | Finding]:
    """Return the same for a file of any version; raise ValueError."""
    try:
        document = json.loads(text)
        if document["format"] > FORMAT:
            raise ValueError(f"format {document['format']}; this espbench reads up to {FORMAT}")
        outcomes, findings = document["outcomes"], document.get("findings", [])
        if document["format"] == 1:
            outcomes, findings = map(format_1.result, outcomes), map(format_1.result, findings)
        return [*map(Outcome.model_validate, outcomes), *map(Finding.model_validate, findings)]
    except ValidationError as error:
        raise ValueError(first_mistake(error)) from error
    except (KeyError, TypeError) as error:
        raise ValueError("expected an object with the keys format and outcomes") from error


def row(result: Outcome | Finding) -> dict[str, Any]:
    """Return a result as Python values by column; each latency figure has a column."""
    if isinstance(result, Finding):
        first = result.quantities[0] if result.quantities else None
        values = dict(result)
        if first is not None:
            values |= {"quantity": first.name, "value": first.value, "unit": first.unit}
    else:
        latency = {f"latency_{name}_us": value for name, value in rounded(result).latency_us if name != "hdr"}
        values = {**dict(rounded(result)), **latency}
    return {column: values.get(column) for column in COLUMNS}


def csv_line(result: Outcome | Finding) -> str:
    """Return the line of a result in `results.csv`."""
    return table_lines([row(result).values()])


def csv_text(results: Iterable[Outcome | Finding], line: _Text = csv_line) -> str:
    """Return the text of `results.csv`: empty = no figure; booleans are true/false, lists are separated by `; `."""
    return table_lines([COLUMNS]) + "".join(line(result) for result in results if result.test != PAIRED)


def table_text(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return the text of a CSV file; text that a spreadsheet would evaluate is made harmless, numbers are kept."""
    return table_lines([head, *rows])


def table_lines(rows: Iterable[Iterable[object]]) -> str:
    """Return the lines of these rows, as `table_text` writes them."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for values in rows:
        writer.writerow([harmless(cell) if isinstance(cell := _cell(v), str) else cell for v in values])
    return buffer.getvalue()


def harmless(text: str) -> str:
    """Return the text of a cell; text that a spreadsheet would take for a formula gets an apostrophe in front.

    Text that has apostrophes before such a formula gets one too, so that `as_it_was` always restores the original.
    """
    return f"'{text}" if _FORMULA.match(text) else text


def as_it_was(cell: str) -> str:
    """Return the original text of a cell that `harmless` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return "; ".join(map(str, value))
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return "" if value is None else value
