# SPDX-License-Identifier: Apache-2.0
"""`espbench example [NAME]`: lists or prints the plans that come with espbench, to run or to change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench.errors import UsageError
from espbench.paths import data_dir, data_names, own_yaml


def example(
    name: Annotated[str | None, typer.Argument(help="The plan to print. Default: list all.")] = None,
) -> None:
    """List or print the plans that come with espbench: espbench example quick > quick.yaml."""
    names = data_names("plans")
    if name is None:
        width = max(map(len, names))
        for each in names:
            print(f"{each:{width}}  {_first_sentence(each)}")
        return
    if name not in names:
        raise UsageError(
            f"example: expected one of {', '.join(names)}, got {name}; espbench example lists them"
        )
    sys.stdout.write(_text(name))


def _text(name: str) -> str:
    return _file(name).read_text(encoding="utf-8")


def _file(name: str) -> Path:
    return data_dir("plans") / f"{name}.yaml"


def _first_sentence(name: str) -> str:
    """Return the first sentence of the comment at the top of a plan; without a comment, its `dut`."""
    lines = []
    for line in _text(name).splitlines():
        if not line.startswith("#"):
            break
        if "SPDX" not in line:
            lines.append(line.strip("# "))
    sentence = " ".join(lines).strip().partition(". ")[0].rstrip(".:")
    return sentence or f"dut: {own_yaml(_file(name)).get('dut', 'auto')}"
