# SPDX-License-Identifier: Apache-2.0
"""`espbench calibrate`: measures each generator itself on this machine, without a DUT, and compares them."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from espbench.cli.gate.options import Wait
from espbench.cli.progress import measuring
from espbench.errors import UsageError
from espbench.generators import choose as generators
from espbench.generators.base import Generator
from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.traffic import Traffic
from espbench.plan import load_topology
from espbench.platforms import external, netns, placement
from espbench.platforms.base import Placement, PortName, Testbed
from espbench.runs.platform_kinds.shared.addressing import addressing_of
from espbench.runs.platform_kinds.shared.platform import demand
from espbench.runs.side_by_side import Candidate, Examined, examine
from espbench.this_machine.registry import Registry

MTU = 1500
SIZES = (64, 512, 1518)
NATIVE_PATHS = ("xdp", "af_xdp", "af_packet")
_FPS = ((1e6, "M"), (1e3, "k"), (1.0, ""))
_US = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
_OWN_ADDRESSES: dict[PortName, tuple[str, str]] = {
    "west": ("198.18.0.2/24", "198.18.0.1"),
    "east": ("198.19.0.2/24", "198.19.0.1"),
}
_Attach = Callable[[Generator], tuple[Testbed, dict[PortName, str], tuple[str, str]]]

FrameSizes = Annotated[
    list[int] | None,
    typer.Option("--frame-size", min=64, max=1518, help="Frame size in bytes; may be repeated."),
]
GeneratorNames = Annotated[
    list[str] | None, typer.Option("--generator", help="native, trex or scapy; may be repeated.")
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate", min=1, help="Rate of the paced trial, frames/s. Default: half of the highest rate."
    ),
]
Seconds = Annotated[float, typer.Option("--seconds", min=0.5, max=600, help="Length of the paced trial.")]
West = Annotated[
    str | None,
    typer.Option(
        "--west", help="Your port that sends, INTERFACE or INTERFACE@NETNS, joined to --east by a cable."
    ),
]
East = Annotated[
    str | None, typer.Option("--east", help="Your port that receives, INTERFACE or INTERFACE@NETNS.")
]
OwnNetwork = Annotated[
    bool, typer.Option("--i-own-this-network", help="Allow ports of the initial namespace (RFC 6815).")
]


def calibrate(
    frame_size: FrameSizes = None,
    generator: GeneratorNames = None,
    rate: Rate = None,
    seconds: Seconds = 3.0,
    west: West = None,
    east: East = None,
    i_own_this_network: OwnNetwork = False,
    wait: Wait = False,
) -> None:
    """Measure the generators without a gateway: highest rate, accuracy, lateness, jitter and delay."""
    _refuse(generator or [], west, east)
    demand(external.readiness() if west else netns.readiness())
    console = Console(highlight=False)
    traffics = {size: Traffic(((size, 1),), 4, "one-way") for size in frame_size or SIZES}
    with (
        measuring(wait=wait),
        tempfile.TemporaryDirectory() as logs,
        Registry(secrets.token_hex(3)) as registry,
    ):
        bed = _own_ports(west, east, owned=i_own_this_network) if west and east else _joined_ports(registry)
        examined = []
        with console.status("calibrating") as status:
            for candidate in _candidates(generator or list(generators.GENERATORS), registry, Path(logs)):
                examined += examine(
                    candidate,
                    _attaching(bed),
                    traffics,
                    seconds=seconds,
                    rate_fps=rate,
                    on_note=lambda note: status.update(f"calibrating {note}"),
                )
        bed.close()
    _print(console, examined, bed.placement, own=west is not None)
    if all(e.failure for e in examined):
        raise typer.Exit(1)


def _refuse(names: list[str], west: str | None, east: str | None) -> None:
    """Raise UsageError for one port without the other, or for an unknown generator."""
    if (west is None) != (east is None):
        raise UsageError("calibrate: expected both --west and --east, or neither, got one of them")
    for name in names:
        if name not in generators.GENERATORS:
            known = ", ".join(generators.GENERATORS)
            raise UsageError(f"--generator: expected one of {known}, got {name}")


def _joined_ports(registry: Registry) -> Testbed:
    """Return a test bed of two new ports that are joined to each other."""
    addressing = addressing_of(load_topology("gateway-to-gateway"), MTU)
    return netns.NetnsPlatform(addressing).calibration_bed(registry, placement.choose())


def _own_ports(west: str, east: str, *, owned: bool) -> Testbed:
    """Return a test bed of the user's two ports; `owned`: their network carries nothing but the test."""
    placed = placement.choose(gateways=0)
    ports: dict[PortName, external.ExternalPort] = {}
    given: dict[PortName, str] = {"west": west, "east": east}
    for name, text in given.items():
        interface, _, namespace = text.partition("@")
        address, gateway = _OWN_ADDRESSES[name]
        ports[name] = external.ExternalPort(interface, address, gateway, namespace or None)
    return external.build(ports, placed, dut="none", i_own_this_network=owned, line_rate_bps=None)


def _candidates(names: list[str], registry: Registry, logs: Path) -> list[Candidate]:
    def native(path: str) -> Candidate:
        log = logs / f"native-{path}.log"
        return Candidate(f"native {path}", lambda: NativeGenerator(registry, log, tx=path, rx=path))

    def other(name: str, settings: dict[str, Any]) -> Candidate:
        def make() -> Generator:
            generators.require(name, settings)
            return generators.new(name, settings, registry, logs / f"{name}.log")

        return Candidate(name, make)

    candidates = [native(path) for path in NATIVE_PATHS] if "native" in names else []
    if "trex" in names:
        candidates.append(other("trex", {"server": None, "ports": (0, 1)}))
    if "scapy" in names:
        candidates.append(other("scapy", {}))
    return candidates


def _attaching(bed: Testbed) -> _Attach:
    """Return a function that opens the ports; the frames of each port go straight to the other's MAC address."""

    def attach(generator: Generator) -> tuple[Testbed, dict[PortName, str], tuple[str, str]]:
        watched = sorted({cpu for cpus in bed.placement.cpus.values() for cpu in cpus})
        opened = {port["name"]: port for port in generator.open(list(bed.ports.values()), watched)}
        for name, port in bed.ports.items():
            bed.ports[name] = replace(port, mac=port.mac or opened[name]["mac"])
        hops: dict[PortName, str] = {"west": bed.ports["east"].mac, "east": bed.ports["west"].mac}
        return bed, hops, (opened["west"]["sender"], opened["east"]["receiver"])

    return attach


def _print(console: Console, examined: list[Examined], placed: Placement, *, own: bool) -> None:
    tx, rx = (", ".join(map(str, placed.cpus[role])) for role in ("tester tx", "tester rx"))
    console.print(f"sending from CPU {tx}, counting on CPU {rx}; one way, west to east, no DUT")
    for size in dict.fromkeys(e.frame_size for e in examined):
        rows = [e for e in examined if e.frame_size == size]
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), title=f"{size} B", title_justify="left")
        for column in (
            "generator",
            "sends",
            "receives",
            "paced",
            "error %",
            "lost",
            "late",
            "p99.9",
            "jitter",
            "delay",
        ):
            table.add_column(column, justify="left" if column == "generator" else "right", no_wrap=True)
        for e in rows:
            table.add_row(e.name, *_cells(e))
        console.print()
        console.print(table)
    console.print()
    for e in {e.name: e for e in examined if e.sends_by}.values():
        console.print(f"{e.name}: sends by {e.sends_by}; receives by {e.receives_by}")
    for name, failure in {e.name: e.failure for e in examined if e.failure}.items():
        console.print(f"{name}: not measured: {failure}")
    console.print(
        "sends, receives: the ceiling, frames/s. paced: at this rate, with which error and loss. late: how late frames "
        "left, the median and the 99.9th percentile. delay: from just before a frame leaves until it is received, the "
        "median. jitter: its 99.9th percentile over its least (RFC 5481, 4.2). Both include the path and the receiver. "
        "–: it cannot tell."
    )
    if stalled := max((e.stalled_ms for e in examined), default=0.0):
        console.print(f"the host stood still for up to {stalled:.1f} ms of a paced trial")
    if own and any(e.sends_by and e.received_fps is None for e in examined):
        console.print(
            "nothing sent at west arrived at east: only a cable between the two shows what is received"
        )


def _cells(e: Examined) -> list[str]:
    if e.failure:
        return ["–"] * 9
    late = e.lateness_us or {}
    return [
        _short(e.offered_fps, _FPS),
        _short(e.received_fps, _FPS),
        _short(e.paced_fps, _FPS),
        f"{e.accuracy_pct:+.3f}",
        "–" if e.lost is None else f"{e.lost:,}",
        _short(late.get("p50"), _US),
        _short(late.get("p999"), _US),
        _short(e.pdv_us, _US),
        _short(e.delay_us, _US),
    ]


def _short(value: float | None, units: tuple[tuple[float, str], ...]) -> str:
    """Return a value with three digits and a unit, so that a row fits into a terminal of 80 columns."""
    if value is None:
        return "–"
    unit, name = next(((unit, name) for unit, name in units if value >= unit), units[-1])
    scaled = value / unit
    return f"{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f}{name}"
