# SPDX-License-Identifier: Apache-2.0
"""`espbench doctor`: says what this machine can measure, and what is missing for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from espbench.catalogue.stack_names import STACKS
from espbench.errors import MachineLacks
from espbench.generators import choose
from espbench.platforms import placement
from espbench.platforms.base import Readiness
from espbench.platforms.virtual.parts.kits import KITS, X86_KIT
from espbench.runs.automatic import no_real_time
from espbench.runs.platform_kinds.namespaces import esp_missing
from espbench.runs.platform_kinds.table import PLATFORMS
from espbench.stacks.daemons import packages
from espbench.this_machine import irq_time
from espbench.this_machine.distribution import made_from_debian, without_debian_packages

_BOARDS = "qemu_e500"
_EMULATED = (_BOARDS, "qemu_x86")


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    real_time: Annotated[
        bool,
        typer.Option(
            "--real-time",
            help="Say only whether `dut: auto` finds gateways in real time; if not, why, with exit code 4.",
        ),
    ] = False,
) -> None:
    """Show what this machine can measure, what is missing, and the command that installs it."""
    if real_time:
        if reason := no_real_time():
            fits = X86_KIT.processor_fits
            remedy = "use gateways in virtual time (dut: virt-x86)" if fits.ready else fits.install
            raise MachineLacks(f"no gateways in real time: {reason}", remedy)
        return
    readiness = survey()
    if as_json:
        print(
            json.dumps({kind: [asdict(r) for r in answers] for kind, answers in readiness.items()}, indent=2)
        )
    else:
        console = Console(highlight=False)
        table = Table("", "name", "state", "missing, and how to fix it", box=None, pad_edge=False)
        for kind, answers in readiness.items():
            for r in answers:
                mend = f"{r.missing}\n  → {r.install}" if not r.ready else r.note
                table.add_row(
                    kind, r.name, "[green]ready[/green]" if r.ready else "[red]not ready[/red]", mend
                )
        console.print(table)
        for warning in (*_on_packages(), *placement.choose().shared):
            console.print(f"note: {warning}", soft_wrap=True)
    if not any(r.ready for r in readiness["platform"] if PLATFORMS[r.name].builds):
        raise typer.Exit(MachineLacks.exit_code)


def _on_packages() -> Iterator[str]:
    """Yield a remark if this machine's distribution may call Debian's packages otherwise."""
    if name := without_debian_packages():
        yield (
            f"{name} has no apt-get. The packages above have Debian's names; espbench does not know what they are "
            "called here, or whether they exist. It finds a program whatever its package is called."
        )
    if name := made_from_debian():
        yield (
            f"{name} is not Debian. The packages above have Debian's names, and {name} may call some otherwise; "
            "its archives do not have the sources of Debian 12, from which emulated gateways are built."
        )


def survey() -> dict[str, list[Readiness]]:
    """Return the readiness of platforms, stacks, generators and builds on this machine, by kind."""
    platforms = {name: _all(name, kind.readiness()) for name, kind in PLATFORMS.items()}
    namespaces = platforms["netns"]
    lack = esp_missing() if namespaces.ready else "needs namespaces"
    if namespaces.ready and lack:
        namespaces = Readiness("netns", True, note=f"no ESP by the kernel: {lack}")
    if namespaces.ready and (why := irq_time.left_out()):
        namespaces = replace(namespaces, note=f"{namespaces.note}; no CPU figures: {why}".removeprefix("; "))
    platforms["netns"] = namespaces
    return {
        "platform": [*platforms.values()],
        "stack": [_stack(name, platforms, lack) for name in STACKS],
        "generator": choose.readiness(),
        "build": [kit.readiness() for kit in KITS],
    }


def _stack(name: str, platforms: Mapping[str, Readiness], lack: str) -> Readiness:
    """Return the readiness of a stack: a platform must support it, and a daemon's packages must be available."""
    namespaces, guests = platforms["netns"], platforms["uml"]
    facts = STACKS[name]
    kernel_esp = facts.kernel_esp and lack
    others = () if facts.boards_only else (namespaces, guests)
    where = [r.name for r in others if r.ready and not (r is namespaces and kernel_esp)]
    emulated = (_BOARDS,) if facts.boards_only else _EMULATED
    if not facts.daemon:
        where += [name for name in emulated if platforms[name].ready]
    if not where and facts.boards_only:
        return Readiness(name, False, platforms[_BOARDS].missing, platforms[_BOARDS].install)
    if not where:
        return Readiness(name, False, (lack if facts.kernel_esp else "") or guests.missing, guests.install)
    on = "on " + ", ".join(where)
    if not facts.daemon:
        return Readiness(name, True, note=on)
    files = packages.readiness(name, facts.daemon)
    return files if not files.ready else Readiness(name, True, note=f"{on}; {files.note}")


def _all(name: str, needs: Iterable[Readiness]) -> Readiness:
    lacking = [need for need in needs if not need.ready]
    return Readiness(
        name,
        not lacking,
        "; ".join(need.missing for need in lacking),
        "; ".join(dict.fromkeys(need.install for need in lacking)),
    )
