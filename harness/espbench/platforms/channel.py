# SPDX-License-Identifier: Apache-2.0
"""The controller's side of the connection to an agent: it sends a line of JSON and receives the answer."""

from __future__ import annotations

import base64
import json
import select
import socket
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from espbench.errors import GatewayFailed

AGENT = Path(__file__).with_name("agent.py")  # a gateway starts it as a single file
BUFFER = 1 << 16
# A terminal buffers at most 4,095 unread bytes; UML's serial line would lose the rest of a longer request. So a long
# request is compressed and sent in pieces; each piece is answered before the next is sent.
LONGEST_LINE, PIECE = 3000, 2800


class AgentRefused(GatewayFailed):
    """The agent answered with an error; errno is that of the system call in the gateway, None if there was none."""

    def __init__(self, what: str, errno: int | None) -> None:
        super().__init__(what)
        self.errno = errno


class AgentChannel:
    """Sends requests to one agent over a stream socket, one at a time.

    `last_words` returns the end of the gateway's console, for the error message if the gateway does not answer.
    """

    longest_line = LONGEST_LINE

    def __init__(self, name: str, connection: socket.socket, last_words: Callable[[], str]) -> None:
        self.name = name
        self.closed = False
        self._connection = connection
        self._connection.setblocking(False)
        self._last_words = last_words
        self._number = 0
        self._pending = b""
        self._chunks: list[bytes] = []

    def wait_ready(self, timeout_s: float) -> dict[str, Any]:
        """Return the agent's greeting: its kernel and uptime. Before the greeting a terminal would echo all requests.

        Raise GatewayFailed if it does not arrive within timeout_s.
        """
        return self._receive(0, time.monotonic() + timeout_s, f"did not come up within {timeout_s:g} s")

    def request(self, op: str, within_s: float = 60.0, **fields: Any) -> dict[str, Any]:
        """Return the agent's answer to one request.

        Raise AgentRefused if the agent cannot execute it, GatewayFailed if the gateway is dead or does not answer
        within within_s.
        """
        self._number += 1
        deadline = time.monotonic() + within_s
        line = json.dumps({"id": self._number, "op": op, **fields})
        silence = f"did not answer {op} within {within_s:g} s"
        if len(line) > self.longest_line:
            packed = base64.b64encode(zlib.compress(line.encode())).decode()
            pieces = [packed[at : at + PIECE] for at in range(0, len(packed), PIECE)]
            for at, piece in enumerate(pieces[:-1]):
                self._send_line(self._part(piece, first=at == 0, last=False), deadline, op)
                self._receive(self._number, deadline, silence)
            line = self._part(pieces[-1], first=len(pieces) == 1, last=True)
        self._send_line(line, deadline, op)
        reply = self._receive(self._number, deadline, silence)
        if not reply.get("ok"):
            raise AgentRefused(f"{self.name}: {reply.get('error')}", reply.get("errno"))
        return reply

    def hung_up(self) -> bool:
        """Return whether the agent's end is closed, without waiting."""
        if not self.closed:
            poll = select.poll()
            poll.register(self._connection, 0)  # POLLHUP and POLLERR are always reported
            self.closed = bool(poll.poll(0))
        return self.closed

    def close(self) -> None:
        """Close the connection; the agent then ends by itself."""
        self.closed = True
        self._connection.close()

    def _part(self, text: str, *, first: bool, last: bool) -> str:
        part = {"id": self._number, "op": "part", "text": text, "first": first, "last": last}
        return json.dumps(part)

    def _send_line(self, line: str, deadline: float, op: str) -> None:
        data = memoryview(line.encode() + b"\n")
        while data:
            try:
                data = data[self._connection.send(data) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline, f"took no request ({op})")
            except OSError:
                raise self._dead() from None

    def _receive(self, number: int, deadline: float, silence: str) -> dict[str, Any]:
        """Return the reply with this number; ignore late replies to requests that timed out."""
        while True:
            head, newline, rest = self._pending.partition(b"\n")
            if newline:
                reply = self._decode(b"".join([*self._chunks, head]))
                self._chunks.clear()
                self._pending = rest
                if reply.get("id") == number:
                    return reply
                continue
            self._chunks.append(self._pending)
            self._pending = b""
            self._wait(select.POLLIN, deadline, silence)
            try:
                self._pending = self._connection.recv(BUFFER)
            except BlockingIOError:
                continue
            except OSError:
                raise self._dead() from None
            if not self._pending:
                raise self._dead()

    def _decode(self, line: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            raise GatewayFailed(f"gateway {self.name}: its agent answered something that is no JSON object")
        return reply

    def _wait(self, event: int, deadline: float, silence: str) -> None:
        poll = select.poll()
        poll.register(self._connection, event)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise GatewayFailed(self._with_last_words(f"gateway {self.name} {silence}"))

    def _dead(self) -> GatewayFailed:
        self.closed = True
        return GatewayFailed(self._with_last_words(f"gateway {self.name} died"))

    def _with_last_words(self, message: str) -> str:
        words = self._last_words().strip()
        return f"{message}; the end of its console:\n{words}" if words else message
