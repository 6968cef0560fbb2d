# SPDX-License-Identifier: Apache-2.0
"""Makes the documents of the witness runs again: finished runs in tests/witness/, each beside the documents made of it.

`throughput` was measured on a DUT of known throughput in virtual time; facts of the machine are replaced. The figures
of `comparison` and `format-1` were not measured: they are synthetic runs, the second as an espbench of format 1 wrote
it. `python -m support.witness` accepts an intended change: it writes the documents that are made now beside the runs.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from espbench.reporting.report import write_report
from espbench.results import RunDirectory

WITNESSES = Path(__file__).resolve().parents[1] / "witness"
NAMES = sorted(folder.name for folder in WITNESSES.iterdir())
DOCUMENTS = ("report.md", "results.csv", "findings.csv")
_EXPECTED, _ENDING = "expected", ".txt"


def made(name: str, parent: Path) -> dict[str, str]:
    """Return the text of each document of a witness run, which is copied into the folder `parent`; by name."""
    path = parent / name
    shutil.copytree(WITNESSES / name, path, ignore=shutil.ignore_patterns(_EXPECTED))
    write_report(RunDirectory.open(path), {"md", "csv"})
    return {file.name: file.read_text(encoding="utf-8") for file in path.iterdir() if file.name in DOCUMENTS}


def expected(name: str) -> dict[str, str]:
    """Return the documents that were accepted last."""
    folder = WITNESSES / name / _EXPECTED
    return {file.stem: file.read_text(encoding="utf-8") for file in folder.iterdir()}


def accept() -> None:
    """Write the documents of all witness runs as they are made now."""
    for name in NAMES:
        with tempfile.TemporaryDirectory() as parent:
            documents = made(name, Path(parent))
        folder = WITNESSES / name / _EXPECTED
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for document, text in documents.items():
            (folder / f"{document}{_ENDING}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    accept()
