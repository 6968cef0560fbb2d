# SPDX-License-Identifier: Apache-2.0
"""Two ports of a TRex server, acquired for espbench: commands to them, their state, their counters."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError, UsageError
from espbench.generators.trex_rpc import RPC_PORT, TrexClient, TrexRefused
from espbench.generators.trex_server import Link, TrexServer
from espbench.platforms.base import Port, PortName
from espbench.this_machine.registry import Registry

USER = "espbench"
_TRANSMITTING = ("TX", "PAUSE")
_START_S = 60.0
_HIGHEST_CORE_MASK = 2**64 - 1


@dataclass(frozen=True)
class Counters:
    """TRex's counters of a port."""

    opackets: int
    ipackets: int
    ierrors: int
    oerrors: int

    def since(self, before: Counters) -> Counters:
        """Return the differences from earlier counters."""
        return Counters(**{name: n - getattr(before, name) for name, n in vars(self).items()})


class TrexPorts:
    """The two ports. server: `(host, port)`, None: launch a server; indices: the server's port numbers of west and
    east.
    """

    def __init__(
        self,
        registry: Registry,
        log: Path,
        server: tuple[str, int] | None,
        indices: tuple[int, int],
    ) -> None:
        self._registry = registry
        self._log = log
        self._address = server
        self._indices: dict[PortName, int] = {"west": indices[0], "east": indices[1]}
        self._handlers: dict[PortName, str] = {}
        self._client: TrexClient | None = None
        self.launched: TrexServer | None = None
        self.ports: dict[PortName, Port] = {}
        self.drivers: dict[PortName, str] = {}
        first = len(registry.entries)
        registry.closing("connection to TRex", self._hang_up)
        self._made = registry.entries[first:]

    def take(self, ports: list[Port]) -> list[dict[str, Any]]:
        """Connect to the server and acquire these ports; return the facts about each. Ports held before are released
        first.

        Raise UsageError if the server has no such port, EspbenchError if another user has a port or its link is
        down.
        """
        self.give_back()
        self.ports = {port.name: port for port in ports}
        if self._address is None:
            self.launched = TrexServer(self._registry, self._log, ports)
            self._client = _first_answer(self.launched)
        else:
            self._client = TrexClient(*self._address)
        version = self._client.sync()
        described = {p["index"]: p for p in self.ask("get_system_info")["ports"]}
        return [self._take(port, described, version) for port in ports]

    def give_back(self) -> None:
        """Release the ports, and end the server if it was launched for them."""
        if self._client is not None:
            for name, handler in self._handlers.items():
                with contextlib.suppress(EspbenchError):  # it may be gone already
                    self._client.call("release", port_id=self._indices[name], handler=handler)
        self._hang_up()
        if self.launched is not None:
            self.launched.stop()
            self.launched = None

    def close(self) -> None:
        """Release the ports finally."""
        self.give_back()
        self._registry.undo(self._made)

    # -- commands and questions -----------------------------------------------------------------

    def ask(self, method: str, **params: Any) -> Any:
        """Return the answer of any method of the server. Raise EspbenchError if no ports are open, or the server
        refuses.
        """
        if self._client is None:
            raise EspbenchError(f"generator trex: no ports are open; `{method}` was not asked")
        try:
            return self._client.call(method, **params)
        except EspbenchError:
            if self.launched is not None:
                self.launched.check()  # if the server died, its error explains more
            raise

    def tell(self, name: PortName, method: str, **params: Any) -> None:
        """Send a command to one of the acquired ports; `_` is the port's default profile."""
        self.ask(method, port_id=self._indices[name], handler=self._handlers[name], profile_id="_", **params)

    def start(self, name: PortName, rate_fps: float) -> None:
        """Start the port's streams; together they have this rate."""
        self.tell(
            name, "start_traffic", mul={"type": "pps", "op": "abs", "value": rate_fps},
            duration=-1.0, force=True, core_mask=_HIGHEST_CORE_MASK, start_at_ts=0,
        )  # fmt: skip

    def is_sending(self, name: PortName) -> bool:
        """Return whether the port's streams have not ended yet."""
        return self._status(name)["state"] in _TRANSMITTING

    def is_down(self, name: PortName) -> bool:
        """Return whether TRex reports the link as down; it knows this only for real NICs."""
        return not self._status(name).get("attr", {}).get("link", {}).get("up", True)

    def counters(self) -> dict[PortName, Counters]:
        """Return TRex's counters of each port, which it refreshes twice a second."""
        return {name: self._counters(name) for name in self.ports}

    def links(self) -> dict[PortName, Link]:
        """Return the kernel's counters and states of the ports of a launched server; empty for a server of the
        user's.
        """
        if self.launched is None:
            return {}
        return {name: self.launched.link(port.interface) for name, port in self.ports.items()}

    def _status(self, name: PortName) -> dict[str, Any]:
        status: dict[str, Any] = self.ask("get_port_status", port_id=self._indices[name])
        return status

    def _counters(self, name: PortName) -> Counters:
        stats = self.ask("get_port_stats", port_id=self._indices[name])
        try:
            return Counters(**{key: int(stats[key]) for key in Counters.__dataclass_fields__})
        except (KeyError, TypeError) as error:
            raise EspbenchError(f"TRex's port counters lack {error}: is it version 3?") from None

    # -- taking a port --------------------------------------------------------------------------

    def _take(self, port: Port, described: dict[int, dict[str, Any]], version: str) -> dict[str, Any]:
        index = self._indices[port.name]
        if index not in described:
            raise UsageError(
                f"generator trex: expected port {index} for {port.name}, got a server with ports "
                f"{', '.join(map(str, described))}; write ports: [west, east] beside server"
            )
        self._acquire(port.name)
        notes = []
        try:
            self.tell(port.name, "set_port_attr", attr={"promiscuous": {"enabled": True}})
        except TrexRefused as refused:
            notes.append(f"not promiscuous: {refused.said}")
        if self.is_down(port.name) or (self.launched and not self.launched.link(port.interface).up):
            raise EspbenchError(
                f"generator trex: port {port.name} ({port.interface}): its link is down; "
                "TRex would send into nothing and call it loss"
            )
        about = described[index]
        driver = self.drivers[port.name] = str(about.get("driver", "unknown driver"))
        return {
            "name": port.name,
            "interface": port.interface,
            "driver": driver,
            "mac": port.mac or about.get("hw_mac", ""),
            "mtu": port.mtu,
            "carrier": True,
            "sender": f"TRex {version}, {driver}",
            "receiver": "port counters alone",
            "notes": notes,
        }

    def _acquire(self, name: PortName) -> None:
        index = self._indices[name]
        owner = self._status(name).get("owner", "")
        if owner not in ("", USER):
            raise EspbenchError(
                f"generator trex: port {index} of the server is {owner}'s\n  to fix it: have it released"
            )
        handler = self.ask("acquire", port_id=index, user=USER, session_id=os.getpid(), force=bool(owner))
        self._handlers[name] = str(handler)

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
        self._handlers = {}


def _first_answer(server: TrexServer) -> TrexClient:
    """Return a connection to a server just started, once the server answers. ZeroMQ tries to connect until then."""
    client = TrexClient("127.0.0.1", RPC_PORT, server.netns, server.check)
    try:
        client.call("ping", timeout_s=_START_S)
    except EspbenchError:
        client.close()
        raise
    return client
