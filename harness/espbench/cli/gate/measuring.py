# SPDX-License-Identifier: Apache-2.0
"""Lets `espbench run` measure a plan in a process of its own, as it is or at the loads of a base."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from espbench.errors import EspbenchError
from espbench.gate import from_check, low_loads
from espbench.gate.base import Base
from espbench.gate.limits import DEFAULTS
from espbench.results import RunDirectory
from espbench.terms import BaseLoad, CaseEntry

PROGRAM = (sys.executable, "-m", "espbench")
# The exit codes of a complete run, and of one in which some case has no figure; the check says which case it is.
_WHOLE = (0, 3)


@dataclass(frozen=True)
class Measuring:
    """Makes runs. out: the folder for their directories; options: further options of `espbench run`."""

    out: Path
    options: Sequence[str] = ()

    def with_low_loads(self, base: Base, plan: Path, entries: Sequence[CaseEntry]) -> Base:
        """Return the base of a new run; measure each case at a tenth of its throughput too, and add these figures."""
        wanted = low_loads.to_measure(base)
        return low_loads.measured(wanted, self.run(plan, from_check.base_loads(wanted, entries, DEFAULTS)))

    def run(self, plan: Path, base_loads: Mapping[str, Sequence[BaseLoad]] | None = None) -> RunDirectory:
        """Measure the plan and return its run directory; the messages of the run go to stderr.

        Raise typer.Exit with the run's exit code if it did not finish, and EspbenchError if it names no run directory.
        """
        with tempfile.TemporaryDirectory(prefix="espbench-") as folder:
            argv = [*PROGRAM, "run", str(plan), "--out", str(self.out), "--no-report"]
            if base_loads is not None:
                file = Path(folder) / "base-loads.json"
                loads = {case: [load.model_dump() for load in of] for case, of in base_loads.items()}
                file.write_text(json.dumps(loads), encoding="utf-8")
                argv += ["--base-loads", str(file)]
            code, said = _waited_for([*argv, *self.options])
        if code not in _WHOLE:
            raise typer.Exit(code if code > 0 else 1)
        lines = said.strip().splitlines()
        path = Path(lines[-1]).parent if lines else None
        if path is None or not path.is_dir():
            raise EspbenchError("espbench run ended without saying where its run directory is")
        return RunDirectory.open(path)


def write_report(run: RunDirectory) -> None:
    """Write the report of a run in a process of its own; what went wrong is only said, since the run is complete."""
    code, _ = _waited_for([*PROGRAM, "report", str(run.path), "--format", "html"])
    if code:
        print(f"the report could not be written; try again: espbench report {run.path}", file=sys.stderr)


def _waited_for(argv: Sequence[str]) -> tuple[int, str]:
    """Run a program and return (exit code, stdout); if this command is interrupted, end the program properly first."""
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        said, _ = process.communicate()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    return process.returncode, said
