# SPDX-License-Identifier: Apache-2.0
"""`espbench validate PLAN`: checks a plan and counts its cases; changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from espbench.plan import cases, load_plan
from espbench.runs.platform_kinds.shared import labgrid_checks


def validate(plan: Annotated[Path, typer.Argument(help="The plan, a YAML file.")]) -> None:
    """Check a plan and list every mistake with file, line and column. Measures nothing."""
    checked = load_plan(plan)
    labgrid_checks.check(checked)
    print(f"{plan}: ok, {len(cases(checked))} cases")
