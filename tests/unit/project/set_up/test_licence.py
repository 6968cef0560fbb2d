# SPDX-License-Identifier: Apache-2.0
"""The wheel's licence expression names the licence of every file that is in it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

CLONE = Path(__file__).parents[4]
PROJECT = tomllib.loads((CLONE / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]


def files_of_the_wheel() -> list[Path]:
    """Return the files that hatchling takes."""
    roots = [CLONE / name for name in (*WHEEL["packages"], *WHEEL["force-include"])]
    return [
        file for root in roots for file in ([root] if root.is_file() else root.rglob("*")) if file.is_file()
    ]


def test_the_expression_names_every_licence_in_the_wheel() -> None:
    """GPL for what needs Scapy and for what is built into Linux and QEMU; their texts are there too."""
    licences = set()
    for file in files_of_the_wheel():
        head = file.read_bytes()[:400].decode(errors="replace")
        licences |= set(re.findall(r"SPDX-License-Identifier: ([\w.-]+)", head))
    assert {"Apache-2.0", "GPL-2.0-only", "GPL-2.0-or-later"} <= licences
    assert set(PROJECT["project"]["license"].split(" AND ")) == licences
    for licence in licences:  # of "or later" the text is that of the version itself
        assert (CLONE / f"LICENSES/{licence.replace('or-later', 'only')}.txt").is_file()
