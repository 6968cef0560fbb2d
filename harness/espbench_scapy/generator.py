# SPDX-License-Identifier: GPL-2.0-only
"""Runs the Scapy generator: it serves the protocol of `espbench-traffic serve` on stdin and stdout.

    python -m espbench_scapy.generator

It sends over Scapy's L2 sockets, and is meant for unusual frames and for teaching: with one thread and one system call
for each frame it sends some thousand frames per second. It reports frames that it could not send in time as unsent.
Commands are JSON objects, one on each line: hello, open, resolve, trial, stop, close.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import json
import logging
import os
import select
import sys
import warnings
from typing import Any

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")

import scapy  # noqa: E402

from espbench_scapy import neighbours, trial  # noqa: E402
from espbench_scapy.clock import now_ns  # noqa: E402
from espbench_scapy.failure import Failure  # noqa: E402
from espbench_scapy.frames import RunKey  # noqa: E402
from espbench_scapy.port import Port  # noqa: E402

PROTOCOL = 2
_RETRY_NS = 500_000_000


class Commands:
    """Reads lines of stdin without blocking."""

    def __init__(self) -> None:
        os.set_blocking(0, False)
        self._buffer = b""
        self.ended = False

    def next(self) -> str | None:
        """Return the next complete line; None if there is none yet."""
        while b"\n" not in self._buffer and not self.ended:
            try:
                chunk = os.read(0, 1 << 16)
            except BlockingIOError:
                return None
            self.ended = chunk == b""
            self._buffer += chunk
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return None
        self._buffer = rest
        return line.decode(errors="replace")


class Generator:
    """Serves the commands, with the open ports and the session's key."""

    def __init__(self) -> None:
        self._commands = Commands()
        self._ports: dict[str, Port] = {}
        self._answering: dict[str, set[str]] = {}  # port → addresses for which it answers questions
        self._heard: list[tuple[str, neighbours.Heard]] = []
        self._bench: trial.Bench | None = None

    def serve(self) -> None:
        """Serve commands until stdin ends."""
        while not self._commands.ended:
            line = self._commands.next()
            if line is None:
                self._listen(0.1, commands=True)
            elif line.strip():
                try:
                    self._obey(_parsed(line))
                except Failure as failure:
                    _fail(failure)

    def _obey(self, command: dict[str, Any]) -> None:
        kind = command.get("cmd")
        try:
            if kind == "hello":
                emit(
                    {
                        "event": "hello",
                        "version": f"Scapy {scapy.VERSION}",
                        "protocol": PROTOCOL,
                        "pid": os.getpid(),
                    }
                )
            elif kind == "open":
                self._open(command)
            elif kind == "resolve":
                self._resolve(command)
            elif kind == "trial":
                if self._bench is None:
                    raise Failure("no port is open", 'send {"cmd":"open",…} first')
                emit(trial.run(self._bench, command))
            elif kind == "close":
                self._close()
                emit({"event": "closed"})
            elif kind != "stop":  # a stop that comes after the end of its trial is ignored
                raise Failure(f"bad command: {kind!r}", "hello, open, resolve, trial, stop or close")
        except KeyError as error:
            raise Failure(f"bad command: {kind} without {error}") from error

    def _open(self, command: dict[str, Any]) -> None:
        self._close()
        if not command["ports"]:
            raise Failure("ports is empty", "give at least one port")
        for asked in command["ports"]:
            if asked["name"] in self._ports:
                self._close()
                raise Failure(f"two ports are named {asked['name']}", "give each port its own name")
            try:
                self._ports[asked["name"]] = Port(asked)
            except Failure:
                self._close()
                raise
        cpus = {port.tx_cpu for port in self._ports.values() if port.tx_cpu is not None}
        if cpus:
            os.sched_setaffinity(0, cpus)
        seed = command.get("run_key")
        key = RunKey(int.from_bytes(os.urandom(8), "big") if seed is None else seed, now_ns())
        self._bench = trial.Bench(self._ports, key, self._stop_asked, self._other, emit)
        emit({"event": "opened", "ports": [port.opened() for port in self._ports.values()]})

    def _close(self) -> None:
        for port in self._ports.values():
            port.close()
        self._ports, self._answering, self._bench = {}, {}, None

    def _resolve(self, command: dict[str, Any]) -> None:
        """Ask for the gateway's MAC address, with the VLAN tags of `tags`; answer for our own address from now on."""
        port = self._ports.get(command["port"])
        if port is None:
            raise Failure(f"port '{command['port']}' is not open", "open it first")
        address, gateway = command["address"], command["gateway"]
        # Our address is answered first, since a gateway may ask for it before it answers.
        self._answering.setdefault(port.name, set()).add(address)
        asking = neighbours.question(port.mac, address, gateway, base64.b64decode(command.get("tags", "")))
        timeout_s = command.get("timeout_s", 3.0)
        end, again = now_ns() + int(timeout_s * 1e9), 0
        self._heard = []
        while (now := now_ns()) < end:
            if now >= again:
                port.send(asking)
                again = now + _RETRY_NS
            self._listen((min(again, end) - now) / 1e9)
            for where, heard in self._heard:
                if where == port.name and not heard.question and heard.target == gateway:
                    emit({"event": "resolved", "port": port.name, "gateway": gateway, "mac": heard.mac})
                    return
        others = dict.fromkeys(f"{h.target} ({h.mac})" for where, h in self._heard if where == port.name)
        seen = f"heard {', '.join([*others][:5])}" if others else "nothing was heard"
        raise Failure(
            f"port {port.name}: gateway {gateway} did not answer {address} on interface {port.interface} "
            f"within {timeout_s:.1f} s; {seen}",
            "check the gateway's address on this link, and that both ends are up and in the same network",
        )

    def _listen(self, seconds: float, *, commands: bool = False) -> None:
        """Wait for frames (or, with `commands`, for commands too), and process the frames."""
        waiting = [port.fileno() for port in self._ports.values()]
        select.select(waiting + ([0] if commands else []), [], [], max(0.0, seconds))
        for port in self._ports.values():
            # Between trials a port may disappear; the next command that uses it will fail.
            with contextlib.suppress(Failure):
                while (came := port.receive()) is not None:
                    self._other(port, came[0])

    def _other(self, port: Port, frame: bytes) -> None:
        """Process a frame of no stream: answer a question for our address, and keep other questions and answers."""
        heard = neighbours.read(frame)
        if heard is None:
            return
        if heard.question and heard.target in self._answering.get(port.name, ()):
            port.send(neighbours.answer(port.mac, heard))
        elif len(self._heard) < 1000:
            self._heard.append((port.name, heard))

    def _stop_asked(self) -> bool:
        """Return whether to stop the trial: after the command `stop`, or if stdin ended. Refuse all other commands."""
        asked = False
        while (line := self._commands.next()) is not None:
            try:
                if _parsed(line).get("cmd") == "stop":
                    asked = True
                    continue
                raise Failure("a trial is running", 'wait for its result, or send {"cmd":"stop"}')
            except Failure as failure:
                _fail(failure)
        return asked or self._commands.ended


def emit(event: dict[str, Any]) -> None:
    """Write an event as one line of stdout; end the process if nobody reads stdout any more."""
    try:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(0)  # nobody reads stdout any more


def _fail(failure: Failure) -> None:
    emit({"event": "error", "message": failure.message, "hint": failure.hint})


def _parsed(line: str) -> dict[str, Any]:
    try:
        command = json.loads(line)
    except ValueError as error:
        raise Failure(f"bad command: {error}", "one JSON object a line") from error
    if not isinstance(command, dict):
        raise Failure("bad command: no object", "one JSON object a line")
    return command


if __name__ == "__main__":
    gc.freeze()  # the collector would otherwise walk Scapy's many objects during trials and delay frames
    Generator().serve()
