# SPDX-License-Identifier: Apache-2.0
"""Searches the series that a new, changed or vanished run has touched, and keeps what was found."""

from __future__ import annotations

import sqlite3

from espbench.history import changes
from espbench.history.query import numbered_points


def search_stale(database: sqlite3.Connection) -> None:
    """Find the changes of each series that is marked stale, and count its runs anew."""
    stale = database.execute("SELECT id, exact FROM series WHERE stale = 1").fetchall()
    for number, exact in stale:
        listed = numbered_points(database, number)
        points = [point for _, point in listed]
        jumps = changes.exact(points) if exact else changes.noisy(points)
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
        database.execute(
            "UPDATE series SET stale = 0, runs = ?, newest = ? WHERE id = ?", (len(points), newest, number)
        )
