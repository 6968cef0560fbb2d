# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a run in the terminal: the case, the trial, the bounds so far, the time left."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from espbench.measure.inputs.setup import Request
from espbench.plan import Case
from espbench.reporting.parts.statements import flag
from espbench.reporting.parts.wording import plural
from espbench.results.exports.prometheus_file import PrometheusFile
from espbench.sentences import goal_title
from espbench.terms import WITH_FIGURE, Finding, Outcome, Reason, Trial
from espbench.this_machine import machine_lock
from espbench.this_machine.machine_lock import Holder

Shown = TypeVar("Shown")

Bounds = list[tuple[float, float | None, float | None]]

_COLOURS = {"OK": "green", "VIOLATED": "bold red"}
_SHORT = {"search": "search", "final": "final", "measure": "trial"}


class TerminalObserver:
    """Prints a line for each finished trial and case; a terminal also has two live lines below them.

    metrics: gets the same events.
    """

    def __init__(
        self, console: Console, progress: Progress | None, metrics: PrometheusFile | None = None
    ) -> None:
        self._console = console
        self._progress = progress
        self._metrics = metrics
        self._case: TaskID | None = None
        self._trial: TaskID | None = None
        self._bounds: Bounds = []
        self._left = self._which = ""
        self._explained: set[str] = set()  # reasons of several lines that were printed once

    def note(self, text: str) -> None:
        self._print(f"[dim]{plainly(text)}[/dim]")

    def case_started(self, case: Case, number: int, of: int, done_trials: int) -> None:
        resumed = f" (resumed after {done_trials} trials)" if done_trials else ""
        self._print(f"[bold]case {number} of {of}[/bold]  {case.id}{resumed}")
        self._which = f"case {number}/{of}"
        if self._progress:
            if self._case is None:
                self._case = self._progress.add_task("", total=of)
                self._trial = self._progress.add_task("", total=1.0)
            self._progress.update(self._case, completed=number - 1, description=self._which + self._left)

    def trial_started(self, request: Request, bounds: Bounds) -> None:
        self._bounds = bounds
        if self._progress and self._trial is not None:
            text = trial_words(request, bounds)
            self._progress.update(self._trial, completed=0, total=request.duration_s, description=text)

    def trial_progress(self, event: dict[str, Any]) -> None:
        if self._progress and self._trial is not None:
            self._progress.update(self._trial, completed=event["elapsed_s"])

    def trial_done(self, record: Trial) -> None:
        if self._metrics:
            self._metrics.trial_done(record)
        if record.validity == "INVALID":
            verdict = f"[yellow]INVALID[/yellow] {self._why(record.reasons)}"
        elif not record.sustained:
            verdict = f"[red]not sustained[/red] {plainly('; '.join(map(str, record.reasons)))}"
        elif record.lost:
            verdict = f"[red]lost {record.lost:,}[/red] ({record.frame_loss_ratio:.4%})"
        else:
            verdict = "[green]no loss[/green]"
        if record.only_in_stalls:
            verdict += "; only while the host stood still: no miss"
        self._print(
            f"  {_SHORT[record.phase]:6} {record.intended_fps:12,.0f} fps  {record.duration_s:6.2f} s  {verdict}"
        )

    def case_done(self, results: list[Outcome | Finding]) -> None:
        if self._metrics:
            self._metrics.case_done(results)
        for result in results:
            colour = _COLOURS.get(result.status, "yellow")
            first = result.reasons[0].text.splitlines()[:1] if result.reasons else []
            why = "".join(f"  {plainly(line.removesuffix(':'))}" for line in first)
            if isinstance(result, Finding):
                text = (
                    plainly(result.words) if result.status in WITH_FIGURE else f"{plainly(result.test)}{why}"
                )
            else:
                text = f"{goal_title(result.loss_goal)}: {_figures(result)}{why}"
            self._print(f"  [{colour}]{result.status}[/{colour}] {text}")

    def time_left(self, seconds: float) -> None:
        if self._metrics:
            self._metrics.time_left(seconds)
        self._left = f", about {clock(seconds)} left"
        if self._progress and self._case is not None:
            self._progress.update(self._case, description=self._which + self._left)

    def _why(self, reasons: list[Reason]) -> str:
        """Return the reasons as text; of a text with several lines, the others are given only the first time."""
        text = "; ".join(map(str, reasons))
        first, *further = text.splitlines() or ["no reason given"]
        if not further or text in self._explained:
            return plainly(f"{first} as above" if further else first)
        self._explained.add(text)
        return plainly("\n      ".join([first, *further]))

    def _print(self, text: str) -> None:
        self._console.print(text)


@contextlib.contextmanager
def terminal(run: Path, observer: Callable[[Console, Progress | None], Shown]) -> Iterator[Shown]:
    """Print the run directory and yield an observer that writes to stderr, with live lines if that is a terminal."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"run directory {run}", markup=False)
    if not console.is_terminal:
        yield observer(console, None)
        return
    columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        yield observer(console, progress)


@contextlib.contextmanager
def measuring(*, shared: bool = False, wait: bool = False) -> Iterator[None]:
    """Hold the machine's lock while the block measures; stderr shows for which processes it waits, and how long."""
    with contextlib.ExitStack() as held:
        waiting = _Waiting(Console(stderr=True, highlight=False, soft_wrap=True))
        try:
            held.enter_context(machine_lock.held(shared=shared, wait=wait, on_wait=waiting.name_holders))
        finally:
            waiting.stop()
        yield


class _Waiting:
    """Shows what the command waits for: lines for each new holder of the lock, and a live line on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status("")
        self._began = time.monotonic()
        self._holders: list[Holder] | None = None

    def name_holders(self, holders: list[Holder]) -> None:
        if holders != self._holders:
            self._holders = holders
            self._console.print("waiting until no other measurement uses this machine's CPUs; now it is")
            for words in [str(holder) for holder in holders] or ["a process that cannot be seen from here"]:
                self._console.print(f"  {words}", markup=False)
        if self._console.is_terminal:
            minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
            self._status.update(f"waiting for {minutes}:{seconds:02}")
            self._status.start()

    def stop(self) -> None:
        self._status.stop()


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds: `2:05`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def rough(seconds: float) -> str:
    """Return a time in words, rounded: `40 s`, `12 min`, `6 h 45 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def trial_words(request: Request, bounds: Bounds) -> str:
    """Describe in words a trial that begins, and the bounds that are known so far."""
    trial = f"{_kind(request)}, {request.load_fps:,.0f} fps for {request.duration_s:g} s"
    return f"{trial}   {_bounds(bounds)}"


def _bounds(bounds: Bounds) -> str:
    def rate(fps: float | None) -> str:
        return "?" if fps is None else f"{fps:,.0f}"

    return "  ".join(f"{goal_title(goal)}: {rate(low)} … {rate(high)}" for goal, low, high in bounds)


def _kind(request: Request) -> str:
    """Return the kind of a trial in a word or two."""
    if request.shape.burst_frames is not None:
        return f"burst of {request.shape.burst_frames:,} frames"
    if request.shape.steps:
        return "overload, then less"
    return "trial" if request.phase == "measure" else f"{request.phase} trial"


def _figures(o: Outcome) -> str:
    sign = "at least " if o.status == "LOWER_BOUND" else ""
    figure = f"{sign}{o.throughput_fps:,.0f} fps, {o.throughput_mbps:,.1f} Mbps  " if o.throughput_fps else ""
    first = f"{_instructions(o)}  " if _instructions(o) else ""
    void = f"  ({o.void_finals} void at this load)" if o.void_finals else ""
    cpu = f"CPU home {o.cpu_home_pct:.0f} %, office {o.cpu_office_pct:.0f} %" if _has_cpu(o) else ""
    doubts = f"  ({', '.join(_flags(o))})" if _flags(o) else ""
    return first + figure + cpu + void + doubts


def _flags(result: Outcome | Finding) -> list[str]:
    """Return the short forms of a result's remarks, each once."""
    return list(dict.fromkeys(short for remark in result.warnings if (short := flag(remark))))


def remarks_in_short(results: Iterable[Outcome | Finding]) -> str:
    """Return in one line how many results have which remarks; empty if none has any."""
    counts = Counter(short for result in results for short in _flags(result))
    if not counts:
        return ""
    said = ", ".join(f"{short} ({plural(number, 'result')})" for short, number in counts.most_common())
    return f"remarks, which results.csv and the report explain: {said}"


def _instructions(o: Outcome) -> str:
    """Return `instructions/frame home 9,009, office 7,744`; empty in real time."""
    counted = {"home": o.instructions_home_per_frame, "office": o.instructions_office_per_frame}
    of_each = ", ".join(f"{side} {value:,.0f}" for side, value in counted.items() if value is not None)
    return f"instructions/frame {of_each}" if of_each else ""


def _has_cpu(outcome: Outcome) -> bool:
    return outcome.cpu_home_pct is not None and outcome.cpu_office_pct is not None


def plainly(text: str) -> str:
    """Return a text that is escaped, so that the terminal library takes nothing in it for markup."""
    return text.replace("[", r"\[")
