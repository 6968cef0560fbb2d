# SPDX-License-Identifier: Apache-2.0
"""`espbench example [NAME]`: lists or prints the plans and DUT profiles that come with espbench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench.errors import UsageError
from espbench.paths import DataKind, data_dir, data_names, own_yaml

# Profiles have the name of their folder in front, because some plans and profiles have the same name.
_PROFILES: DataKind = "dut-profiles"


def example(
    name: Annotated[
        str | None,
        typer.Argument(
            help=f"The plan to print, or a DUT profile, such as {_PROFILES}/remote-example. Default: list all."
        ),
    ] = None,
) -> None:
    """List or print the plans and DUT profiles that come with espbench: espbench example quick > quick.yaml."""
    files = _files()
    if name is None:
        width = max(map(len, files))
        for each, file in files.items():
            print(f"{each:{width}}  {_first_sentence(file)}")
        return
    if name not in files:
        raise UsageError(
            f"example: expected the name of a plan, or {_PROFILES}/ and the name of a DUT profile, got {name}; "
            "espbench example lists them all"
        )
    sys.stdout.write(files[name].read_text(encoding="utf-8"))


def _files() -> dict[str, Path]:
    """Return all files that can be printed, by their names: the plans first."""
    plans = {name: data_dir("plans") / f"{name}.yaml" for name in data_names("plans")}
    profiles = {f"{_PROFILES}/{name}": data_dir(_PROFILES) / f"{name}.yaml" for name in data_names(_PROFILES)}
    return plans | profiles


def _first_sentence(file: Path) -> str:
    """Return the first sentence of the comment at the top of a file; without a comment, its `dut`."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if "SPDX" not in line:
            lines.append(line.strip("# "))
    sentence = " ".join(lines).strip().partition(". ")[0].rstrip(".:")
    return sentence or f"dut: {own_yaml(file).get('dut', 'auto')}"
