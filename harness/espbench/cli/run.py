# SPDX-License-Identifier: Apache-2.0
"""`espbench run PLAN`: measures a plan, and writes the report."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from espbench.cli.expected import expected
from espbench.cli.gate.options import Wait
from espbench.cli.progress import TerminalObserver, measuring, remarks_in_short, terminal
from espbench.cli.resumption import code_of_all, other_code, same_place, same_run
from espbench.cli.side_by_side import ManyCases, jobs_for, refuse_cluster, refuse_executor
from espbench.errors import EspbenchError, UsageError
from espbench.generators import choose as generators
from espbench.generators.base import Generator
from espbench.measure import machine
from espbench.own_code import own_code
from espbench.plan import ResolvedPlan, load_plan, notes
from espbench.plan.checks.compare_checks import LEAST_REPEATS
from espbench.plan.resolved.arms import compare_settings, execution_order
from espbench.plan.resolved.asked import asked
from espbench.plan.resolved.conditions import conditions
from espbench.procedures.boards import accelerator, cipher_kernels, public_key_unit
from espbench.reporting.parts.wording import plural
from espbench.results import FORMAT, RunDirectory, contradictions
from espbench.results import accelerator as accelerator_results
from espbench.results.durable import refused_by_disk, write_failure
from espbench.results.exports.prometheus_file import PrometheusFile
from espbench.runs import parts
from espbench.runs.beds import (
    Beds,
    Choice,
    cases_of,
    choose,
    place,
    profiles_of,
    require,
    virtual,
)
from espbench.runs.platform_kinds.shared.platform import Workspace, kits_of, own_files_of
from espbench.runs.session import Session
from espbench.runs.workers.bench_session import OnBenches
from espbench.runs.workers.benches import Benches, benches_of
from espbench.runs.workers.cluster import connect
from espbench.runs.workers.lent import LentWorkers
from espbench.runs.workers.local import LocalWorkers, Workers
from espbench.runs.workers.session import SideBySide
from espbench.terms import Finding, Manifest, Outcome
from espbench.this_machine.registry import Registry
from espbench.version import __version__

INCOMPLETE = 3
ANSWERED = ("OK", "BELOW_MINIMUM")  # the measurement of such a case is complete


PlanFile = Annotated[Path | None, typer.Argument(help="The plan, a YAML file.")]
Out = Annotated[Path, typer.Option(help="The folder for new run directories.")]
Resume = Annotated[Path | None, typer.Option(help="Continue this interrupted run directory.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="List the cases and where they would run; measure nothing.")
]
NoReport = Annotated[
    bool, typer.Option("--no-report", help="Do not write the report; espbench report can write it later.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", min=1, help="In virtual time: measure N cases at once. Default: the number of CPUs."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="Measure the cases on the machines of a Dask cluster, tls://HOST:PORT."),
]
Seed = Annotated[
    int | None, typer.Option(help="In virtual time: the seed of all random numbers, in place of the plan's.")
]
RealTime = Annotated[
    bool, typer.Option("--real-time", help="Do not let dut: auto choose gateways in virtual time.")
]
Metrics = Annotated[
    Path | None,
    typer.Option(help="Keep a file for Prometheus' node exporter up to date: how far the run is."),
]
Lent = Annotated[
    int | None, typer.Option("--lent", hidden=True, help="A socket to the process whose executor measures.")
]
BaseLoads = Annotated[
    Path | None, typer.Option("--base-loads", hidden=True, help="What espbench check measures, a JSON file.")
]
Beside = Annotated[
    Path | None,
    typer.Option("--beside", hidden=True, help="Where a plan that was copied is read as if it stood."),
]
Profiled = Annotated[
    bool, typer.Option("--profiled", hidden=True, help="What espbench profile reads is left in logs/.")
]


def run(  # noqa: PLR0913  (its options)
    plan: PlanFile = None,
    out: Out = Path("runs"),
    resume: Resume = None,
    dry_run: DryRun = False,
    no_report: NoReport = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    seed: Seed = None,
    real_time: RealTime = False,
    wait: Wait = False,
    metrics: Metrics = None,
    lent: Lent = None,
    base_loads: BaseLoads = None,
    beside: Beside = None,
    profiled: Profiled = False,
) -> None:
    """Measure a plan and write the report. After Ctrl-C, continue with --resume."""
    begun, resolved = _read(plan, resume, beside, seed)
    choices = choose(resolved, virtual_time=not real_time)
    if dry_run:
        _dry_run(resolved, choices)
        return
    at_once = jobs_for(jobs, choices, virtual_time=virtual(choices))
    if cluster is not None:
        refuse_cluster(cluster, jobs, resolved, choices, virtual_time=virtual(choices))
    if lent is not None:
        refuse_executor(cluster, resolved, virtual_time=virtual(choices))
    on_benches = cluster is not None and not virtual(choices)
    if begun is not None:
        same_place(begun, on_benches=on_benches)
        _same_run(begun, resolved, choices)
    if not on_benches:
        _require_here(resolved, choices)
    progress_file = PrometheusFile(metrics) if metrics is not None else None
    elsewhere = _elsewhere(cluster, lent, choices, at_once, on_benches=on_benches)
    if begun is not None:
        begun.lock()
    # Nothing is measured here in real time on a cluster; each machine's lock is taken there.
    with contextlib.nullcontext() if on_benches else measuring(shared=virtual(choices), wait=wait):
        if begun is not None:
            directory = _go_on(begun)
        else:
            manifest = _manifest(resolved, choices, base_loads, on_benches=on_benches)
            directory = RunDirectory.create(out, resolved.plan.name, manifest, resolved.text)
        with directory, progress_file.begin(directory) if progress_file else contextlib.nullcontext():
            results = _measure(
                resolved, choices, directory, at_once, elsewhere, progress_file, profiled=profiled
            )
            directory.update_manifest(finished=True)
    if remarks := remarks_in_short(contradictions.marked(results)):
        print(remarks, file=sys.stderr)
    print(directory.path / "results.csv" if no_report else _write_report(directory.path))
    if is_incomplete(results) | _has_invalid_figures(directory):
        raise typer.Exit(INCOMPLETE)


def _require_here(resolved: ResolvedPlan, choices: list[Choice]) -> None:
    require(resolved, choices, lambda text: print(text, file=sys.stderr))
    if not resolved.plan.cipher_kernels:  # cipher kernels need no generator
        generators.require(resolved.plan.generator.name, resolved.plan.generator.settings)


def _elsewhere(
    cluster: str | None, lent: int | None, choices: list[Choice], at_once: int, *, on_benches: bool
) -> Workers | Benches | None:
    """Return the workers or machines that are not this command's own; None if it has its own."""
    if cluster is not None:
        platforms = [choice.platform for choice in choices]
        workers = connect(cluster, kits_of(platforms), own_files_of(platforms))
        return benches_of(workers) if on_benches else workers
    return LentWorkers(lent, at_once) if lent is not None else None


def _read(
    plan: Path | None, resume: Path | None, beside: Path | None, seed: int | None
) -> tuple[RunDirectory | None, ResolvedPlan]:
    """Read the plan; with resume, open that run directory, read its plan, and return both."""
    if resume is not None and seed is not None:
        raise UsageError(
            f"run: --seed {seed}: a run goes on with the seed that it began with; leave --seed out"
        )
    if resume is not None and plan is None:
        begun = RunDirectory.open(resume)
        stood = begun.manifest.plan_path
        return begun, load_plan(resume / "plan.yaml", beside=Path(stood) if stood else None)
    if plan is not None and resume is None:
        return None, load_plan(plan, beside=beside, seed=seed)
    raise UsageError(
        "run: expected a plan, or --resume with a run directory; got " + ("none" if plan is None else "both")
    )


def _go_on(begun: RunDirectory) -> RunDirectory:
    """Repair the files of an interrupted run, record that it was resumed, and return it."""
    for text in begun.mend():
        print(text, file=sys.stderr)
    moments = [*begun.manifest.resumed, _now()]
    warnings = [*begun.manifest.warnings, *other_code(begun.manifest)]
    begun.update_manifest(
        resumed=moments, warnings=warnings, finished=False, code=code_of_all(begun.manifest.code)
    )
    return begun


def is_incomplete(results: Iterable[Outcome | Finding]) -> bool:
    """Return whether some result has no figure, or only a bound in its place."""
    return any(result.status not in ANSWERED for result in results)


def _has_invalid_figures(directory: RunDirectory) -> bool:
    """Return whether the host disturbed figures of the accelerator test, and print how many."""
    figures = accelerator_results.read(directory.path)
    if invalid := sum(not figure.is_valid for figure in figures):
        print(
            f"accelerator test: {invalid} of {plural(len(figures), 'figure')} INVALID: in each attempt the host took "
            f"too much of the guest's time; to measure again: espbench run --resume {directory.path}",
            file=sys.stderr,
        )
    return invalid > 0


def _measure(
    resolved: ResolvedPlan,
    choices: list[Choice],
    directory: RunDirectory,
    at_once: int,
    elsewhere: Workers | Benches | None,
    metrics: PrometheusFile | None,
    *,
    profiled: bool,
) -> list[Outcome | Finding]:
    try:
        if resolved.plan.cipher_kernels:
            with (
                Registry(secrets.token_hex(3)) as registry,
                terminal(directory.path, TerminalObserver) as observer,
            ):
                _tell(observer.note, resolved, choices)
                cipher_kernels.measure(resolved, directory, observer.note, at_once, registry)
            directory.save_results([])
            return []
        if isinstance(elsewhere, Benches):
            with terminal(directory.path, partial(ManyCases, metrics=metrics)) as observer_of_many:
                _tell(observer_of_many.note, resolved, choices)
                return _on_benches(resolved, choices, directory, observer_of_many, elsewhere)
        # A worker without a task would keep its share of the CPUs from the others.
        useful = min(at_once, _tasks(resolved, choices))
        if elsewhere is not None or useful > 1:
            workers = elsewhere or LocalWorkers(useful)
            with terminal(directory.path, partial(ManyCases, metrics=metrics)) as observer_of_many:
                _tell(observer_of_many.note, resolved, choices)
                if elsewhere is None:
                    _tell_expected(observer_of_many.note, resolved, choices, directory, useful)
                return _side_by_side(
                    resolved, choices, directory, observer_of_many, workers, profiled=profiled
                )
        with (
            Registry(secrets.token_hex(3)) as registry,
            terminal(directory.path, partial(TerminalObserver, metrics=metrics)) as observer,
        ):
            _tell(observer.note, resolved, choices)
            _tell_expected(observer.note, resolved, choices, directory, 1)
            return _one_after_the_other(resolved, choices, directory, observer, registry, profiled=profiled)
    except KeyboardInterrupt:
        print(f"interrupted; go on with: espbench run --resume {directory.path}", file=sys.stderr)
        raise
    except OSError as error:
        if not refused_by_disk(error):
            raise
        # The file is a log, whose writers do not handle errors of the disk.
        failure = write_failure(error.filename or directory.path, error, "every trial before is safe")
        failure.add_note(_resume(directory))
        raise failure from error
    except EspbenchError as error:
        error.add_note(_resume(directory))
        raise


def _tell_expected(
    note: Callable[[str], None],
    resolved: ResolvedPlan,
    choices: list[Choice],
    directory: RunDirectory,
    at_once: int,
) -> None:
    """Say how long a run that begins takes; nothing for a check, whose trials have the loads of its base."""
    if not directory.results() and not directory.manifest.base_loads:
        for text in expected(resolved, choices, at_once):
            note(text)


def _tasks(resolved: ResolvedPlan, choices: list[Choice]) -> int:
    """Return how many cases and accelerator figures could be measured at the same time."""
    asked = resolved.plan.accelerator
    figures = (
        len(choices) * len(asked.crypto) * len(asked.suites) * len(asked.sizes) * len(asked.variants)
        if asked
        else 0
    )
    return len(cases_of(resolved, choices)) + figures


def _tell(note: Callable[[str], None], resolved: ResolvedPlan, choices: list[Choice]) -> None:
    for where in _reasons(choices):
        note(f"platform {where}")
    for text in _notes(resolved, choices):
        note(text)


def _notes(resolved: ResolvedPlan, choices: list[Choice]) -> list[str]:
    """Return the remarks on the whole plan, also on the comparison at fixed loads that virtual time leaves out."""
    plan = resolved.plan
    left_out = []
    if plan.fixed_loads is not None and virtual(choices):
        needed = (
            f"; a verdict needs repeat: {LEAST_REPEATS} or more, and the plan has {plan.repeat}"
            if plan.repeat < LEAST_REPEATS
            else ""
        )
        left_out = [f"in virtual time there is no comparison at fixed loads: searches have no noise{needed}"]
    return [*notes(resolved), *left_out]


def _one_after_the_other(
    resolved: ResolvedPlan,
    choices: list[Choice],
    directory: RunDirectory,
    observer: TerminalObserver,
    registry: Registry,
    *,
    profiled: bool,
) -> list[Outcome | Finding]:
    workspace = Workspace(registry, directory.logs, place(resolved, choices), profiled)
    beds = Beds(resolved, {c.dut: c.platform for c in choices}, workspace, observer.note)

    def new_generator() -> Generator:
        return parts.new_generator(resolved, registry, directory.logs)

    session = Session(resolved, cases_of(resolved, choices), directory, beds, new_generator, observer)
    results = session.run()
    if resolved.plan.accelerator is not None and not directory.manifest.base_loads:
        duts = [choice.dut for choice in choices]
        accelerator.measure(resolved.plan.accelerator, duts, beds, new_generator, directory, observer.note)
    _public_keys(resolved, choices, directory, beds, new_generator, observer.note)
    return results


def _public_keys(
    resolved: ResolvedPlan,
    choices: list[Choice],
    directory: RunDirectory,
    beds: Beds,
    new_generator: Callable[[], Generator],
    note: Callable[[str], None],
) -> None:
    """Measure the engine's public-key unit, if the plan asks for it."""
    asked = resolved.plan.public_key_unit
    if asked is None or directory.manifest.base_loads:
        return
    clocks = {c.dut: c.profile.board.sec.clock / 1e6 for c in choices if c.profile and c.profile.board}
    public_key_unit.measure(asked, clocks, beds, new_generator, directory, note)


def _on_benches(
    resolved: ResolvedPlan,
    choices: list[Choice],
    directory: RunDirectory,
    observer: ManyCases,
    benches: Benches,
) -> list[Outcome | Finding]:
    """Let machines of a cluster measure the plan in real time; this one makes nothing."""
    devices = [(choice.dut, choice.profile) for choice in choices]
    cases = cases_of(resolved, choices)
    return OnBenches(resolved, cases, devices, directory, benches, observer).run()


def _side_by_side(
    resolved: ResolvedPlan,
    choices: list[Choice],
    directory: RunDirectory,
    observer: ManyCases,
    workers: Workers,
    *,
    profiled: bool,
) -> list[Outcome | Finding]:
    """Let workers measure the cases. Each worker has a registry for what it makes; this process makes no gateways."""
    placement = place(resolved, choices)
    nothing = Workspace(Registry(secrets.token_hex(3)), directory.logs, placement, profiled)
    beds = Beds(resolved, {c.dut: c.platform for c in choices}, nothing, observer.note)
    devices = [(choice.dut, choice.profile) for choice in choices]
    session = SideBySide(
        resolved,
        cases_of(resolved, choices),
        devices,
        directory,
        beds,
        placement,
        workers,
        observer,
    )
    results = session.run()
    if resolved.plan.public_key_unit is not None:  # boards with different clocks are measured in turn
        with Registry(secrets.token_hex(3)) as registry:
            workspace = Workspace(registry, directory.logs, placement, profiled)
            own_beds = Beds(resolved, {c.dut: c.platform for c in choices}, workspace, observer.note)
            new = partial(parts.new_generator, resolved, registry, directory.logs)
            _public_keys(resolved, choices, directory, own_beds, new, observer.note)
    return results


def _resume(directory: RunDirectory) -> str:
    return f"once that is mended, go on with: espbench run --resume {directory.path}"


def _manifest(
    resolved: ResolvedPlan, choices: list[Choice], base_loads: Path | None = None, *, on_benches: bool = False
) -> Manifest:
    profiles = profiles_of(choices)
    loads = json.loads(base_loads.read_text(encoding="utf-8")) if base_loads else {}
    return Manifest(
        format=FORMAT,
        espbench=__version__,
        code=own_code(),
        name=resolved.plan.name,
        started=_now(),
        plan_path=str(resolved.path.resolve()) if resolved.path else "",
        platform=_platform(choices),
        platform_reason="; ".join(_why(choices)) or "the plan's own boxes",
        topology=resolved.plan.topology,
        line_rate_bps=choices[0].platform.line_rate_bps,
        cases=[case.entry() for case in cases_of(resolved, choices)],
        # The machines of a cluster that measure in real time tell these themselves.
        tools={} if on_benches else machine.tools(),
        host={} if on_benches else machine.describe(),
        machines={} if on_benches else None,
        warnings=notes(resolved),
        conditions=conditions(resolved, profiles),
        asked=asked(resolved, profiles),
        compare=compare_settings(resolved),
        base_loads=loads,
        finished=False,
    )


def _platform(choices: list[Choice]) -> str:
    return ", ".join(dict.fromkeys(c.platform.name for c in choices))


def _why(choices: list[Choice]) -> list[str]:
    """Return the reasons why these platforms were chosen, each once."""
    return [*dict.fromkeys(c.reason for c in choices if c.reason)]


def _reasons(choices: list[Choice]) -> list[str]:
    """Return each platform with the reason why it was chosen; boxes that a plan names have none."""
    return [f"{c.platform.name}: {c.reason}" for c in choices if c.reason]


def _same_run(directory: RunDirectory, resolved: ResolvedPlan, choices: list[Choice]) -> None:
    same_run(
        directory,
        resolved,
        profiles_of(choices),
        platform=_platform(choices),
        virtual_time=virtual(choices),
        reasons="; ".join(_why(choices)),
        entries=[case.entry() for case in cases_of(resolved, choices)],
    )


def _write_report(path: Path) -> Path:
    """Write the report in a process of its own, since charts need much memory; return its path."""
    done = subprocess.run(
        [sys.executable, "-m", "espbench", "report", str(path)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise EspbenchError(
            f"the run is complete, its report could not be written: {done.stderr.strip()}\n"
            f"  try again: espbench report {path}"
        )
    return Path(done.stdout.strip().splitlines()[-1])


def _dry_run(resolved: ResolvedPlan, choices: list[Choice]) -> None:
    listed = cases_of(resolved, choices)
    duts = ", ".join(dict.fromkeys([case.dut for case in listed] or [choice.dut for choice in choices]))
    where = "; ".join(dict.fromkeys(_reasons(choices))) or "external boxes"
    print(f"{resolved.plan.name}: {len(listed)} cases on {duts} ({where})")
    for note in _notes(resolved, choices):
        print(f"note: {note}")
    try:
        times = expected(resolved, choices, jobs_for(None, choices, virtual_time=virtual(choices)))
    except EspbenchError as error:  # the ports need not be here to list the cases
        times = [f"how long the trials take is not known: {error}"]
    for note in times:
        print(f"note: {note}")
    if (asked := resolved.plan.accelerator) is not None:
        print(f"  accelerator test: {', '.join(asked.crypto)}; {', '.join(asked.suites)}; {asked.sizes} B")
    if (unit := resolved.plan.public_key_unit) is not None:
        print(f"  public-key unit: {unit.sizes} bits at {unit.clocks_mhz} MHz")
    for text in cipher_kernels.listed(resolved):
        print(f"  {text}")
    for case in execution_order(listed, resolved):
        print(f"  {case.id}" + "".join(f"  ({note})" for note in case.notes))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
