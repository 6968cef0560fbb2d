# SPDX-License-Identifier: Apache-2.0
"""A gateway that is a guest in virtual time, asked by lines typed at exact times (init/PROTOCOL.md)."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from espbench.errors import EspbenchError, GatewayFailed
from espbench.platforms.base import CommandResult, LinkCounters, NetlinkRefused, PortName, Side, VirtualClock
from espbench.platforms.channel import AgentRefused
from espbench.platforms.gateway import is_dump
from espbench.platforms.virtual import profile_files
from espbench.platforms.virtual.profile_files import ProfileFiles
from espbench.platforms.virtual.virtual_guest import Guest

# The tester's port beside each gateway.
FACING: Mapping[Side, PortName] = {"home": "west", "office": "east"}
# Virtual time; a request takes some milliseconds.
ANSWER_S = 30.0
# A line holds 60,000 bytes; netlink messages are written in hex.
_LONGEST_MESSAGES = 20_000
# One answer has room for so many packets.
_MOST_HEARD = 256
# A program that does not end in time is killed by the guest, which then answers.
_TO_KILL_S = 5.0
_NOTHING_BROUGHT = "nothing can be brought into a guest that runs; what a stack needs is there from its start"


class VirtualGateway:
    """A `base.Gateway`; its requests take effect, and are answered, in virtual time only.

    The link of the tester's port that it faces also carries its control line; `notebook` gets every request that asks
    for a change. Netlink messages may hold keys and are never written down.
    """

    lan, wan = "eth0", "eth1"
    byte_order: Literal["little", "big"] = "little"
    # Only a PC's guest knows power_cycle and hear (init/PROTOCOL.md).
    has_power_switch = False
    profile: ProfileFiles | None = None  # where it tells the names of its functions; None: nothing is counted

    def __init__(self, side: Side, guest: Guest, notebook: Path) -> None:
        self.side = side
        self._port = FACING[side]
        self._guest = guest
        self._notebook = notebook
        self._clock: VirtualClock | None = None
        self._number = 0
        self._asking_ns = 0
        self._asked = 0
        self._before_trials: tuple[int, int] | None = None

    def started_by(self, clock: VirtualClock) -> dict[str, Any]:
        """Let it boot; its greeting. EspbenchError with its console when it does not come up."""
        self._clock = clock
        self._number = 0
        return self._ask(None, "it did not boot")

    def as_booted(self) -> Self:
        """Return the same gateway as it is after its greeting; its requests are those of another test bed."""
        other = copy.copy(self)
        other._guest = self._guest.from_now()
        other._number = other._asking_ns = other._asked = 0
        other._before_trials = None
        return other

    def set_up_ports(self) -> None:
        """Give its ports what they need beside addresses; nothing here."""

    def tell_symbols(self) -> None:
        """Put what names the addresses of its programs beside its profile; its kernel's functions are the machine's."""
        assert self.profile is not None
        if self.profile.shell:
            self.profile.put_maps(self.run(profile_files.ALL_PROCESSES).out)
            return
        maps = self.read([profile_files.ONLY_PROCESS])[profile_files.ONLY_PROCESS]
        self.profile.put_maps(f"{profile_files.PROCESS}{profile_files.ONLY_PROCESS}\n{maps or ''}")

    def power_cycle(self) -> None:
        """Switch it off and on again at once, and let it boot; EspbenchError with its console if it does not."""
        self._note("# power cycle")
        self._number += 1
        self._ask(f"{self._number} power_cycle", "it did not boot again", greeting=True)

    def heard_esp(self, count: int, within_s: float) -> list[bytes]:
        """Return ESP packets, at most so many, that its WAN port receives within so long."""
        asked = f"hear {self.wan} {min(count, _MOST_HEARD)} {round(within_s * 1e9)}"
        answer = self.request(asked, within_s + ANSWER_S)
        return [bytes.fromhex(packet) for packet in answer["packets"]]

    def as_before_trials(self) -> None:
        """Number requests as before the first trial: the guest is again in the state that it had then."""
        if self._before_trials is None:
            self._before_trials = self._number, self._asked
        self._number, self._asked = self._before_trials

    def request(self, text: str, timeout_s: float = ANSWER_S) -> dict[str, Any]:
        """Return the answer to one request of PROTOCOL.md; timeout_s is of virtual time.

        AgentRefused when it cannot be done, EspbenchError when the gateway is dead or silent.
        """
        self._number += 1
        answer = self._ask(f"{self._number} {text}", "no answer", timeout_s)
        if not answer["ok"]:
            raise AgentRefused(f"gateway {self.side}: {answer['error']}", answer["errno"])
        return answer

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 30.0) -> CommandResult:
        """Run a program of the guest's root; timeout_s is of virtual time, and stdin empty."""
        assert not stdin
        self._note(f"run {shlex.join(argv)}")
        words = " ".join(word.encode().hex() for word in argv)
        answer = self.request(f"run {round(timeout_s * 1e9)} {words}", timeout_s + _TO_KILL_S)
        return CommandResult(answer["rc"], answer["out"], answer["err"])

    def ip(self, lines: list[str]) -> None:
        """Carry out lines of `ip -batch`; EspbenchError names the line that failed."""
        for line in lines:
            self._note(f"ip {line}")
            try:
                self.request(f"ip {line}")
            except AgentRefused as refused:
                raise EspbenchError(f"gateway {self.side}: `ip {line}` failed: {refused}") from None

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        """Send each message, give back its replies without the ACK; NetlinkRefused on a negative one."""
        if changes := sum(not is_dump(message, self.byte_order) for message in messages):
            self._note(f"# {changes} netlink messages to protocol {protocol}")
        replies: list[list[bytes]] = []
        for some in _lines_of(messages):
            try:
                answer = self.request(f"netlink {protocol} " + " ".join(message.hex() for message in some))
            except AgentRefused as refused:
                self._note(f"# {refused}")
                if refused.errno is None:
                    raise
                raise NetlinkRefused(refused.errno, str(refused)) from None
            replies += [[bytes.fromhex(reply) for reply in each] for each in answer["replies"]]
        return replies

    def udp_encap(self, port: int) -> None:
        """Receive ESP in UDP on this port; AgentRefused where its kernel does not."""
        self._note(f"# ESP in UDP, port {port}")
        self.request(f"udp_encap {port}")

    def read(self, paths: list[str]) -> dict[str, str | None]:
        """Return the texts of files inside the gateway; None where a file is missing."""
        texts: dict[str, str | None] = self.request("read " + " ".join(paths))["texts"]
        return texts

    def write(self, path: str, text: str) -> None:
        """Write a file inside the gateway; AgentRefused when it cannot be."""
        self._note(f"write {path}")
        if "\n" not in text:
            self.request(f"write {path} {text}")
            return
        data = text.encode()
        for at in range(0, len(data), _LONGEST_MESSAGES):
            self.request(f"put {path} {at} {data[at : at + _LONGEST_MESSAGES].hex()}")

    def deliver(self, folder: Path) -> str:
        """Raise EspbenchError: no files can be brought into a guest."""
        raise EspbenchError(f"gateway {self.side}: cannot use {folder.name}: {_NOTHING_BROUGHT}")

    def cpu_ns(self) -> int:
        """Virtual time in which its CPU was busy since the boot, ns, but for answering this."""
        self._asked += 1
        return self._busy_ns() - self._asked * self._asking_ns

    def waited_ns(self) -> int | None:
        """Return None: in virtual time, nobody waits for a CPU of the host."""
        return None

    def now_s(self) -> float:
        """Return its virtual time since the boot, s."""
        return int(self.request("ping")["now_ns"]) / 1e9

    def pause(self, seconds: float) -> None:
        """Let virtual time pass."""
        now_ns = int(self.request("ping")["now_ns"])
        self.request(f"wait {now_ns + round(seconds * 1e9)}", seconds + ANSWER_S)

    def weigh_asking(self) -> None:
        """Find what a reading of the CPU costs it, from one to the next; the first ones cost more."""
        *_, before, after = [self._busy_ns() for _ in range(4)]
        self._asking_ns = after - before

    def _busy_ns(self) -> int:
        answer = self.request("cpu")
        if not answer["exact"]:
            raise EspbenchError(f"gateway {self.side}: its kernel cannot read the board's idle time")
        return int(answer["now_ns"]) - int(answer["idle_ns"])

    def link_counters(self) -> dict[str, LinkCounters]:
        """Return counters of its interfaces by name."""
        return {name: LinkCounters(**each) for name, each in self.request("counters")["links"].items()}

    def alive(self) -> bool:
        """Return whether it has neither ended nor panicked; do not wait."""
        return self._guest.alive()

    def last_words(self) -> str:
        """Return the end of its console."""
        return self._guest.last_words()

    def _ask(
        self, line: str | None, otherwise: str, timeout_s: float = ANSWER_S, *, greeting: bool = False
    ) -> dict[str, Any]:
        """Type a line and return its answer, or the greeting of a guest that booted."""
        if self._clock is None:
            raise EspbenchError(f"gateway {self.side}: nobody lets its virtual time pass yet")
        try:
            number = 0 if greeting else self._number
            lines = self._clock.console(self._port, line, f'{{"id":{number},', timeout_s)
        except EspbenchError as error:
            if self.alive():
                raise EspbenchError(f"gateway {self.side}: {otherwise}: {error}") from None
            raise GatewayFailed(f"gateway {self.side} died; its last words:\n{self.last_words()}") from None
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer

    def _note(self, line: str) -> None:
        with self._notebook.open("a") as notebook:
            notebook.write(f"{self.side} {line}\n")


def _lines_of(messages: list[bytes]) -> Iterator[list[bytes]]:
    """Put as many messages at a time into a line as it holds."""
    some: list[bytes] = []
    for message in messages:
        if some and sum(map(len, some)) + len(message) > _LONGEST_MESSAGES:
            yield some
            some = []
        some.append(message)
    if some:
        yield some
