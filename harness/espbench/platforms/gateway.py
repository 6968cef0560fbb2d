# SPDX-License-Identifier: Apache-2.0
"""A gateway that is controlled through its agent: the common part of several platforms."""

from __future__ import annotations

import base64
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from espbench.errors import GatewayFailed
from espbench.platforms.base import CommandResult, LinkCounters, NetlinkRefused, Side
from espbench.platforms.channel import AgentChannel, AgentRefused

LAST_WORDS_BYTES = 2000
ANSWER_MARGIN_S = 10.0


def tail(path: Path) -> str:
    """Return the end of a log, from the start of a line; empty if there is no log yet."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - LAST_WORDS_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return text if size <= LAST_WORDS_BYTES else text.partition("\n")[2]


def is_dump(message: bytes, order: Literal["little", "big"] = sys.byteorder) -> bool:
    """Return whether a netlink message asks for a dump (NLM_F_DUMP): dumps change nothing, so they are not logged."""
    return int.from_bytes(message[6:8], order) & 0x300 == 0x300


class AgentGateway:
    """A `base.Gateway` that is controlled over an agent's channel.

    `cpu_ns` returns the CPU time of this gateway alone, `waited_ns` the time for which it waited for a CPU. `notebook`
    is the log of all commands and ip lines. `console` is the log whose end `last_words` returns. Stdin and netlink
    messages may contain keys and are never logged.
    """

    byte_order = sys.byteorder

    def __init__(
        self,
        channel: AgentChannel,
        side: Side,
        lan: str,
        wan: str,
        cpu_ns: Callable[[], int | None],
        notebook: Path,
        console: Path,
        waited_ns: Callable[[], int | None] | None = None,
    ) -> None:
        self.channel = channel
        self.side = side
        self.lan = lan
        self.wan = wan
        self._cpu_ns = cpu_ns
        self._waited_ns = waited_ns
        self._notebook = notebook
        self._console = console

    def plug_in(
        self,
        channel: AgentChannel,
        cpu_ns: Callable[[], int | None],
        waited_ns: Callable[[], int | None] | None,
    ) -> None:
        """Continue with the agent that answers after a power cycle."""
        self.channel = channel
        self._cpu_ns = cpu_ns
        self._waited_ns = waited_ns

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 60.0) -> CommandResult:
        """Run a command inside the gateway. Raise AgentRefused if it cannot be started or does not end in time."""
        self._note(shlex.join(argv))
        reply = self.channel.request(
            "exec", timeout_s + ANSWER_MARGIN_S, argv=argv, stdin=stdin, timeout_s=timeout_s
        )
        result = CommandResult(reply["rc"], reply["out"], reply["err"])
        if result.rc:
            self._note(f"# exit {result.rc}: {result.err.strip()}")
        return result

    def ip(self, lines: list[str]) -> None:
        """Feed lines to `ip -batch -`. Raise GatewayFailed, which names the line that failed."""
        for line in lines:
            self._note(f"ip {line}")
        result = self.run(["ip", "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))
        if result.rc == 0:
            return
        number = re.search(r"Command failed -:(\d+)", result.err)
        line = lines[int(number[1]) - 1] if number else " / ".join(lines)
        why = result.err.partition("Command failed")[0].strip() or f"exit {result.rc}"
        raise GatewayFailed(f"gateway {self.side}: `ip {line}` failed: {why}")

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        """Send each message, and return its replies without the ACK. Raise NetlinkRefused for a negative ACK."""
        if changes := sum(not is_dump(message) for message in messages):
            self._note(f"# {changes} netlink messages to protocol {protocol}")
        encoded = [base64.b64encode(message).decode() for message in messages]
        try:
            reply = self.channel.request("netlink", protocol=protocol, messages=encoded)
        except AgentRefused as error:
            self._note(f"# {error}")
            if error.errno is None:
                raise
            raise NetlinkRefused(error.errno, str(error)) from None
        return [[base64.b64decode(text) for text in replies] for replies in reply["replies"]]

    def udp_encap(self, port: int) -> None:
        """Receive ESP in UDP on this port. Raise AgentRefused if the kernel cannot do this, or the port is in use."""
        self._note(f"# ESP in UDP, port {port}")
        self.channel.request("udp_encap", port=port)

    def read(self, paths: list[str]) -> dict[str, str | None]:
        """Return the texts of files inside the gateway; None where a file is missing."""
        texts: dict[str, str | None] = self.channel.request("read", paths=paths)["texts"]
        return texts

    def write(self, path: str, text: str) -> None:
        """Write a file inside the gateway. Raise AgentRefused if that fails."""
        self._note(f"write {path}")
        self.channel.request("write", path=path, text=text)

    def deliver(self, folder: Path) -> str:
        """Return the same path: the gateway shares this machine's folders."""
        return str(folder)

    def cpu_ns(self) -> int | None:
        """Return the CPU time that this gateway alone has used since it was made, ns; None if it is not measurable."""
        return self._cpu_ns()

    def waited_ns(self) -> int | None:
        """Return how long its threads were ready to run but had no CPU so far, ns; None: not known."""
        return None if self._waited_ns is None else self._waited_ns()

    def link_counters(self) -> dict[str, LinkCounters]:
        """Return the counters of the gateway's interfaces by name."""
        links = self.channel.request("counters")["links"]
        return {name: LinkCounters(**counters) for name, counters in links.items()}

    def alive(self) -> bool:
        """Return, without waiting, whether the gateway's agent is still connected."""
        return not self.channel.hung_up()

    def last_words(self) -> str:
        """Return the end of the gateway's console."""
        return tail(self._console)

    def _note(self, line: str) -> None:
        with self._notebook.open("a") as notebook:
            notebook.write(f"{self.side} {line}\n")
