# SPDX-License-Identifier: Apache-2.0
"""Adds, to the report of a failed test, the ends of the logs in its folders, which its programs have written."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

TITLE = "the end of"
MOST_LOGS, MOST_BYTES = 20, 2000
_NAMES = ("*.log", "stderr*")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a section for each log to the report of a failed test, the newest first."""
    report = yield
    if report.failed:
        files = {file for folder in folders(item) for name in _NAMES for file in folder.rglob(name)}
        newest = sorted((file for file in files if _size(file)), key=_written, reverse=True)
        report.sections += [(f"{TITLE} {file}", _end(file)) for file in newest[:MOST_LOGS]]
    return report


def folders(item: pytest.Item) -> Iterator[Path]:
    """Yield a test's temporary folders: its tmp_path, and the attributes `folder` and `logs` of its fixtures."""
    temporary = tempfile.gettempdir()
    for value in getattr(item, "funcargs", {}).values():
        for candidate in (value, getattr(value, "folder", None), getattr(value, "logs", None)):
            if isinstance(candidate, Path) and candidate.is_relative_to(temporary) and candidate.is_dir():
                yield candidate


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except OSError:
        return 0


def _written(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _end(file: Path) -> str:
    try:
        return file.read_bytes()[-MOST_BYTES:].decode(errors="replace")
    except OSError as error:
        return str(error)
