# SPDX-License-Identifier: Apache-2.0
"""Searches for changes in the series that a new, changed or removed run belongs to, and saves them in the index."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, MutableMapping

from espbench.over_time import changes
from espbench.over_time.query import numbered_points


class _Windows(MutableMapping[str, list[int]]):
    """The results of searches in windows of noisy figures, kept in the index; a new run changes only the last one."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __getitem__(self, content: str) -> list[int]:
        row = self._database.execute("SELECT starts FROM window WHERE content = ?", (content,)).fetchone()
        if row is None:
            raise KeyError(content)
        starts: list[int] = json.loads(row[0])
        return starts

    def __setitem__(self, content: str, starts: list[int]) -> None:
        self._database.execute("INSERT OR REPLACE INTO window VALUES (?, ?)", (content, json.dumps(starts)))

    def __delitem__(self, content: str) -> None:
        self._database.execute("DELETE FROM window WHERE content = ?", (content,))

    def __iter__(self) -> Iterator[str]:
        return (content for (content,) in self._database.execute("SELECT content FROM window"))

    def __len__(self) -> int:
        (count,) = self._database.execute("SELECT count(*) FROM window").fetchone()
        return int(count)


def search_stale(database: sqlite3.Connection) -> None:
    """Find the changes of each series that is marked stale, and count its runs again."""
    stale = database.execute("SELECT id, exact FROM series WHERE stale = 1").fetchall()
    windows = _Windows(database)
    for number, exact in stale:
        listed = numbered_points(database, number)
        points = [point for _, point in listed]
        jumps = changes.exact(points) if exact else changes.noisy(points, windows)
        database.execute("DELETE FROM change WHERE series = ?", (number,))
        database.executemany(
            "INSERT INTO change (series, run, before, was, now, was_status, now_status) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    number, listed[jump.at][0], listed[jump.before][0], jump.was, jump.now,
                    points[jump.before].status, points[jump.at].status,
                )
                for jump in jumps
            ),
        )  # fmt: skip
        newest = next((point.value for point in reversed(points) if point.value is not None), None)
        status = points[-1].status if points and points[-1].value is None else ""
        database.execute(
            "UPDATE series SET stale = 0, runs = ?, newest = ?, newest_status = ? WHERE id = ?",
            (len(points), newest, status, number),
        )
