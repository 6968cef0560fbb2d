# SPDX-License-Identifier: Apache-2.0
"""The test `cipher_kernels`: every configuration that a plan lists, several at once on this machine's CPUs.

Results do not depend on the host, so the order of the configurations does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path

from espbench.errors import UsageError
from espbench.npcrypt import board, compilers
from espbench.npcrypt.compilers import Compilation
from espbench.npcrypt.measure import Configuration, Programs
from espbench.npcrypt.measure import measure as on_engines
from espbench.npcrypt.processes import Processes
from espbench.plan.duts.profiles import Profile
from espbench.plan.keys.kernel_test import CipherKernels
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.platforms.virtual.parts.kits import E500_KIT
from espbench.platforms.virtual.virtual_guest import emulator_of, parts_of
from espbench.results import RunDirectory, kernels
from espbench.results.kernels import KernelResult
from espbench.this_machine.registry import Registry

_SAVED_EACH = 20  # results are saved after this many; an interrupted run repeats no more than these


def measure(
    resolved: ResolvedPlan,
    directory: RunDirectory,
    note: Callable[[str], None],
    at_once: int,
    registry: Registry,
) -> list[KernelResult]:
    """Measure the configurations that the run lacks, `at_once` of them at a time; return all results in the plan's
    order.

    Raise EspbenchError if a kernel cannot be compiled or computes a wrong result.
    """
    asked = configurations(resolved)
    records = kernels.read_to_resume(directory.path)
    done = {result.key: result for result in records.whole}
    if records.damaged:
        note(f"{kernels.FILE}: {records} not as written; measured again")
    _keep_versions(directory, asked)
    processes = Processes(registry)
    run = _runner(registry.directory("kernels"), processes)
    with ThreadPoolExecutor(at_once) as workers:
        pending = {
            c.recorded.key: workers.submit(run, c, profile)
            for c, profile in asked
            if c.recorded.key not in done
        }
        try:
            _collect(asked, done, pending, directory, note)
        finally:
            workers.shutdown(wait=False, cancel_futures=True)
            processes.end()  # a board would run on for minutes
    results = [done[c.recorded.key] for c, _ in asked]
    kernels.save(directory.path, results)
    note(f"cipher kernels: {len(results)} configurations, every byte of output is correct")
    return results


def listed(resolved: ResolvedPlan) -> list[str]:
    """Return a text for each test with the number of its configurations."""
    return [
        f"cipher_kernels: {sum(1 for _ in _of_test(resolved, test))} configurations"
        for test in resolved.plan.cipher_kernels
    ]


def configurations(resolved: ResolvedPlan) -> list[tuple[Configuration, Profile]]:
    """Return every configuration with its DUT's profile, in the plan's order and each once."""
    listed = {
        c.recorded.key: (c, profile)
        for test in resolved.plan.cipher_kernels
        for c, profile in _of_test(resolved, test)
    }
    return [*listed.values()]


def _runner(folder: Path, processes: Processes) -> Callable[[Configuration, Profile], KernelResult]:
    """Return a function that measures one configuration on what its DUT is; folder: for programs."""
    programs = Programs(folder, processes)

    def run(c: Configuration, profile: Profile) -> KernelResult:
        if profile.processor is not None:
            return on_engines(c, profile.processor, programs)
        how = c.compilation
        own = folder / f"{c.dut}-{c.kernel}-{how.level}-{how.option}-{c.data}"
        return board.measure(c, profile, E500_KIT.require(), own, processes)

    return run


def _of_test(resolved: ResolvedPlan, test: CipherKernels) -> Iterator[tuple[Configuration, Profile]]:
    for dut, profile in resolved.duts:
        if profile is None or (test.duts and dut not in test.duts):
            continue
        for kernel, level, compiler, option, engines, threads in product(
            test.kernels, test.levels, test.compilers, test.options, test.engines, test.threads
        ):
            yield (
                Configuration(
                    dut=profile.name,
                    kernel=kernel,
                    compilation=Compilation(level, compiler, option),
                    engines=engines,
                    threads=threads,
                    data=test.data,
                    faster_dram=test.faster.dram,
                    faster_sram=test.faster.sram,
                ),
                profile,
            )


def _collect(
    asked: list[tuple[Configuration, Profile]],
    done: dict[kernels.KernelKey, KernelResult],
    pending: dict[kernels.KernelKey, Future[KernelResult]],
    directory: RunDirectory,
    note: Callable[[str], None],
) -> None:
    for number, (configuration, _) in enumerate(asked, 1):
        key = configuration.recorded.key
        if key in pending:
            done[key] = result = pending[key].result()
            note(f"{number} of {len(asked)}: {configuration.shown}: {result.mbps:.4g} Mbps")
        if number % _SAVED_EACH == 0:
            kernels.save(directory.path, [done[c.recorded.key] for c, _ in asked[:number]])


def _keep_versions(directory: RunDirectory, asked: list[tuple[Configuration, Profile]]) -> None:
    """Add the versions of compilers, sources and the boards' parts to the run's tools: the figures depend on them.

    Raise UsageError if the run was begun with other versions.
    """
    used = dict.fromkeys(c.compilation.compiler for c, profile in asked if profile.processor is not None)
    versions = {kernels.COMPILER.format(name): compilers.version(name) for name in used}
    versions[kernels.SOURCES] = compilers.sources_digest()
    if any(profile.board is not None for _, profile in asked):
        versions[kernels.COMPILER.format(board.COMPILER)] = compilers.first_line(board.COMPILER)
        built = E500_KIT.require()
        versions |= parts_of(built) | emulator_of(built)
    before = directory.manifest.tools
    for name, version in versions.items():
        if before.get(name, version) != version:
            raise UsageError(
                f"{directory.path}: cannot go on\n  expected: {name} as it was begun with, {before[name]}\n"
                f"  got: {version}\n  what to do: install that again, or start a new run"
            )
    directory.update_manifest(tools=before | versions)
