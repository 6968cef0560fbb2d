# SPDX-License-Identifier: Apache-2.0
"""`espbench doctor`: what this machine can measure, and what is missing for the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from espbench.errors import MachineLacks
from espbench.generators import native
from espbench.platforms import external, netns, placement, uml
from espbench.platforms.base import Readiness
from espbench.procedures.lab import esp_missing


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say for each platform, stack and generator: ready, or what is missing and what installs it."""
    found = survey()
    if as_json:
        print(json.dumps({kind: [asdict(r) for r in answers] for kind, answers in found.items()}, indent=2))
    else:
        console = Console(highlight=False)
        table = Table("", "name", "state", "missing, and what mends it", box=None, pad_edge=False)
        for kind, answers in found.items():
            for r in answers:
                mend = f"{r.missing}\n  → {r.install}" if not r.ready else r.note
                table.add_row(
                    kind, r.name, "[green]ready[/green]" if r.ready else "[red]not ready[/red]", mend
                )
        console.print(table)
        for warning in placement.choose().shared:
            console.print(f"note: {warning}", soft_wrap=True)
    if not any(r.ready for r in found["platform"] if r.name != "external"):
        raise typer.Exit(MachineLacks.exit_code)


def survey() -> dict[str, list[Readiness]]:
    """Everything espbench can use, asked of this machine."""
    namespaces = _all("netns", netns.readiness())
    guests = _all("uml", uml.readiness())
    lack = esp_missing() if namespaces.ready else "needs namespaces"
    if namespaces.ready and lack:
        namespaces = Readiness("netns", True, note=f"plain only: {lack}")
    xfrm_ready = guests.ready or (namespaces.ready and not lack)
    where = [name for name, ok in (("netns", namespaces.ready and not lack), ("uml", guests.ready)) if ok]
    return {
        "platform": [
            namespaces,
            guests,
            _all("external", external.readiness()),
        ],
        "stack": [
            Readiness("plain", namespaces.ready or guests.ready, namespaces.missing, namespaces.install),
            Readiness(
                "xfrm", xfrm_ready, lack or guests.missing, guests.install, note="on " + ", ".join(where)
            ),
        ],
        "generator": [native.readiness()],
    }


def _all(name: str, needs: Iterable[Readiness]) -> Readiness:
    lacking = [need for need in needs if not need.ready]
    return Readiness(
        name,
        not lacking,
        "; ".join(need.missing for need in lacking),
        "; ".join(dict.fromkeys(need.install for need in lacking)),
    )
