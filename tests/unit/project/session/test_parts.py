# SPDX-License-Identifier: Apache-2.0
"""All parts of a test run are made, and the longest files come first."""

import subprocess
from pathlib import Path

import pytest

from support.session import order

ROOT = Path(__file__).resolve().parents[4]
MAKEFILE = """\
good:
\t@echo made good
bad:
\t@echo made bad; false
last:
\t@echo made last
"""


@pytest.mark.parametrize(
    ("parts", "code", "ended"),
    [
        (("good", "last"), 0, ["passed", "passed"]),
        (("bad", "last"), 1, ["FAILED", "passed"]),
        (("good", "no-such"), 1, ["passed", "FAILED"]),
    ],
)
def test_all_parts_are_made_and_the_end_says_how(
    tmp_path: Path, parts: tuple[str, ...], code: int, ended: list[str]
) -> None:
    (tmp_path / "Makefile").write_text(MAKEFILE)
    done = subprocess.run(
        [ROOT / "scripts" / "parts.sh", *parts], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    made, _, said = done.stdout.partition("==> in all:\n")
    assert made.split() == [word for part in parts if part != "no-such" for word in ("made", part)]
    assert [line.split()[:2] for line in said.splitlines()] == [
        [part, f"{how},"] for part, how in zip(parts, ended, strict=True)
    ]


def test_the_longest_files_are_there_and_come_first() -> None:
    """pytest-xdist sorts files by their number of tests unless it is told not to."""
    for file in order.LONGEST:
        assert len(list((ROOT / "tests" / "integration").rglob(file))) == 1, file
    assert "--dist loadfile --no-loadscope-reorder" in (ROOT / "scripts" / "beside.sh").read_text()
