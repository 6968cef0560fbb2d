# SPDX-License-Identifier: Apache-2.0
"""`espbench baseline RUN`: writes the figures of a run into a file, which the user commits as a base."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli.gate.measuring import Measuring
from espbench.cli.gate.outputs import is_written_directly, write_output
from espbench.errors import UsageError
from espbench.gate import baseline_file, low_loads
from espbench.gate.from_run import base_of
from espbench.gate.verdict import NOT_JUDGED
from espbench.own_code import own_code
from espbench.plan import Plan, load_plan
from espbench.results import RunDirectory


def baseline(
    run: Annotated[Path, typer.Argument(help="A run directory, in virtual time.")],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("baseline.json"),
    runs: Annotated[
        Path | None,
        typer.Option(
            help="The folder for the run at a tenth of the throughputs. Default: the folder of RUN."
        ),
    ] = None,
) -> None:
    """Write the base for espbench check: each case's throughput, and its instructions per frame at a tenth of that.

    This measures each case once more, on the same gateways.
    If the file exists, the lines of cases that did not change stay as they are.
    """
    _refuse_what_is_no_base(out)
    directory = RunDirectory.open(run)
    base = base_of(directory)
    _refuse_other_code(directory)
    plan, options = plan_of(directory)
    base = Measuring(runs or run.parent, options).with_low_loads(base, plan, directory.manifest.cases)
    if out.is_file():
        with contextlib.suppress(UsageError):  # a damaged base is replaced as a whole
            base = baseline_file.keeping(base, baseline_file.read(out))
    write_output(out, baseline_file.text_of(base))
    print(f"{len(base.cases)} cases, {band(base.repeats)}", file=sys.stderr)
    if points := low_loads.lossy(base):
        print(
            f"repeats lost more than the goal at a tenth of the throughput. A check judges the loss there by the other "
            f"repeats, and ends with exit code {NOT_JUDGED} if there are none: {'; '.join(points)}",
            file=sys.stderr,
        )
    print(out)


def _refuse_what_is_no_base(out: Path) -> None:
    """Raise UsageError if the file to write exists and is something else, such as the plan."""
    if out.is_file() and not is_written_directly(out) and not baseline_file.is_one(out):
        raise UsageError(
            f"--out {out}: not replaced\n  expected: no such file, or one that espbench baseline wrote\n"
            "  got: another file\n  what to do: name another file, or remove this one"
        )


def _refuse_other_code(run: RunDirectory) -> None:
    """Raise UsageError if another espbench measured the run: the base would have figures of both."""
    was, now = run.manifest.code.get("measuring", "none"), own_code()["measuring"]
    if was != now:
        raise UsageError(
            f"{run.path}: cannot make a base of it\n  expected: a run of this espbench, code {now}\n"
            f"  got: one of {run.manifest.made_by}, code {was}\n  what to do: run the plan again"
        )


def plan_of(run: RunDirectory) -> tuple[Path, list[str]]:
    """Return the file of a run's plan, to which its relative paths refer, and the options with which it was measured.

    Raise UsageError if the plan's text has changed.
    """
    path = Path(run.manifest.plan_path)
    if path.is_file():
        if path.read_text(encoding="utf-8") == run.plan_text:
            return path, []
        # The text of a run with --seed has that seed in place of the plan's own; the conditions leave out the default.
        seed = run.manifest.conditions.get("seed", Plan.model_fields["seed"].default)
        with contextlib.suppress(UsageError):
            if load_plan(path, seed=seed).text == run.plan_text:
                return path, ["--seed", str(seed)]
    raise UsageError(
        f"{run.path}: expected its plan as {path}, got {'another text' if path.is_file() else 'no such file'}; "
        "undo the change, or run the plan again"
    )


def band(repeats: int) -> str:
    """Say what the width of the bands of a base with this many repeats means."""
    if repeats == 1:
        return (
            "one repeat: its band has no width, and the limit alone decides what is a regression; "
            "with repeat: 5 in the plan, the band shows what luck of layout is worth"
        )
    return f"bands of {repeats} repeats, each with random numbers of its own: what luck of layout is worth"
