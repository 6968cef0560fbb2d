# SPDX-License-Identifier: Apache-2.0
"""`espbench calibrate`: what the generator itself can do on this machine, without a DUT."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from espbench.generators.native import NativeGenerator
from espbench.measure.traffic import Traffic
from espbench.plan import load_topology
from espbench.platforms import netns, placement
from espbench.platforms.registry import Registry
from espbench.procedures.calibration import calibrate as measure_ceiling
from espbench.procedures.lab import addressing_of, demand
from espbench.terms import layer2_mbps

MTU = 1500
SIZES = (64, 128, 256, 512, 1024, 1280, 1518)


def calibrate(
    frame_size: Annotated[
        list[int] | None, typer.Option("--frame-size", min=64, max=1518, help="May be repeated.")
    ] = None,
) -> None:
    """Flood a pair of veth ports and print the generator's ceiling at each frame size."""
    demand(netns.readiness())
    sizes = frame_size or list(SIZES)
    with tempfile.TemporaryDirectory() as logs, Registry(secrets.token_hex(3)) as registry:
        placed = placement.choose()
        bed = netns.NetnsPlatform(addressing_of(load_topology("gateway-to-gateway"), MTU)).calibration_bed(
            registry, placed
        )
        generator = NativeGenerator(registry, Path(logs) / "generator.log")
        cpus = sorted({c for used in placed.cpus.values() for c in used})
        paths = generator.open(list(bed.ports.values()), cpus)
        hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
        wanted: dict[int | str, list[Traffic]] = {
            size: [Traffic(((size, 1),), 4, "one-way")] for size in sizes
        }
        found = measure_ceiling(generator, bed, hops, wanted, returns=True)
    table = Table("frame size", "offered fps", "received fps", "offered Mbps", box=None, pad_edge=False)
    for column in table.columns:
        column.justify = "right"
    for c in found:
        mbps = layer2_mbps(c.offered_fps, int(c.frame_size))
        table.add_row(f"{c.frame_size}", f"{c.offered_fps:,.0f}", f"{c.received_fps:,.0f}", f"{mbps:,.0f}")
    console = Console(highlight=False)
    console.print(f"sender: {paths[0]['sender']}; receiver: {paths[0]['receiver']}")
    console.print(table)
