# SPDX-License-Identifier: Apache-2.0
"""Keeps the index of many runs: an SQLite file that is made from run directories, and made again if it is missing.

A run is read again if size, time of change or inode of its manifest or its results differ from when it was read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from espbench.errors import EspbenchError, UsageError
from espbench.over_time import facts, figures, query
from espbench.over_time.records import Change, Point, RunRow, Series
from espbench.over_time.searching import search_stale
from espbench.paths import cache_dir
from espbench.results import RunDirectory
from espbench.terms import MACHINE, Manifest
from espbench.this_machine import kept

VERSION = 8
# SQLite keeps this number in the header of each index, so that files of other programs are not taken for one.
APPLICATION_ID = int.from_bytes(b"espb", "big")
_SQLITE = b"SQLite format 3\0"
_ID_AT = 68  # its place in the header (https://www.sqlite.org/fileformat.html)
_WAIT_S = 60.0
# SQLite raises these for the values of one run; its other errors are about the file: damaged, locked or full.
_OF_VALUES = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError)
_READ_OFTEN = 200  # runs between two messages about the progress
_SCHEMA = """
CREATE TABLE run (
  id INTEGER PRIMARY KEY, path TEXT UNIQUE, stamp TEXT, name TEXT, plan TEXT, started TEXT, moment REAL, espbench TEXT,
  platform TEXT, exact INTEGER, cases INTEGER, statuses TEXT, facts INTEGER, problem TEXT, digest TEXT DEFAULT '',
  results INTEGER DEFAULT 0
);
CREATE INDEX run_by_digest ON run (digest);
CREATE INDEX run_in_time ON run (moment, path);
CREATE TABLE facts (id INTEGER PRIMARY KEY, text TEXT UNIQUE);
CREATE TABLE facts_under (
  run INTEGER, conditions TEXT, facts INTEGER, PRIMARY KEY (run, conditions)
) WITHOUT ROWID;
CREATE TABLE series (
  id INTEGER PRIMARY KEY, plan TEXT, name TEXT, test TEXT, goal REAL, figure TEXT, unit TEXT, better TEXT,
  exact INTEGER, conditions TEXT, stale INTEGER DEFAULT 1, runs INTEGER DEFAULT 0, newest REAL,
  newest_status TEXT DEFAULT '', machine TEXT DEFAULT '',
  UNIQUE (plan, conditions, name, figure)
);
CREATE INDEX series_by_name ON series (plan, name, figure);
CREATE TABLE point (
  series INTEGER, run INTEGER, value REAL, repeats TEXT, status TEXT, PRIMARY KEY (series, run)
) WITHOUT ROWID;
CREATE INDEX point_of_run ON point (run);
CREATE TABLE unfit (
  plan TEXT, conditions TEXT, name TEXT, run INTEGER, status TEXT, PRIMARY KEY (plan, conditions, name, run)
) WITHOUT ROWID;
CREATE INDEX unfit_of_run ON unfit (run);
CREATE TABLE change (
  series INTEGER, run INTEGER, before INTEGER, was REAL, now REAL, was_status TEXT, now_status TEXT
);
CREATE TABLE window (content TEXT PRIMARY KEY, starts TEXT) WITHOUT ROWID;
CREATE INDEX change_of_series ON change (series);
"""


def silent(_: str) -> None:
    """Ignore messages about the progress."""


class History:
    """The index of the runs below some folders; `open` makes it, and the end of `with` closes it."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @classmethod
    def open(
        cls, folders: Sequence[Path], file: Path | None = None, note: Callable[[str], None] = silent
    ) -> History:
        """Bring the index of these folders up to date, and open it.

        A folder is a run directory, or contains some at any depth. file: the index (default: a file in the cache for
        each set of folders). note: is called from time to time with a message about the progress. Raise UsageError if a
        folder does not exist, if none of them contains a run, or if the file is not an index, and EspbenchError if the
        file cannot be used.
        """
        for folder in folders:
            if not folder.is_dir():
                raise UsageError(
                    f"{folder}: no folder\n  expected: a folder with run directories in it\n"
                    f"  got: {'a file' if folder.exists() else 'nothing there'}\n  what to do: name runs/, or another"
                )
        stamps = dict(sorted(item for folder in folders for item in _runs_below(str(folder.resolve()))))
        if not stamps:
            raise UsageError(
                f"{', '.join(map(str, folders))}: no run directories\n"
                "  expected: at least one directory with a manifest.json, as `espbench run` makes it\n"
                "  got: none, at any depth\n  what to do: name the folder that --out said, or runs/"
            )
        path = file or _in_cache(folders)
        if file is not None:
            _refuse_foreign(file)
        try:
            return cls(_brought_up(path, stamps, note))
        except sqlite3.OperationalError as error:  # locked, disk full, no permission
            raise EspbenchError(
                f"{path}: cannot keep the index: {error}\n  what to do: name another file with --index, or try again"
            ) from error
        except sqlite3.DatabaseError:  # damaged or not a database; it can be made again
            _remove(path)
            return cls(_brought_up(path, stamps, note))

    def runs(self) -> list[RunRow]:
        """Return every run, the oldest first; runs that could not be read come last."""
        return query.runs(self._database)

    def series(self, plan: str = "", case: str = "", figure: str = "") -> list[Series]:
        """Return every series whose plan, case and figure contain these texts, ordered by plan."""
        return query.series(self._database, plan, case, figure)

    def points(self, series: Series) -> list[Point]:
        """Return the points of a series, one for each run, the oldest first."""
        return query.points(self._database, series.number)

    def changes(self, plan: str = "", case: str = "", figure: str = "") -> list[Change]:
        """Return every change of the series whose plan, case and figure contain these texts, the newest first."""
        return query.changes(self._database, plan, case, figure)

    def close(self) -> None:
        """Close the index; its file stays for the next time."""
        self._database.close()

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _in_cache(folders: Sequence[Path]) -> Path:
    names = b"\n".join(sorted({os.fsencode(folder.resolve()) for folder in folders}))
    folder = cache_dir() / "history"
    kept.folder_of_ours(cache_dir())
    kept.folder_of_ours(folder)
    return folder / f"{hashlib.sha256(names).hexdigest()[:16]}.sqlite"


def _runs_below(folder: str) -> Iterator[tuple[str, str]]:
    """Yield (path, stamp) of each run directory; do not search below a run directory, and follow no links.

    A folder that may not be read, or that is removed meanwhile, has no runs.
    """
    stamp = _stamp(folder)
    if stamp:
        yield folder, stamp
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _runs_below(entry.path)


def _stamp(folder: str) -> str:
    """Return size, time of change and inode of a run's manifest and results; empty: it is not a run directory."""
    parts = []
    for name in ("manifest.json", "results.json"):
        try:
            status = os.stat(f"{folder}/{name}")  # noqa: PTH116  (twenty thousand of them)
        except OSError:
            if name == "manifest.json":
                return ""
            continue
        parts.append(f"{status.st_size}.{status.st_mtime_ns}.{status.st_ino}")
    return " ".join(parts)


def _refuse_foreign(path: Path) -> None:
    """Raise UsageError if a file is neither empty nor an index: an index that cannot be used is made anew."""
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        with path.open("rb") as file:
            header = file.read(_ID_AT + 4)
    except OSError:
        return  # SQLite will say why the file cannot be opened
    if header.startswith(_SQLITE) and header[_ID_AT:] == APPLICATION_ID.to_bytes(4, "big"):
        return
    raise UsageError(
        f"--index {path}: not an index of espbench history\n"
        "  expected: a new file, or one that this command made\n"
        f"  got: {'an SQLite file without the mark of an index' if header.startswith(_SQLITE) else 'another file'}\n"
        "  what to do: name another file; if it is an index that an earlier espbench made, delete it"
    )


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _brought_up(path: Path, stamps: dict[str, str], note: Callable[[str], None]) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
    try:
        # If the index is lost, the runs are only read again; to wait for the disk would cost more.
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN IMMEDIATE")
        if database.execute("PRAGMA user_version").fetchone()[0] != VERSION:
            for kind, name in database.execute(
                "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"
            ).fetchall():
                database.execute(f"DROP {kind} IF EXISTS {name}")
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {VERSION}")
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        _update(database, stamps, note)
        database.execute("COMMIT")
    except BaseException:
        database.close()
        raise
    return database


def _update(database: sqlite3.Connection, stamps: dict[str, str], note: Callable[[str], None]) -> None:
    """Remove runs that are gone or changed, read those that are new or changed, and search the series concerned."""
    known = dict(database.execute("SELECT path, stamp FROM run"))
    now = {_stored(path): stamp for path, stamp in stamps.items()}
    for path in known.keys() - {path for path, stamp in known.items() if now.get(path) == stamp}:
        _forget(database, path)
    kept = {path for (path,) in database.execute("SELECT path FROM run")}
    unread = [path for path in stamps if _stored(path) not in kept]
    for done, path in enumerate(unread, 1):
        _read(database, path, stamps[path])
        if done % _READ_OFTEN == 0:
            note(f"{done:,} of {len(unread):,} runs read")
    database.execute(
        "DELETE FROM series WHERE stale = 1 AND NOT EXISTS (SELECT 1 FROM point WHERE point.series = series.id)"
    )
    database.execute("DELETE FROM change WHERE series NOT IN (SELECT id FROM series)")
    search_stale(database)


def _forget(database: sqlite3.Connection, path: str) -> None:
    """Remove a run, and its copies: one of them may now stand for it."""
    row = database.execute("SELECT digest FROM run WHERE path = ?", (path,)).fetchone()
    if row is not None:  # otherwise it was a copy of a run that was removed before
        _remove_run(database, path)
        database.execute("DELETE FROM run WHERE digest = ? AND digest != '' AND problem != ''", row)


def _remove_run(database: sqlite3.Connection, path: str) -> None:
    (number,) = database.execute("SELECT id FROM run WHERE path = ?", (path,)).fetchone()
    database.execute(
        "UPDATE series SET stale = 1 WHERE id IN (SELECT series FROM point WHERE run = ?)", (number,)
    )
    _mark_unfit(database, number)
    database.execute("DELETE FROM point WHERE run = ?", (number,))
    database.execute("DELETE FROM unfit WHERE run = ?", (number,))
    database.execute("DELETE FROM facts_under WHERE run = ?", (number,))
    database.execute("DELETE FROM run WHERE id = ?", (number,))


def _mark_unfit(database: sqlite3.Connection, run: int) -> None:
    """Mark the series stale in which this run may be without a figure."""
    database.execute(
        "UPDATE series SET stale = 1"
        " WHERE (plan, conditions, name) IN (SELECT plan, conditions, name FROM unfit WHERE run = ?)",
        (run,),
    )


def _identity(manifest: Manifest) -> str:
    """Return what a run has in common with its copies and with no other run, also if one of them was resumed later."""
    host = {key: manifest.host.get(key) for key in ("cpu", "kernel", MACHINE)}
    parts = [
        manifest.started,
        manifest.name,
        manifest.plan_path,
        host,
        [entry.case for entry in manifest.cases],
        manifest.conditions,
        manifest.asked,
        {case: [load.model_dump() for load in loads] for case, loads in manifest.base_loads.items()},
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _is_copy(database: sqlite3.Connection, path: str, stamp: str, digest: str, results: int) -> bool:
    """Return whether another folder has the same run, and as many results; such a run is recorded without its figures.

    Copies of one run would confirm each other's figures. If this run has more results, it takes the other one's place.
    """
    first = database.execute(
        "SELECT path, stamp, results FROM run WHERE digest = ? AND problem = ''", (digest,)
    ).fetchone()
    if first is None:
        return False
    other, its_stamp, its_results = first
    if its_results < results:
        _remove_run(database, other)
        _record_copy(database, other, its_stamp, digest, path)
        return False
    _record_copy(database, path, stamp, digest, other)
    return True


def _record_copy(database: sqlite3.Connection, path: str, stamp: str, digest: str, of_path: str) -> None:
    database.execute(
        "INSERT INTO run (path, stamp, name, problem, digest) VALUES (?, ?, ?, ?, ?)",
        (path, stamp, Path(path).name, f"a copy of {of_path}", digest),
    )


def _record_unreadable(database: sqlite3.Connection, path: str, stamp: str, error: Exception) -> None:
    # Most messages begin with the file; the folder is told anyway.
    text = str(error).partition("\n")[0].removeprefix(path).removeprefix("/").removeprefix(": ")
    is_expected = isinstance(error, EspbenchError | OSError | ValueError)
    problem = text if is_expected else f"not a run that espbench wrote: {type(error).__name__}: {text}"
    database.execute(
        "INSERT OR IGNORE INTO run (path, stamp, name, problem) VALUES (?, ?, ?, ?)",
        (_stored(path), stamp, Path(_stored(path)).name, _stored(problem)),
    )


def _stored(text: str) -> str:
    """Return the text with what UTF-8 cannot express as escapes, since SQLite stores only UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _read(database: sqlite3.Connection, path: str, stamp: str) -> None:
    """Read a run; if that fails for any reason, record only the reason, since one odd run must not cost the others."""
    database.execute("SAVEPOINT one_run")
    try:
        _save_run(database, path, stamp)
    except Exception as error:
        if isinstance(error, sqlite3.Error) and not isinstance(error, _OF_VALUES):
            raise
        database.execute("ROLLBACK TO one_run")
        _record_unreadable(database, path, stamp, error)
    database.execute("RELEASE one_run")


def _save_run(database: sqlite3.Connection, path: str, stamp: str) -> None:
    directory = RunDirectory.open(Path(path))
    results = directory.results()
    manifest = directory.manifest
    digest = _identity(manifest)
    if _is_copy(database, _stored(path), stamp, digest, len(results)):
        return
    exact = facts.is_exact(manifest)
    by_conditions = facts.by_conditions(manifest, results)
    machines = {machine for machine, _ in by_conditions} or {""}
    by_machine = {machine: facts.of_machine(manifest, machine) for machine in machines}
    facts_id = _save_facts(database, facts.merged(by_machine))
    statuses = json.dumps(Counter(result.status for result in results))
    run = database.execute(
        "INSERT INTO run (path, stamp, name, plan, started, moment, espbench, platform, exact, cases, statuses, facts,"
        " digest, results, problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '')",
        (
            _stored(path), stamp, Path(_stored(path)).name, manifest.name, manifest.started,
            _moment(manifest.started), manifest.espbench, manifest.platform, exact, len(manifest.cases), statuses,
            facts_id, digest, len(results),
        ),
    ).lastrowid  # fmt: skip
    assert run is not None
    for machine, conditions in by_conditions:
        own_id = _save_facts(database, by_machine[machine])
        database.execute("INSERT INTO facts_under VALUES (?, ?, ?)", (run, conditions, own_id))
    unfit = [
        (manifest.name, conditions, case, run, status)
        for (_, conditions), of_conditions in by_conditions.items()
        for case, status in figures.unfit(of_conditions).items()
    ]
    _save_unfit(database, run, unfit)
    for (machine, conditions), of_conditions in by_conditions.items():
        of_run = _Owner(run, manifest.name, conditions, "" if exact else machine, exact)
        _save_figures(database, of_run, figures.figures(of_conditions, exact=exact))


@dataclass(frozen=True)
class _Owner:
    """The run and the conditions to which figures belong."""

    run: int
    plan: str
    conditions: str
    machine: str
    exact: bool


def _save_figures(
    database: sqlite3.Connection, owner: _Owner, of_keys: Mapping[figures.Key, figures.Figures]
) -> None:
    for key, of_key in of_keys.items():
        named = (owner.plan, owner.conditions, key.case, key.figure)
        (series,) = database.execute(
            "INSERT INTO series (plan, conditions, name, figure, test, goal, unit, better, exact, machine)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (plan, conditions, name, figure) DO UPDATE SET stale = 1 RETURNING id",
            (*named, key.test, key.goal, key.unit, key.better, owner.exact, owner.machine),
        ).fetchone()
        repeats = (
            json.dumps(of_key.by_repeat) if len(of_key.by_repeat) > 1 else next(iter(of_key.by_repeat), None)
        )
        database.execute(
            "INSERT INTO point (series, run, value, repeats, status) VALUES (?, ?, ?, ?, ?)",
            (series, owner.run, of_key.median, repeats, of_key.status),
        )


def _save_facts(database: sqlite3.Connection, known: Mapping[str, str]) -> int:
    """Save facts once, and return their number."""
    text = json.dumps(known, sort_keys=True, ensure_ascii=False)
    database.execute("INSERT OR IGNORE INTO facts (text) VALUES (?)", (text,))
    (number,) = database.execute("SELECT id FROM facts WHERE text = ?", (text,)).fetchone()
    return int(number)


def _save_unfit(
    database: sqlite3.Connection, run: int, rows: Sequence[tuple[str, str, str, int, str]]
) -> None:
    """Save the cases of a run of which a result is not OK, as (plan, conditions, case, run, statuses)."""
    database.executemany(
        "INSERT INTO unfit (plan, conditions, name, run, status) VALUES (?, ?, ?, ?, ?)", rows
    )
    _mark_unfit(database, run)


def _moment(started: str) -> float:
    """Return an ISO 8601 time as seconds since 1970; raise ValueError if the text is not a time."""
    moment = datetime.fromisoformat(started)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
