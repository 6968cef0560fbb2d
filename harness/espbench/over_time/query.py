# SPDX-License-Identifier: Apache-2.0
"""Reads runs, series, points and changes from the index."""

from __future__ import annotations

import json
import sqlite3
from functools import cache
from typing import Any

from espbench.over_time import facts
from espbench.over_time.records import Change, Point, RunRow, Series

_SERIES = (
    "s.id, s.plan, s.name, s.test, s.goal, s.figure, s.unit, s.better, s.exact, s.conditions, s.runs, s.newest,"
    " s.newest_status, s.machine, (SELECT count(*) - 1 FROM series o WHERE o.plan = s.plan AND o.name = s.name"
    " AND o.figure = s.figure)"
)
_NAMED = " AND ".join(f"instr(lower(s.{column}), lower(?)) > 0" for column in ("plan", "name", "figure"))
_ORDER = "s.plan, s.id"


def runs(database: sqlite3.Connection) -> list[RunRow]:
    """Return every run, the oldest first; runs that could not be read come last."""
    facts = dict(database.execute("SELECT id, text FROM facts"))
    by_text = cache(lambda number: json.loads(facts[number]))
    rows = database.execute(
        "SELECT path, name, plan, started, espbench, platform, exact, cases, statuses, facts, problem FROM run"
        " ORDER BY moment IS NULL, moment, path"
    )
    return [
        RunRow(
            path=row[0], name=row[1], plan=row[2] or "", started=row[3] or "", espbench=row[4] or "",
            platform=row[5] or "", is_exact=bool(row[6]), cases=row[7] or 0, statuses=json.loads(row[8] or "{}"),
            facts=by_text(row[9]) if row[9] else {}, problem=row[10],
        )
        for row in rows
    ]  # fmt: skip


def series(database: sqlite3.Connection, plan: str, case: str, figure: str) -> list[Series]:
    """Return the series whose plan, case and figure contain these texts, whatever the case of letters."""
    rows = database.execute(
        f"SELECT {_SERIES} FROM series s WHERE {_NAMED} ORDER BY {_ORDER}", (plan, case, figure)
    )
    return [_series(row) for row in rows]


def points(database: sqlite3.Connection, number: int) -> list[Point]:
    """Return the points of one series, one for each run, the oldest first."""
    return [point for _, point in numbered_points(database, number)]


def numbered_points(database: sqlite3.Connection, number: int) -> list[tuple[int, Point]]:
    """Return the points of a series, the oldest first, each with the number of its run.

    A run whose results for the case are not OK may lack the figure: then its point has only their statuses.
    """
    rows = database.execute(
        "SELECT r.id, r.name, r.path, p.value, p.repeats, p.status, r.moment"
        " FROM point p JOIN run r ON r.id = p.run WHERE p.series = ?1"
        " UNION ALL SELECT r.id, r.name, r.path, NULL, NULL, u.status, r.moment"
        " FROM series s JOIN unfit u ON u.plan = s.plan AND u.conditions = s.conditions AND u.name = s.name"
        " JOIN run r ON r.id = u.run"
        " WHERE s.id = ?1 AND NOT EXISTS (SELECT 1 FROM point p WHERE p.series = s.id AND p.run = u.run)"
        " ORDER BY 7, 3",
        (number,),
    )
    return [(row[0], Point(row[1], row[2], row[3], _repeats(row[3], row[4]), row[5])) for row in rows]


def changes(database: sqlite3.Connection, plan: str, case: str, figure: str) -> list[Change]:
    """Return the changes of the series whose plan, case and figure contain these texts, the newest first."""
    fact_texts = dict(database.execute("SELECT id, text FROM facts"))

    @cache
    def differing(was: int, now: int) -> list[tuple[str, str, str]]:
        return facts.differences(json.loads(fact_texts[was]), json.loads(fact_texts[now]))

    rows = database.execute(
        f"SELECT {_SERIES}, r.name, r.path, r.started, b.name, b.path, of_b.facts, of_r.facts, c.was, c.now,"
        " c.was_status, c.now_status"
        " FROM change c JOIN series s ON s.id = c.series JOIN run r ON r.id = c.run JOIN run b ON b.id = c.before"
        # The facts of the series' machine: its conditions name it.
        " JOIN facts_under of_r ON of_r.run = r.id AND of_r.conditions = s.conditions"
        " JOIN facts_under of_b ON of_b.run = b.id AND of_b.conditions = s.conditions"
        f" WHERE {_NAMED} ORDER BY r.moment DESC, r.path, {_ORDER}",
        (plan, case, figure),
    )
    return [
        Change(
            series=(of := _series(row)), run=row[15], run_path=row[16], started=row[17], before=row[18],
            before_path=row[19], was=row[22], now=row[23], was_status=row[24], now_status=row[25], exactly=of.is_exact,
            differs=differing(row[20], row[21]),
        )
        for row in rows
    ]  # fmt: skip


def _series(row: tuple[Any, ...]) -> Series:
    return Series(
        number=row[0], plan=row[1], case=row[2], test=row[3], goal=row[4], figure=row[5], unit=row[6], better=row[7],
        is_exact=bool(row[8]), conditions=row[9], runs=row[10], newest=row[11], newest_status=row[12],
        machine=row[13], namesakes=row[14],
    )  # fmt: skip


def _repeats(value: float | None, repeats: str | int | None) -> dict[int, float]:
    """Return the figures by number of the repeat; of a single repeat, the column `repeats` has only the number."""
    if value is None or repeats is None:
        return {}
    if isinstance(repeats, str) and repeats.startswith("{"):
        return {int(number): figure for number, figure in json.loads(repeats).items()}
    return {int(repeats): value}
