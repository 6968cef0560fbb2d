# SPDX-License-Identifier: Apache-2.0
"""`espbench run PLAN`: measure, and write the report."""

from __future__ import annotations

import secrets
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from espbench import __version__
from espbench.cli.progress import terminal
from espbench.errors import EspbenchError, UsageError
from espbench.generators.native import NativeGenerator, binary
from espbench.measure import machine
from espbench.plan import Case, Plan, cases, load_plan, notes
from espbench.platforms import placement
from espbench.platforms.registry import Registry
from espbench.procedures.lab import Choice, ExternalLab, PairLab, choose, require
from espbench.procedures.session import Session
from espbench.results import FORMAT, RunDirectory
from espbench.terms import Manifest, Outcome

INCOMPLETE = 3


def run(
    plan: Annotated[Path | None, typer.Argument(help="The plan, a YAML file.")] = None,
    out: Annotated[Path, typer.Option(help="Where run directories go.")] = Path("runs"),
    resume: Annotated[Path | None, typer.Option(help="Go on with an interrupted run.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the cases and say where they would run; measure nothing.")
    ] = False,
) -> None:
    """Run a plan: calibrate, measure every case, write the report. After Ctrl-C it can be resumed."""
    if (plan is None) == (resume is None):
        raise UsageError(
            "run: expected a plan, or --resume with a run directory; got "
            + ("none" if plan is None else "both")
        )
    if resume is not None:
        directory = RunDirectory.open(resume)
        stood = directory.manifest.plan_path
        checked = load_plan(resume / "plan.yaml", beside=Path(stood) if stood else None)
    else:
        assert plan is not None
        checked = load_plan(plan)
    choice = None if checked.topology == "external" else choose(checked)
    dut = choice.profile.name if choice else checked.dut
    if dry_run:
        _dry_run(checked, choice, dut)
        return
    if resume is not None:
        _same_cases(directory, checked, choice, dut)
    require(checked, choice)
    binary()
    if resume is None:
        directory = RunDirectory.create(out, checked.name, _manifest(checked, choice, dut), checked.text)
    else:
        directory.lock()
        moments = [*directory.manifest.resumed, _now()]
        directory.save_manifest(directory.manifest.model_copy(update={"resumed": moments}))
    with directory:
        outcomes = _measure(checked, choice, dut, directory)
    print(_write_report(directory.path))
    if any(o.status in ("INVALID", "UNRESOLVABLE") for o in outcomes):
        raise typer.Exit(INCOMPLETE)


def _measure(plan: Plan, choice: Choice | None, dut: str, directory: RunDirectory) -> list[Outcome]:
    listed = _cases(plan, choice, dut)
    try:
        with Registry(secrets.token_hex(3)) as registry, terminal(directory.path) as observer:
            if choice is not None:
                observer.note(f"platform {choice.profile.platform}: {choice.reason}")
            for note in notes(plan):
                observer.note(note)
            placed = placement.choose(gateways=choice is not None)
            placement.pin_controller(placed)
            lab = (
                PairLab(plan, choice.profile, registry, placed, directory.logs)
                if choice
                else ExternalLab(plan, placed)
            )
            session = Session(
                plan,
                listed,
                directory,
                lab,
                lambda: NativeGenerator(registry, directory.logs / "generator.log"),
                observer,
                dut,
            )
            return session.run()
    except KeyboardInterrupt:
        print(f"interrupted; go on with: espbench run --resume {directory.path}", file=sys.stderr)
        raise
    except EspbenchError as error:
        error.add_note(f"once that is mended, go on with: espbench run --resume {directory.path}")
        raise


def _manifest(plan: Plan, choice: Choice | None, dut: str) -> Manifest:
    line_rate = plan.line_rate or (choice.profile.line_rate if choice else 0.0)
    return Manifest(
        format=FORMAT,
        espbench=__version__,
        name=plan.name,
        started=_now(),
        plan_path=str(plan.path.resolve()) if plan.path else "",
        platform=choice.profile.platform if choice else "external",
        platform_reason=choice.reason if choice else "the plan's own boxes",
        topology=plan.topology,
        line_rate_bps=line_rate,
        cases=[case.entry(dut) for case in _cases(plan, choice, dut)],
        tools=machine.tools(),
        host=machine.describe(),
        warnings=notes(plan),
    )


def _same_cases(directory: RunDirectory, plan: Plan, choice: Choice | None, dut: str) -> None:
    """UsageError if resuming would put figures of something else beside those already measured."""
    begun = directory.manifest
    entries = [case.entry(dut) for case in _cases(plan, choice, dut)]
    platform = choice.profile.platform if choice else "external"
    if (begun.platform, begun.cases) != (platform, entries):
        raise UsageError(
            f"{directory.path}: this run cannot go on here\n"
            f"  expected: the {len(begun.cases)} cases on {begun.platform} that it was begun with\n"
            f"  got: {len(entries)} cases on {platform}"
            + (f" ({choice.reason})" if choice else "")
            + "\n  what to do: undo the change of its plan.yaml or of this machine, or start a new run"
        )


def _write_report(path: Path) -> Path:
    """In a process of its own: charts need much memory, the controller is to stay small."""
    done = subprocess.run(
        [sys.executable, "-m", "espbench", "report", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise EspbenchError(
            f"the run is complete, its report could not be written: {done.stderr.strip()}\n"
            f"  try again: espbench report {path}"
        )
    return Path(done.stdout.strip().splitlines()[-1])


def _dry_run(plan: Plan, choice: Choice | None, dut: str) -> None:
    listed = _cases(plan, choice, dut)
    where = f"{choice.profile.platform}: {choice.reason}" if choice else "external boxes"
    print(f"{plan.name}: {len(listed)} cases on {dut} ({where})")
    for note in notes(plan):
        print(f"note: {note}")
    for case in listed:
        print(f"  {case.id}" + "".join(f"  ({note})" for note in case.notes))


def _cases(plan: Plan, choice: Choice | None, dut: str) -> list[Case]:
    return cases(plan, dut, mtu=choice.profile.mtu) if choice else cases(plan, dut)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
