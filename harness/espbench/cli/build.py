# SPDX-License-Identifier: Apache-2.0
"""`espbench build PROFILE…`: builds what the gateways of profiles need, once, into the cache."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from espbench.errors import UsageError
from espbench.platforms.virtual.parts.build import Trees
from espbench.platforms.virtual.parts.kits import KITS
from espbench.platforms.virtual.virtual_guest import Built
from espbench.this_machine.registry import Registry

LINE_SHOWN = 60


def build(
    profiles: Annotated[
        list[str],
        typer.Argument(
            metavar="PROFILE...",
            help="e500: PowerQUICC boards. x86: x86-64 machines. e500-strongswan: what boards run for that stack.",
        ),
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Build it again, and check that the result is identical.")
    ] = False,
) -> None:
    """Build emulated gateways from Debian's packages, once. Later runs need no network."""
    by_name = {kit.name: kit for kit in KITS}
    for profile in profiles:
        if profile not in by_name:
            *others, last = by_name
            known = f"{', '.join(others)} or {last}"
            raise UsageError(f"build: expected {known} (other profiles need no building), got {profile}")
    trees: Trees = {}
    with Registry(secrets.token_hex(3)) as registry, _terminal() as shown:
        made = [by_name[name].build(registry, shown, again=again, trees=trees) for name in profiles]
    for built in made:
        if isinstance(built, Built):
            print(f"kernel     {built.kernel}\ninitramfs  {built.initramfs}\nQEMU       {built.qemu}")
        else:
            print(f"programs   {built.folder}")


class _Shown:
    """Prints a line for each finished step; on a terminal, a live line shows the step in progress."""

    def __init__(self, console: Console, progress: Progress | None) -> None:
        self._console = console
        self._progress = progress
        self._task: TaskID | None = None
        self._head = ""

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, style="dim")

    def started(self, step: str, number: int, of: int) -> None:
        self._head = f"{step} ({number} of {of})"
        if self._progress is None:
            self._console.print(f"{self._head} …", markup=False)
        else:
            self._task = self._progress.add_task(self._head, said="")

    def line(self, text: str) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, said=text[:LINE_SHOWN].replace("[", r"\["))

    def finished(self, step: str, seconds: float, remark: str) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
        self._console.print(
            f"{self._head}: {seconds:.0f} s" + (f", {remark}" if remark else ""), markup=False
        )


@contextlib.contextmanager
def _terminal() -> Iterator[_Shown]:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield _Shown(console, None)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[said]}[/dim]"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Shown(console, progress)
