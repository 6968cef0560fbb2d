# SPDX-License-Identifier: Apache-2.0
"""Writes the tables and reports of a run again, in another folder, and names those that say something else."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

from espbench.results import RunDirectory, finding_files, outcome_files
from espbench.terms import Finding

# Each document of a report with its format.
_REPORTS = {"report.md": "md", "report.html": "html", "published.md": "md", "published.html": "html"}
_PICTURES = "figures"


def tables_apart(directory: RunDirectory, *, same_code: bool) -> Iterator[str]:
    """Yield what differs between each table of a run and its `results.json`, a text for each row.

    Columns that only one of both has may be those of another version of espbench. They are left out, unless the same
    code wrote the table.
    """
    results = directory.results()
    findings = [result for result in results if isinstance(result, Finding)]
    for name, text in {
        "results.csv": outcome_files.csv_text(results),
        "findings.csv": finding_files.csv_text(findings),
    }.items():
        file = directory.path / name
        if not file.is_file():
            continue
        written = file.read_text(encoding="utf-8", errors="replace")
        was, now, is_named = _rows(written), _rows(text), False
        if len(was) != len(now):
            is_named = True
            yield f"{name}: {len(was)} rows, and results.json gives {len(now)}"
        for number, (is_there, expected) in enumerate(zip(was, now, strict=False), start=2):
            differing = [key for key in expected if key in is_there and is_there[key] != expected[key]]
            if differing:
                cells = ", ".join(
                    f"{key} is {is_there[key] or 'empty'}, not {expected[key] or 'empty'}"
                    for key in differing
                )
                is_named = True
                yield f"{name}, line {number}: {cells}"
        if same_code and written != text and not is_named:
            yield f"{name}: not as espbench writes it"


def reports_apart(directory: RunDirectory) -> list[str]:
    """Return the names of the reports and charts of a run that are not as this espbench writes them.

    Only those are looked at that the run has. The charts need about 200 MB of memory.
    """
    from espbench.reporting.report import write_report  # noqa: PLC0415  (charts: slow to import)

    there = [name for name in _REPORTS if (directory.path / name).is_file()]
    formats = {_REPORTS[name] for name in there}
    if not formats:
        return []
    with tempfile.TemporaryDirectory(prefix="espbench-verify-") as folder:
        # The report names the run's folder.
        copy = Path(folder) / directory.path.resolve().name
        copy.mkdir()
        for entry in directory.path.iterdir():
            if entry.name not in (*_REPORTS, _PICTURES):
                (copy / entry.name).symlink_to(entry.resolve())
        write_report(RunDirectory.open(copy), formats)
        charts = sorted(str(file.relative_to(copy)) for file in (copy / _PICTURES).glob("*.svg"))
        return [name for name in (*there, *charts) if _bytes(copy / name) != _bytes(directory.path / name)]


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(keepends=True)))


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""
