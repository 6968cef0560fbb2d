# SPDX-License-Identifier: Apache-2.0
"""`espbench verify RUN`: calculates the results of a run again from its trials, for a reader who doubts them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli.finished.documents import reports_apart, tables_apart
from espbench.cli.finished.recalculation import differences, left_out
from espbench.errors import UsageError
from espbench.own_code import own_code
from espbench.plan import load_plan
from espbench.reporting.parts.wording import plural
from espbench.results import FORMAT, RunDirectory
from espbench.version import __version__

NOT_FOLLOWING = 3


def verify(run: Annotated[Path, typer.Argument(help="A run directory.")]) -> None:
    """Calculate the results of a run again from its recorded trials; measures nothing, on any machine."""
    directory = RunDirectory.open(run)
    manifest = directory.manifest
    if not manifest.cases:
        raise UsageError(
            f"{run}: nothing to verify\n  expected: a run with results of trials\n"
            "  got: driver-level tests or cipher kernels alone, whose figures are not calculated again\n"
            "  what to do: measure its plan again, and compare the files"
        )
    if manifest.format != FORMAT:
        raise UsageError(
            f"{run}: cannot verify\n  expected: a run of format {FORMAT}\n"
            f"  got: format {manifest.format}, which has no codes and no exact values of its results\n"
            "  what to do: measure its plan again"
        )
    stood = manifest.plan_path
    resolved = load_plan(run / "plan.yaml", beside=Path(stood) if stood else None)
    frames = resolved.traffic.fingerprint
    if (before := manifest.conditions.get("traffic", frames)) != frames:
        raise UsageError(
            f"{run}: cannot verify\n  expected: the frames that were sent, {before}\n  got: {frames}\n"
            f"  what to do: put the plan's traffic profile and recordings beside {stood or 'the plan'}, as they were"
        )
    recorded = directory.results()
    damage = directory.damage(recorded)
    for damaged in damage:
        print(f"{run / 'trials.jsonl'}: damaged: {damaged}", file=sys.stderr)
    is_ours = manifest.code.get("code") == own_code()["code"]
    if not is_ours:
        print(
            f"measured by espbench {manifest.made_by}; calculated by {__version__}, code {own_code()['code']}; "
            f"reports are not compared; to write them again: espbench report {run}"
        )
    unfinished = "" if manifest.finished else " (the run is not finished)"
    if resolved.plan.accelerator or resolved.plan.public_key_unit:
        print("figures of driver-level tests are left out")
    if more := left_out(directory):
        print(more)
    apart = list(differences(resolved, directory))
    for difference in apart:
        print(f"{difference.case}, {difference.result}: {difference.what}")
    files = list(tables_apart(directory, same_code=is_ours))
    if is_ours and not (apart or damage or files):
        files = [f"{name}: not as `espbench report` writes it" for name in reports_apart(directory)]
    for one in files:
        print(one)
    trials = plural(sum(directory.trial_counts().values()), "recorded trial")
    of = plural(len(recorded), "result")
    if files and not (apart or damage):
        print(f"{of}: all follow from {trials}{unfinished}, but files say something else")
        print(f"what to do: believe results.json, and write the others again: espbench report {run}")
        raise typer.Exit(NOT_FOLLOWING)
    if apart or damage:
        print(f"not all of {of} follow from {trials}{unfinished}: {plural(len(apart), 'difference')}")
        raise typer.Exit(NOT_FOLLOWING)
    print(f"{of}: all follow from {trials}{unfinished}")
