# SPDX-License-Identifier: Apache-2.0
"""The control connection to a TRex server: JSON-RPC 2.0 over a ZeroMQ request socket, and nothing else.

It was written from TRex's published RPC specification (doc/trex_rpc_server_spec) and its server. TRex's own Python
client is under the GPL and on no package registry.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import zmq

from espbench.errors import EspbenchError, GeneratorFailed

RPC_PORT = 4501
API_NAME, API_MAJOR, API_MINOR = "STL", 5, 1
TIMEOUT_S = 30.0
# A client that waits for an answer checks this often whether the server lives. The timeout counts these
# checks and does not read the clock: if this whole machine stands still for a while, that time does not
# count.
_LOOK_S = 0.5
_TRY_AGAIN = -32001  # the server is busy with a task of its own
_BUSY_S, _BUSY_POLL_S = 30.0, 0.05
_CLONE_NEWNET = 0x40000000


class TrexRefused(EspbenchError):
    """The server answered with an error of its own; `said` is its text."""

    def __init__(self, where: str, method: str, said: str) -> None:
        super().__init__(f"TRex at {where} refused `{method}`: {said}")
        self.said = said


class TrexClient:
    """One connection; every call is one request and its answer.

    netns: path of the network namespace from which the server is reached; None: this one. check: called while an
    answer is awaited; it raises an error if the server has died. Without it, only the timeout shows this.
    """

    def __init__(
        self, host: str, port: int, netns: str | None = None, check: Callable[[], None] | None = None
    ) -> None:
        self.where = f"{host}:{port}"
        self._check = check
        self._api: str | None = None
        self._count = 0
        with _inside(netns):
            # ZeroMQ's own thread opens the connection; that thread stays in the namespace in which it was
            # started.
            self._context = zmq.Context()
            self._socket = self._context.socket(zmq.REQ)
            self._socket.setsockopt(zmq.LINGER, 0)
            # IPv6 sockets reach IPv4 hosts too; the server listens on IPv4 alone by default.
            self._socket.setsockopt(zmq.IPV6, ":" in host)
            self._socket.connect(f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}")

    def sync(self) -> str:
        """Agree on the API's version, and return the server's own version. Raise EspbenchError if the API versions
        differ.
        """
        try:
            answer = self.call("api_sync_v2", name=API_NAME, major=API_MAJOR, minor=API_MINOR)
        except TrexRefused as refused:
            raise EspbenchError(
                f"TRex at {self.where} does not speak the stateless API {API_MAJOR}.{API_MINOR}: "
                f"{refused.said}\n  to fix it: use a TRex 3 server in stateless mode (--stl)"
            ) from None
        self._api = str(answer["api_h"])
        return str(self.call("get_version").get("version", "of unknown version"))

    def call(self, method: str, *, timeout_s: float | None = None, **params: Any) -> Any:
        """Return the `result` of a method. Raise TrexRefused if the server refuses, EspbenchError if it is silent or
        dead.
        """
        deadline = time.monotonic() + _BUSY_S
        while True:
            answer = self._exchange(method, params, timeout_s or TIMEOUT_S)
            error = answer.get("error")
            if error is None:
                return answer.get("result")
            if error.get("code") == _TRY_AGAIN and time.monotonic() < deadline:
                time.sleep(_BUSY_POLL_S)
                continue
            parts = [str(error[key]) for key in ("message", "specific_err") if error.get(key)]
            raise TrexRefused(self.where, method, ": ".join(parts) or json.dumps(error))

    def close(self) -> None:
        """Close the connection without waiting for unsent requests."""
        self._socket.close()
        self._context.term()

    def _exchange(self, method: str, params: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if self._socket.closed:
            raise EspbenchError(
                f"TRex at {self.where}: the connection was given up; `{method}` was not asked"
            )
        self._count += 1
        if self._api is not None:
            params = {"api_h": self._api, **params}
        request = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self._socket.send(json.dumps(request).encode())
        try:
            self._wait(method, timeout_s)
        except EspbenchError:
            # A request socket cannot be used again before its answer, so this connection is closed.
            self._socket.close()
            raise
        try:
            answer = json.loads(self._socket.recv())
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or answer.get("id") != self._count:
            raise EspbenchError(f"TRex at {self.where}: what answers `{method}` there is no TRex server")
        return answer

    def _wait(self, method: str, timeout_s: float) -> None:
        left_s = timeout_s
        while not self._socket.poll(round(min(left_s, _LOOK_S) * 1e3), zmq.POLLIN):
            if self._check is not None:
                self._check()
            left_s -= _LOOK_S
            if left_s <= 0:
                raise GeneratorFailed(f"TRex at {self.where}: no answer to `{method}` within {timeout_s:g} s")


@contextlib.contextmanager
def _inside(netns: str | None) -> Iterator[None]:
    """Move this thread into another network namespace, and back at the end."""
    if netns is None:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(path: str) -> None:
        handle = os.open(path, os.O_RDONLY)
        try:
            if libc.setns(handle, _CLONE_NEWNET):
                raise EspbenchError(f"network namespace {path}: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(handle)

    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        enter(netns)
        try:
            yield
        finally:
            enter(f"/proc/self/fd/{home}")
    finally:
        os.close(home)
