# SPDX-License-Identifier: Apache-2.0
"""Reads runs, series, points and changes from the index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from espbench.over_time import facts
from espbench.over_time.records import Change, Point, RunRow, Series

# The SQL for each field of a record; s, r and b are the series, the run, and the run before.
_SERIES = {
    "number": "s.id", "plan": "s.plan", "case": "s.name", "test": "s.test", "goal": "s.goal", "figure": "s.figure",
    "unit": "s.unit", "better": "s.better", "is_exact": "s.exact", "conditions": "s.conditions", "runs": "s.runs",
    "newest": "s.newest", "newest_status": "s.newest_status", "machine": "s.machine",
    "namesakes": "(SELECT count(*) - 1 FROM series o WHERE o.plan = s.plan AND o.name = s.name"
    " AND o.figure = s.figure)",
}  # fmt: skip
_CHANGE = {
    "run": "r.name", "run_path": "r.path", "started": "r.started", "before": "b.name", "before_path": "b.path",
    "was": "c.was", "now": "c.now", "was_status": "c.was_status", "now_status": "c.now_status",
}  # fmt: skip
_NAMED = " AND ".join(f"instr(lower(s.{column}), lower(?)) > 0" for column in ("plan", "name", "figure"))
_ORDER = "s.plan, s.id"


def runs(database: sqlite3.Connection) -> list[RunRow]:
    """Return every run, the oldest first; runs that could not be read come last."""
    facts = dict(database.execute("SELECT id, text FROM facts"))
    by_text = cache(lambda number: json.loads(facts[number]))
    rows = _rows(
        database,
        "SELECT path, name, plan, started, espbench, platform, exact, cases, statuses, facts, problem,"
        " problem != '' AND digest != '' AS is_copy FROM run"
        " ORDER BY moment IS NULL, moment, path",
    )
    return [
        RunRow(
            path=row["path"],
            name=row["name"],
            plan=row["plan"] or "",
            started=row["started"] or "",
            espbench=row["espbench"] or "",
            platform=row["platform"] or "",
            is_exact=bool(row["exact"]),
            cases=row["cases"] or 0,
            statuses=json.loads(row["statuses"] or "{}"),
            facts=by_text(row["facts"]) if row["facts"] else {},
            problem=row["problem"],
            is_copy=bool(row["is_copy"]),
        )
        for row in rows
    ]


def series(database: sqlite3.Connection, plan: str, case: str, figure: str) -> list[Series]:
    """Return the series whose plan, case and figure contain these texts, whatever the case of letters."""
    rows = _rows(
        database,
        f"SELECT {_columns(_SERIES)} FROM series s WHERE {_NAMED} ORDER BY {_ORDER}",
        (plan, case, figure),
    )
    return [_series(row) for row in rows]


def points(database: sqlite3.Connection, number: int) -> list[Point]:
    """Return the points of one series, one for each run, the oldest first."""
    return [point for _, point in numbered_points(database, number)]


def numbered_points(database: sqlite3.Connection, number: int) -> list[tuple[int, Point]]:
    """Return the points of a series, the oldest first, each with the number of its run.

    A run whose results for the case are not OK may lack the figure: then its point has only their statuses.
    """
    rows = _rows(
        database,
        "SELECT r.id AS run_number, r.name AS run, r.path AS path, p.value AS value, p.repeats AS repeats,"
        " p.status AS status, r.moment AS moment"
        " FROM point p JOIN run r ON r.id = p.run WHERE p.series = ?1"
        " UNION ALL SELECT r.id, r.name, r.path, NULL, NULL, u.status, r.moment"
        " FROM series s JOIN unfit u ON u.plan = s.plan AND u.conditions = s.conditions AND u.name = s.name"
        " JOIN run r ON r.id = u.run"
        " WHERE s.id = ?1 AND NOT EXISTS (SELECT 1 FROM point p WHERE p.series = s.id AND p.run = u.run)"
        " ORDER BY moment, path",
        (number,),
    )
    return [
        (
            row["run_number"],
            Point(
                row["run"], row["path"], row["value"], _repeats(row["value"], row["repeats"]), row["status"]
            ),
        )
        for row in rows
    ]


def changes(database: sqlite3.Connection, plan: str, case: str, figure: str) -> list[Change]:
    """Return the changes of the series whose plan, case and figure contain these texts, the newest first."""
    fact_texts = dict(database.execute("SELECT id, text FROM facts"))

    @cache
    def differing(was: int, now: int) -> list[tuple[str, str, str]]:
        return facts.differences(json.loads(fact_texts[was]), json.loads(fact_texts[now]))

    rows = _rows(
        database,
        f"SELECT {_columns(_SERIES | _CHANGE)}, of_b.facts AS facts_before, of_r.facts AS facts_now"
        " FROM change c JOIN series s ON s.id = c.series JOIN run r ON r.id = c.run JOIN run b ON b.id = c.before"
        # The facts of the series' machine: its conditions name it.
        " JOIN facts_under of_r ON of_r.run = r.id AND of_r.conditions = s.conditions"
        " JOIN facts_under of_b ON of_b.run = b.id AND of_b.conditions = s.conditions"
        f" WHERE {_NAMED} ORDER BY r.moment DESC, r.path, {_ORDER}",
        (plan, case, figure),
    )
    return [
        Change(
            series=(of := _series(row)),
            **_fields(_CHANGE, row),
            exactly=of.is_exact,
            differs=differing(row["facts_before"], row["facts_now"]),
        )
        for row in rows
    ]


def _rows(
    database: sqlite3.Connection, sql: str, parameters: Sequence[str | int] = ()
) -> Iterator[sqlite3.Row]:
    """Yield the rows of a query; their columns are read by name."""
    cursor = database.cursor()
    cursor.row_factory = sqlite3.Row
    yield from cursor.execute(sql, parameters)


def _columns(sql: Mapping[str, str]) -> str:
    return ", ".join(f'{column} AS "{name}"' for name, column in sql.items())


def _fields(sql: Mapping[str, str], row: sqlite3.Row) -> dict[str, Any]:
    return {name: row[name] for name in sql}


def _series(row: sqlite3.Row) -> Series:
    fields = _fields(_SERIES, row)
    return Series(**fields | {"is_exact": bool(fields["is_exact"])})


def _repeats(value: float | None, repeats: str | int | None) -> dict[int, float]:
    """Return the figures by number of the repeat; of a single repeat, the column `repeats` has only the number."""
    if value is None or repeats is None:
        return {}
    if isinstance(repeats, str) and repeats.startswith("{"):
        return {int(number): figure for number, figure in json.loads(repeats).items()}
    return {int(repeats): value}
