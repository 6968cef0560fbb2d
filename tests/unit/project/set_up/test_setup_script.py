# SPDX-License-Identifier: Apache-2.0
"""The set-up looks for what is needed, not where one Debian release keeps it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

CLONE = Path(__file__).parents[4]


def test_no_package_is_told_by_the_path_of_one_python() -> None:
    """Debian 13 has 3.13: there python3-venv would be installed again and again, in vain."""
    lines = (CLONE / "scripts/packages.txt").read_text().splitlines()
    assert not [line for line in lines if re.search(r"/python3\.\d", line)]
    (venv,) = (line.split()[1] for line in lines if line.startswith("python3-venv"))
    assert venv == "run:scripts/python.sh"


@pytest.mark.parametrize(
    ("pythons", "chosen"),
    [
        ({"python3": "3.11"}, "python3"),
        ({"python3.13": "3.13", "python3": "3.13"}, "python3.13"),
        ({"python3.13": "no ensurepip", "python3.12": "3.12"}, "python3.12"),
        ({"python3": "3.10"}, ""),
        ({"python3.13": "no ensurepip"}, ""),
        ({}, ""),
    ],
)
def test_any_python_that_can_make_an_environment_will_do(
    tmp_path: Path, pythons: dict[str, str], chosen: str
) -> None:
    """3.11 or newer, with ensurepip, which Debian's python3-venv brings."""
    for name, version in pythons.items():
        good = version != "no ensurepip" and int(version.partition(".")[2]) >= 11
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {0 if good else 1}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", CLONE / "scripts/python.sh"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.returncode == 0) == (chosen, bool(chosen))
