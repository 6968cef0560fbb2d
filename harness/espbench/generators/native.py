# SPDX-License-Identifier: Apache-2.0
"""The native generator: the Rust process espbench-traffic, controlled by JSON lines."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import secrets
import selectors
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from espbench.errors import GeneratorFailed, MachineLacks
from espbench.generators.base import Noise, Offered, OnProgress, Stream, WirePath, longest_s
from espbench.paths import how_to_build, program
from espbench.platforms.base import Moment, Port, PortName, Readiness
from espbench.platforms.placement import NICE
from espbench.this_machine.registry import Registry, Surroundings

_BINARY = "espbench-traffic"
# A generator that is silent for this long, beyond the time that a trial must take, counts as dead.
_GRACE_S = 60.0
# A second of virtual time may take the host very long. If a guest dies, its link ends, which is noticed at
# once.
_VIRTUAL_GRACE_S = 3600.0


def binary() -> Path:
    """Return the path of the generator's program, from ESPBENCH_TRAFFIC or `paths.program`.

    Raise MachineLacks if it is not built.
    """
    try:
        return program(_BINARY, "ESPBENCH_TRAFFIC")
    except FileNotFoundError:
        raise MachineLacks(f"the traffic generator {_BINARY} is not built", how_to_build()) from None


def readiness() -> Readiness:
    """Return, for `espbench doctor`, whether this machine can use the native generator."""
    try:
        path = binary()
    except MachineLacks as lack:
        return Readiness("native", False, lack.what, lack.install)
    return Readiness("native", True, note=path.name)


class NativeGenerator:
    """One espbench-traffic process, which ends with this process (PDEATHSIG, end of its input)."""

    name = "native"

    def __init__(
        self,
        registry: Registry,
        log: Path,
        tx: str = "auto",
        rx: str = "auto",
        senders: int = 1,
        esp_memory_mib: int = 1024,
        *,
        esp: bool = False,
    ) -> None:
        """Start the process.

        esp: streams may be sealed and opened, which is done in user space. esp_memory_mib: the memory for packets
        that must be sealed before a trial or opened after it, because the cipher is too slow.
        """
        self._log = log
        # Only paths that the user chose are requested: `auto` is the program's own default.
        self._path = {key: path for key, path in (("tx", tx), ("rx", rx)) if path != "auto"}
        self._chosen = bool(self._path)
        self._esp = esp
        self._esp_memory_mib = esp_memory_mib
        if esp:
            self._path = {"tx": "af_packet", "rx": "af_packet"} | self._path
        self._registry = registry
        first = len(registry.entries)
        self._stderr = log.open("ab")
        self._process = registry.spawn(
            self.command(),
            "generator",
            Surroundings(nice=NICE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._selector = selectors.DefaultSelector()
        registry.closing("pipes of the generator", self._hang_up)
        self._made = registry.entries[first:]
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._buffer = b""
        self._grace_s = _GRACE_S
        self._trials = itertools.count()
        self._links_open: tuple[dict[str, Any], list[dict[str, Any]]] | None = None
        self._moments = deque[Moment]()
        self._now_ns = 0
        self.version = str(self._ask({"cmd": "hello"}, "hello")["version"])

    def paths(self) -> list[str]:
        """Return the paths to choose from: `auto` uses XDP wherever a port's driver can; empty if the user chose a
        path.
        """
        if self._chosen:
            return []
        return ["af_packet", "af_xdp"] if self._esp else ["auto", "af_xdp", "af_packet"]

    def take(self, path: WirePath) -> None:
        ends = ["tx", "rx"] if path.receives else ["tx"]
        self._path = ({"rx": "af_packet"} if self._esp and not path.receives else {}) | (
            {} if path.name == "auto" else dict.fromkeys(ends, path.name)
        )

    def command(self) -> list[str]:
        """Return the program and its arguments."""
        return [str(binary()), "serve"]

    def open(self, ports: list[Port], watch_cpus: list[int]) -> list[dict[str, Any]]:
        virtual = any(port.link for port in ports)
        request = {"cmd": "open", **(_links(ports) if virtual else self._interfaces(ports, watch_cpus))}
        self._grace_s = _VIRTUAL_GRACE_S if virtual else _GRACE_S
        if virtual:
            self._trials = itertools.count()
            if self._links_open and self._links_open[0] == request:
                return self._links_open[1]  # the guests that booted there are still at the other ends
        self._links_open = None
        opened: list[dict[str, Any]] = self._ask(request, "opened")["ports"]
        self._links_open = (request, opened) if virtual else None
        return opened

    def _interfaces(self, ports: list[Port], watch_cpus: list[int]) -> dict[str, Any]:
        return {
            "run_key": secrets.randbits(63),
            "watch_cpus": watch_cpus,
            "ports": [
                {
                    "name": p.name,
                    "interface": p.interface,
                    "netns": p.netns,
                    "i_own_this_network": p.i_own_this_network,
                    "tx_cpus": p.tx_cpus,
                    "rx_cpu": p.rx_cpu,
                    "promiscuous": True,
                    **self._path,
                }
                for p in ports
            ],
        }

    def console(self, port: PortName, line: str | None, until: str, timeout_s: float) -> list[str]:
        """Type a line into the guest at this port, as platforms.base.VirtualClock defines it; return the guest's
        lines.
        """
        request = {"cmd": "console", "port": port, "line": line, "until": until, "timeout_s": timeout_s}
        lines: list[str] = self._ask(request, "console")["lines"]
        return lines

    def branch(self, between_guests: Sequence[Path], seed: int = 0, *, anew: bool = False) -> None:
        """Continue with copies of all guests in an earlier state, as platforms.base.VirtualClock defines it."""
        others = [str(path) for path in between_guests]
        more = ({"seed": seed} if seed else {}) | ({"anew": True} if anew else {})
        self._ask({"cmd": "branch", "others": others, **more}, "branched")

    def in_next_trial(self, moments: Sequence[Moment]) -> None:
        """Let the next trial stop at these moments, as platforms.base.TrialClock defines it."""
        self._moments = deque(sorted(moments, key=lambda moment: moment.at_s))

    def now_ns(self) -> int:
        """Return the virtual time of the last answer, ns, as platforms.base.TrialClock defines it."""
        return self._now_ns

    def resolve(
        self, port: PortName, address: str, gateway: str, timeout_s: float = 10.0, tags: bytes = b""
    ) -> str:
        request = {
            "cmd": "resolve",
            "port": port,
            "address": address,
            "gateway": gateway,
            "timeout_s": timeout_s,
            **({"tags": base64.b64encode(tags).decode()} if tags else {}),
        }
        return str(self._ask(request, "resolved", timeout_s)["mac"])

    def offer(
        self,
        streams: list[Stream],
        duration_s: float,
        residue_s: float,
        quiet_s: float | None = None,
        on_progress: OnProgress | None = None,
        noise: Sequence[Noise] = (),
    ) -> Offered:
        request = {
            "cmd": "trial",
            "id": str(next(self._trials)),
            "duration_s": duration_s,
            "residue_s": residue_s,
            "quiet_s": quiet_s,
            **({"memory_mib": self._esp_memory_mib} if self._esp else {}),
            # The protocol has the same default for each value that is left out.
            "streams": [s.model_dump(by_alias=True, exclude_defaults=True) for s in streams],
            **({"noise": [_noise(n) for n in noise]} if noise else {}),
            **({"moments_s": [m.at_s for m in self._moments]} if self._moments else {}),
        }
        try:
            event = self._ask(request, "trial", longest_s(duration_s) + residue_s, on_progress)
        finally:
            self._moments.clear()
        return Offered.model_validate(event)

    def ping(self) -> None:
        self._ask({"cmd": "hello"}, "hello")

    def pid(self) -> int:
        return int(self._process.pid)

    def close(self) -> None:
        self._registry.undo(self._made)

    def _hang_up(self) -> None:
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # the dead process never read its last request
                pipe.close()
        self._stderr.close()

    def _ask(
        self,
        request: dict[str, Any],
        answer: str,
        expected_s: float = 0.0,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        self._send(request)
        deadline = time.monotonic() + expected_s + self._grace_s
        while True:
            event = self._line(request["cmd"], deadline)
            kind = event.get("event")
            self._now_ns = event.get("now_ns", self._now_ns)
            if kind == answer:
                return event
            if kind == "error":
                hint = f"\n  to fix it: {event['hint']}" if event.get("hint") else ""
                raise GeneratorFailed(f"{event['message']}{hint}")
            if kind == "moment":
                self._moments.popleft().act()
                self._send({"cmd": "continue"})
            if kind in ("crypto", "moment"):
                # Packets are sealed before the trial or opened after it, or an action on the gateways was
                # executed. The time that this takes does not count.
                deadline = time.monotonic() + expected_s + self._grace_s
            if kind == "progress" and on_progress:
                on_progress(event)

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._died(request["cmd"]) from None

    def _line(self, command: str, deadline: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        while b"\n" not in self._buffer:
            if not self._selector.select(max(0.0, deadline - time.monotonic())):
                raise GeneratorFailed(f"no answer to `{command}` in time; see {self._log.name}")
            chunk = self._process.stdout.read()
            if chunk == b"":
                raise self._died(command)
            self._buffer += chunk or b""
        line, _, self._buffer = self._buffer.partition(b"\n")
        event: dict[str, Any] = json.loads(line)
        return event

    def _died(self, command: str) -> GeneratorFailed:
        status = self._process.wait()
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        tail = self._log.read_text(errors="replace").strip().splitlines()[-3:]
        said = ("; it said: " + " / ".join(tail)) if tail else ""
        return GeneratorFailed(f"died during `{command}` ({how}){said}; the trial is not counted")


def _noise(noise: Noise) -> dict[str, Any]:
    """Return a noise as the generator's protocol has it."""
    return noise.model_dump(by_alias=True, exclude={"counter_at"} if noise.counter_at is None else None)


def _links(ports: list[Port]) -> dict[str, Any]:
    """Return the request's ports in virtual time. Nobody else uses these links, so the frames' run key is left out
    and the same in each run.
    """
    return {"ports": [{"name": port.name, "link": str(port.link)} for port in ports]}
