# SPDX-License-Identifier: Apache-2.0
"""Lists the generators, checks whether this machine has them, and makes one by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from espbench.errors import MachineLacks
from espbench.generators import native, scapy, trex_server
from espbench.generators.base import Generator
from espbench.platforms.base import Readiness
from espbench.this_machine.registry import Registry

GENERATORS = {
    "native": "espbench-traffic: numbers, stamps and checks every frame",
    "trex": "TRex, stateless: a server of yours, or launched from TREX_DIR; counts frames per port, no latency",
    "scapy": "Scapy: any header, but slow (thousands of frames a second); for odd frames and for teaching",
}


def new(
    name: str, settings: dict[str, Any], registry: Registry, log: Path, *, esp: bool = False
) -> Generator:
    """Return a generator without open ports; settings as in plan.keys.generator_choice. esp: it shall be an ESP
    peer.
    """
    if name == "trex":
        # It is imported only here, since its libraries would be in the memory of every run.
        from espbench.generators.trex import TrexGenerator  # noqa: PLC0415

        return TrexGenerator(registry, log, settings["server"], settings["ports"])
    if name == "scapy":
        return scapy.ScapyGenerator(registry, log)
    return native.NativeGenerator(registry, log, **settings, esp=esp)


def require(name: str, settings: dict[str, Any]) -> None:
    """Raise MachineLacks if this machine lacks something that a run with this generator needs."""
    if name == "trex" and settings["server"] is not None:
        return
    for answer in readiness():
        if answer.name == name and not answer.ready:
            raise MachineLacks(answer.missing, answer.install)


def readiness() -> list[Readiness]:
    """Return, for `espbench doctor`, whether this machine can use each generator."""
    return [native.readiness(), trex_server.readiness(), scapy.readiness()]
