# SPDX-License-Identifier: Apache-2.0
"""A TRex server started by espbench, from TREX_DIR, in the network namespace of the tester's ports.

It opens its ports by AF_PACKET (any interface, no huge pages) on one core. Its control ports listen on every address
without authentication, so it is only ever started inside a namespace.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from espbench.errors import EspbenchError, GeneratorFailed, MachineLacks
from espbench.platforms.base import Port, Readiness
from espbench.platforms.placement import NICE
from espbench.this_machine.interfaces import read_interface
from espbench.this_machine.network import set_link
from espbench.this_machine.processes import tree_cpu_ns
from espbench.this_machine.registry import Registry, Surroundings

DIRECTORY = "TREX_DIR"
LARGEST_MTU = 1500
_PROGRAM = "_t-rex-64"
# The receive ring of a port, in frames of framesz bytes, can store the frames of a host stall of 40 ms at 200
# kfps.
_VDEV = "--vdev=net_af_packet{0},iface={1},framesz=2048,blocksz=4096,framecnt=8192,qdisc_bypass=1"


def directory() -> Path:
    """Return the folder of an unpacked TRex. Raise MachineLacks if the environment variable names no such folder."""
    given = os.environ.get(DIRECTORY)
    install = f"unpack a TRex 3 release and export {DIRECTORY}=/where/it/is"
    if not given:
        raise MachineLacks(f"no TRex: {DIRECTORY} is not set", install)
    path = Path(given).absolute()
    if not os.access(path / _PROGRAM, os.X_OK):
        raise MachineLacks(f"no TRex: {DIRECTORY} is {path}, and no program {_PROGRAM} is in it", install)
    return path


def readiness() -> Readiness:
    """Return, for `espbench doctor`, whether TRex can be launched here. A plan that names a server of the user's
    needs nothing.
    """
    try:
        directory()
    except MachineLacks as lack:
        return Readiness("trex", False, lack.what, f"{lack.install}, or write server: host:port in the plan")
    return Readiness("trex", True, note=f"launched from {DIRECTORY}")


@dataclass(frozen=True)
class Link:
    """The state of an interface and the kernel's counters: frames sent, refused by the device behind it, received."""

    up: bool
    carrier_changes: int
    sent: int
    refused: int
    received: int

    def since(self, before: Link) -> Link:
        """Return the link with the differences from earlier counters."""
        moved = {
            name: getattr(self, name) - getattr(before, name) for name in ("sent", "refused", "received")
        }
        return replace(self, **moved)

    def flapped_since(self, before: Link) -> bool:
        """Return whether the link is down, or was down for a moment."""
        return not self.up or self.carrier_changes != before.carrier_changes


class TrexServer:
    """One server with two ports; `stop` ends it, and so does the end of this process."""

    def __init__(self, registry: Registry, log: Path, ports: list[Port]) -> None:
        program = directory()
        self._registry = registry
        self._log = log
        self.netns = _one_namespace(ports)
        first = len(registry.entries)
        set_link(self.netns, "lo", up=True)
        folder = registry.directory("trex")
        config = folder / "trex.yaml"
        config.write_text(json.dumps([_config(ports)]))  # JSON is YAML
        with log.open("ab") as output:
            self._process = registry.spawn(
                ["env", "-C", str(program), f"LD_LIBRARY_PATH={program}", f"./{_PROGRAM}",
                 "-i", "--stl", "--cfg", str(config), "--no-scapy-server", "--iom", "0", "--no-key",
                 "--no-termio", "--no-watchdog"],
                "TRex", Surroundings(netns=self.netns, nice=NICE, cpus=_cpus(ports), own_pids=True),
                stdout=output, stderr=output,
            )  # fmt: skip
        self.made = registry.entries[first:]

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def check(self) -> None:
        """Raise GeneratorFailed if the server is not running any more."""
        status = self._process.poll()
        if status is not None:
            how = f"signal {-status}" if status < 0 else f"exit code {status}"
            tail = self._log.read_text(errors="replace").strip().splitlines()[-3:]
            said = ("; it said: " + " / ".join(tail)) if tail else ""
            raise GeneratorFailed(f"TRex died ({how}){said}; the trial is not counted")

    def cpu_ns(self) -> int:
        """Return the CPU time that the server has used, ns, 0 if the kernel does not tell it; it sends and receives in
        one thread.
        """
        return tree_cpu_ns(self._process.pid) or 0

    def link(self, interface: str) -> Link:
        """Return the kernel's state and counters of an interface. TRex knows neither its carrier nor the refused
        frames.
        """
        now = read_interface(
            self.netns, interface, f"cannot read the counters of {interface} in {self.netns}"
        )
        return Link(now.link_up, now.carrier_changes, now.sent, now.refused, now.received)

    def stop(self) -> None:
        """End the server and remove its files."""
        self._registry.undo(self.made)


def _config(ports: list[Port]) -> dict[str, object]:
    return {
        "version": 2,
        "port_limit": len(ports),
        "low_end": True,
        "low_end_core": ports[0].tx_cpus[0],
        "interfaces": [_VDEV.format(number, port.interface) for number, port in enumerate(ports)],
        # TRex resolves nothing and announces nothing on the wire if it is given MAC addresses.
        "port_info": [
            {"src_mac": port.mac or "02:00:00:00:00:01", "dest_mac": port.next_hop_mac or "02:00:00:00:00:02"}
            for port in ports
        ],
    }


def _cpus(ports: list[Port]) -> list[int]:
    return sorted({cpu for port in ports for cpu in (*port.tx_cpus, port.rx_cpu)})


def _one_namespace(ports: list[Port]) -> str:
    namespaces = {port.netns for port in ports}
    (netns,) = namespaces if len(namespaces) == 1 else (None,)
    if netns is None:
        raise EspbenchError(
            "generator trex: expected both ports in one network namespace, got "
            + " and ".join(f"{port.interface} in {port.netns or 'the initial one'}" for port in ports)
            + "\n  to fix it: move both there, or start TRex yourself and write server: host:port in the plan"
        )
    for port in ports:
        if port.mtu > LARGEST_MTU:
            raise EspbenchError(
                f"generator trex: expected ports with an MTU of at most {LARGEST_MTU}, "
                f"got {port.mtu} on {port.interface}; larger frames do not fit TRex's receive ring"
            )
    return netns
