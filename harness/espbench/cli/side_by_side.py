# SPDX-License-Identifier: Apache-2.0
"""Shows in the terminal a run that measures several cases at once, and decides how many cases that are."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from rich.console import Console
from rich.progress import Progress, TaskID

from espbench.cli.progress import Bounds, TerminalObserver, clock, plainly, trial_words
from espbench.errors import UsageError
from espbench.measure import machine
from espbench.measure.inputs.setup import Request
from espbench.plan import Case, ResolvedPlan
from espbench.platforms.virtual import virtual_pair
from espbench.results.exports.prometheus_file import PrometheusFile
from espbench.runs.beds import Choice, no_room
from espbench.terms import Finding, Outcome


def jobs_for(asked: int | None, choices: Sequence[Choice], *, virtual_time: bool) -> int:
    """Return how many cases are measured at once.

    In virtual time these are as many as the user asked for; by default, as many as the CPUs, the memory and the space
    for links suffice for. In real time it is one. Raise UsageError if the user asked for several in real time, which
    would take CPU time from each other.
    """
    if not virtual_time:
        if asked not in (None, 1):
            where = ", ".join(choice.platform.name for choice in choices)
            raise UsageError(
                f"--jobs {asked}: expected a plan in virtual time (devices that are emulated)\n"
                f"  got: {where}, which is measured in real time: cases side by side would take each other's CPUs\n"
                "  what to do: leave --jobs out; such cases are measured one after the other"
            )
        return 1
    if asked is not None:
        return asked
    need_mb = max(choice.platform.memory_mb() for choice in choices)
    links_mb = max(choice.platform.links_mb() for choice in choices)
    free_mb, free_for_links_mb = machine.free_memory_mb(), virtual_pair.free_for_links_mb()
    jobs = len(os.sched_getaffinity(0))
    while jobs > 1 and (no_room([need_mb] * jobs, free_mb) or links_mb * jobs > free_for_links_mb):
        jobs -= 1
    return jobs


def refuse_cluster(
    address: str, jobs: int | None, resolved: ResolvedPlan, choices: Sequence[Choice], *, virtual_time: bool
) -> None:
    """Raise UsageError if a plan cannot be given to a cluster."""
    plan = resolved.plan
    why = (
        "a plan of cipher kernels, which this machine's CPUs share"
        if plan.cipher_kernels
        else "a driver-level test of devices in real time, which is of one machine"
        if not virtual_time and (plan.accelerator is not None or plan.public_key_unit is not None)
        else "boxes, which are cabled to one machine: start the run there"
        if not virtual_time and any(math.isinf(choice.platform.memory_mb()) for choice in choices)
        else f"--jobs {jobs} beside it: there are as many at once as the cluster has workers"
        if jobs is not None
        else ""
    )
    if why:
        raise UsageError(
            f"--cluster {address}: expected cases that other machines can measure\n"
            f"  got: {why}\n  what to do: leave one out"
        )


def refuse_executor(cluster: str | None, resolved: ResolvedPlan, *, virtual_time: bool) -> None:
    """Raise UsageError if a plan cannot be given to an executor of the Python API."""
    why = (
        "a plan whose devices are measured in real time: their figures are of one machine"
        if not virtual_time
        else "a plan of cipher kernels, which this machine's CPUs share"
        if resolved.plan.cipher_kernels
        else f"a cluster beside it, {cluster}"
        if cluster is not None
        else ""
    )
    if why:
        raise UsageError(
            f"executor: expected cases in virtual time alone\n  got: {why}\n  what to do: leave one out"
        )


class ManyCases:
    """Prints all lines of a case when it is finished; a terminal also has a live line for each case in progress."""

    def __init__(
        self, console: Console, progress: Progress | None, metrics: PrometheusFile | None = None
    ) -> None:
        self._console = console
        self._progress = progress
        self._metrics = metrics
        self._all: TaskID | None = None
        self._done = self._left = ""

    def note(self, text: str) -> None:
        self._console.print(f"[dim]{plainly(text)}[/dim]")

    def of(self, name: str) -> OneOfMany:
        """Return an observer of one case, or of another task with this name."""
        return OneOfMany(name, self._console, self._progress, self._metrics)

    def finished(self, tasks: int, of: int) -> None:
        """Show how many of all tasks are done."""
        self._done = f"{tasks} of {of} done"
        if self._progress:
            if self._all is None:
                self._all = self._progress.add_task("", total=of)
            self._progress.update(self._all, completed=tasks)
        self._show()

    def time_left(self, seconds: float) -> None:
        if self._metrics:
            self._metrics.time_left(seconds)
        self._left = f", about {clock(seconds)} left"
        self._show()

    def _show(self) -> None:
        if self._progress and self._all is not None:
            self._progress.update(self._all, description=self._done + self._left)


class OneOfMany(TerminalObserver):
    """Collects the lines of one case until its end, and has a live line that shows its progress."""

    def __init__(
        self, name: str, console: Console, progress: Progress | None, metrics: PrometheusFile | None = None
    ) -> None:
        super().__init__(console, None, metrics)
        self._name = name
        self._live = progress
        self._line: TaskID | None = None
        self._lines: list[str] = []

    def note(self, text: str) -> None:
        self._console.print(f"[dim]{self._name}: {plainly(text)}[/dim]")

    def case_started(self, case: Case, number: int, of: int, done_trials: int) -> None:
        self._lines.clear()
        super().case_started(case, number, of, done_trials)
        if self._live and self._line is None:
            self._line = self._live.add_task(f"{self._name}  gateways", total=1.0)

    def trial_started(self, request: Request, bounds: Bounds) -> None:
        if self._live and self._line is not None:
            text = f"{self._name}  {trial_words(request, bounds)}"
            self._live.update(self._line, completed=0, total=request.duration_s, description=text)

    def trial_progress(self, event: dict[str, object]) -> None:
        if self._live and self._line is not None:
            elapsed_s = event["elapsed_s"]
            assert isinstance(elapsed_s, int | float)
            self._live.update(self._line, completed=elapsed_s)

    def case_done(self, results: list[Outcome | Finding]) -> None:
        if not self._lines:
            self._print(f"[bold]{self._name}[/bold] was complete")
        super().case_done(results)
        self._console.print("\n".join(self._lines))
        self._lines.clear()
        if self._live and self._line is not None:
            self._live.remove_task(self._line)
            self._line = None

    def time_left(self, seconds: float) -> None:
        """Do nothing: the time left is shown for all cases together."""

    def _print(self, text: str) -> None:
        self._lines.append(text)
