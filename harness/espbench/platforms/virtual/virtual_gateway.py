# SPDX-License-Identifier: Apache-2.0
"""A gateway that is a guest in virtual time; requests are lines on its control line, sent at exact virtual times
(init/PROTOCOL.md).
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from espbench.errors import EspbenchError, GatewayFailed, UsageError
from espbench.platforms.base import CommandResult, LinkCounters, NetlinkRefused, PortName, Side, VirtualClock
from espbench.platforms.channel import AgentRefused
from espbench.platforms.gateway import is_dump
from espbench.platforms.virtual import profile_files
from espbench.platforms.virtual.profile_files import ProfileFiles
from espbench.platforms.virtual.virtual_guest import Guest

# The tester's port that is connected to each gateway.
FACING: Mapping[Side, PortName] = {"home": "west", "office": "east"}
# The time for an answer, in virtual time; a request takes some milliseconds.
ANSWER_S = 30.0
# The netlink messages in one line, bytes: a line may have 60,000 bytes, and messages are in hex.
_SECOND_NS = 1_000_000_000
_LONGEST_MESSAGES = 20_000
# One answer has room for this many packets.
_MOST_HEARD = 256
# The guest kills a program that does not end in time, and then answers; this is the time for that.
_TO_KILL_S = 5.0
_NOTHING_BROUGHT = "nothing can be brought into a guest that runs; what a stack needs is there from its start"


class VirtualGateway:
    """A `base.Gateway` whose requests are executed and answered in virtual time only.

    The link between the gateway and the tester's port also carries the control line. `notebook` is the log of all
    requests that change the gateway. Netlink messages may contain keys and are never logged.
    """

    lan, wan = "eth0", "eth1"
    byte_order: Literal["little", "big"] = "little"
    # Only a PC's guest supports the requests power_cycle and hear (init/PROTOCOL.md).
    has_power_switch = False
    # A kernel needs this to read from the board how long its CPU was idle.
    idle_time_needs: str
    profile: ProfileFiles | None = None  # None: its instructions are not counted

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
        """Let the guest boot, and return its greeting. Raise EspbenchError, with its console, if it does not boot."""
        self._clock = clock
        self._number = 0
        return self._ask(None, "it did not boot")

    def as_booted(self) -> Self:
        """Return a gateway for the same guest in the state after its greeting, for another test bed."""
        other = copy.copy(self)
        other._guest = self._guest.from_now()
        other._number = other._asking_ns = other._asked = 0
        other._before_trials = None
        return other

    def set_up_ports(self) -> None:
        """Configure the ports beyond their addresses; by default nothing."""

    def tell_symbols(self) -> None:
        """Save the address maps of the guest's programs for its profile; subclasses add the kernel's symbols."""
        assert self.profile is not None
        if self.profile.shell:
            self.profile.put_maps(self.run(profile_files.ALL_PROCESSES).out)
            return
        maps = self.read([profile_files.ONLY_PROCESS])[profile_files.ONLY_PROCESS]
        self.profile.put_maps(f"{profile_files.PROCESS}{profile_files.ONLY_PROCESS}\n{maps or ''}")

    def power_cycle(self) -> None:
        """Switch the guest off and on again at once, and let it boot.

        Raise EspbenchError, with its console, if it does not boot.
        """
        self._note("# power cycle")
        self._number += 1
        self._ask(f"{self._number} power_cycle", "it did not boot again", greeting=True)

    def heard_esp(self, count: int, within_s: float) -> list[bytes]:
        """Return at most `count` ESP packets that the WAN port receives in the next within_s seconds."""
        asked = f"hear {self.wan} {min(count, _MOST_HEARD)} {round(within_s * 1e9)}"
        answer = self.request(asked, within_s + ANSWER_S)
        return [bytes.fromhex(packet) for packet in answer["packets"]]

    def as_before_trials(self) -> None:
        """Continue with the request numbers from before the first trial, because the guest has the state from then
        again.
        """
        if self._before_trials is None:
            self._before_trials = self._number, self._asked
        self._number, self._asked = self._before_trials

    def request(self, text: str, timeout_s: float = ANSWER_S) -> dict[str, Any]:
        """Return the answer to one request of PROTOCOL.md; timeout_s is virtual time.

        Raise AgentRefused if the guest cannot execute it, EspbenchError if the gateway is dead or does not answer.
        """
        self._number += 1
        answer = self._ask(f"{self._number} {text}", "no answer", timeout_s)
        if not answer["ok"]:
            raise AgentRefused(f"gateway {self.side}: {answer['error']}", answer["errno"])
        return answer

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 30.0) -> CommandResult:
        """Run a program of the guest's root; timeout_s is virtual time, and stdin must be empty."""
        assert not stdin
        self._note(f"run {shlex.join(argv)}")
        words = " ".join(word.encode().hex() for word in argv)
        answer = self.request(f"run {round(timeout_s * 1e9)} {words}", timeout_s + _TO_KILL_S)
        return CommandResult(answer["rc"], answer["out"], answer["err"])

    def ip(self, lines: list[str]) -> None:
        """Execute lines of `ip -batch`. Raise EspbenchError, which names the line that failed."""
        for line in lines:
            self._note(f"ip {line}")
            try:
                self.request(f"ip {line}")
            except AgentRefused as refused:
                raise EspbenchError(f"gateway {self.side}: `ip {line}` failed: {refused}") from None

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        """Send each message, and return its replies without the ACK. Raise NetlinkRefused for a negative ACK."""
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
        """Receive ESP in UDP on this port. Raise AgentRefused if the kernel cannot do this."""
        self._note(f"# ESP in UDP, port {port}")
        self.request(f"udp_encap {port}")

    def read(self, paths: list[str]) -> dict[str, str | None]:
        """Return the texts of files inside the gateway; None where a file is missing."""
        texts: dict[str, str | None] = self.request("read " + " ".join(paths))["texts"]
        return texts

    def write(self, path: str, text: str) -> None:
        """Write a file inside the gateway. Raise AgentRefused if that fails."""
        self._note(f"write {path}")
        if "\n" not in text:
            self.request(f"write {path} {text}")
            return
        data = text.encode()
        for at in range(0, len(data), _LONGEST_MESSAGES):
            self.request(f"put {path} {at} {data[at : at + _LONGEST_MESSAGES].hex()}")

    def deliver(self, folder: Path) -> str:
        """Raise EspbenchError, because files cannot be copied into a running guest."""
        raise EspbenchError(f"gateway {self.side}: cannot use {folder.name}: {_NOTHING_BROUGHT}")

    def cpu_ns(self) -> int:
        """Return the virtual time in which the gateway's CPU was busy since the boot, ns, without that of readings."""
        self._asked += 1
        return self._busy_ns() - self._asked * self._asking_ns

    def waited_ns(self) -> int | None:
        """Return None: in virtual time, a wait for a CPU of the host has no effect."""
        return None

    def now_s(self) -> float:
        """Return the gateway's virtual time since its boot, s."""
        return int(self.request("ping")["now_ns"]) / 1e9

    def pause(self, seconds: float) -> None:
        """Let this much virtual time pass."""
        now_ns = int(self.request("ping")["now_ns"])
        self.request(f"wait {now_ns + round(seconds * 1e9)}", seconds + ANSWER_S)

    def pause_until_a_whole_second(self) -> None:
        """Let virtual time pass until the gateway's clock is at the next whole second."""
        now_ns = int(self.request("ping")["now_ns"])
        self.request(f"wait {-(-now_ns // _SECOND_NS) * _SECOND_NS}", 1 + ANSWER_S)

    def weigh_asking(self) -> None:
        """Measure the CPU time of a reading of the CPU time. The first readings cost more, so it is that of the
        last. Raise UsageError if the user's kernel cannot tell it.
        """
        if not self.request("cpu")["exact"]:
            # All kernels that espbench builds or fetches can, so this one is the user's.
            raise UsageError(
                f"gateway {self.side}: kernel: expected one that can read from the board how long its CPU was idle\n"
                "  got: one that cannot\n"
                f"  what to do: build it with {self.idle_time_needs}"
            )
        *_, before, after = [self._busy_ns() for _ in range(3)]
        self._asking_ns = after - before

    def _busy_ns(self) -> int:
        answer = self.request("cpu")
        if not answer["exact"]:
            raise EspbenchError(f"gateway {self.side}: its kernel no longer tells how long its CPU was idle")
        return int(answer["now_ns"]) - int(answer["idle_ns"])

    def link_counters(self) -> dict[str, LinkCounters]:
        """Return the counters of the gateway's interfaces by name."""
        return {name: LinkCounters(**each) for name, each in self.request("counters")["links"].items()}

    def alive(self) -> bool:
        """Return, without waiting, whether the guest has neither ended nor panicked."""
        return self._guest.alive()

    def last_words(self) -> str:
        """Return the end of the guest's console."""
        return self._guest.last_words()

    def _ask(
        self, line: str | None, otherwise: str, timeout_s: float = ANSWER_S, *, greeting: bool = False
    ) -> dict[str, Any]:
        """Send a line (None: none) and return the answer, or with `greeting` the greeting of a guest that booted."""
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
    """Yield the messages in groups, each as large as a line permits."""
    some: list[bytes] = []
    for message in messages:
        if some and sum(map(len, some)) + len(message) > _LONGEST_MESSAGES:
            yield some
            some = []
        some.append(message)
    if some:
        yield some
