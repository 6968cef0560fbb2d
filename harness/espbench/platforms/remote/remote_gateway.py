# SPDX-License-Identifier: Apache-2.0
"""A gateway on a box that is reached over SSH: one connection to its agent; its CPU time is that of the whole box."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import json
import re
import socket
import subprocess
import tarfile
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from espbench.errors import EspbenchError, GatewayFailed, MachineLacks, UsageError
from espbench.platforms.base import Side
from espbench.platforms.channel import AGENT, AgentChannel
from espbench.platforms.gateway import AgentGateway, tail
from espbench.platforms.remote import ssh
from espbench.platforms.remote.labgrid_board import LabgridTarget
from espbench.this_machine.registry import LAUNCHER, UNDO, LeftForClean, Registry

# The programs that are sent to a box, by their names in the request.
PROGRAMS = {"program": Path(__file__).with_name("remote_box.py"), "launcher": LAUNCHER, "agent": AGENT}
# This program reads the three programs from one line on stdin, so that they are neither on a disk of the box nor on a
# command line.
_BOOTSTRAP = (
    "import base64,json,zlib;"
    'r=json.loads(zlib.decompress(base64.b64decode(open(0,"rb",closefd=False).readline())));'
    'n={"__name__":"__main__"};exec(r.pop("program"),n);n["main"](r)'
)
READY_S = 75.0  # a box may first have to restore its ports after a broken connection
# The controller sends a heartbeat every BEAT_S seconds; after SILENCE_S without one the box gives its ports back.
BEAT_S, SILENCE_S = 5.0, 30
GIVE_BACK_S = 60.0
# The unit of /proc/stat, 1/USER_HZ; USER_HZ is 100 on every Linux that espbench supports.
_TICK_NS = 10**9 // 100
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian")
_UNPACK = (
    "import base64,io,sys,tarfile;"
    't=tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.stdin.read())),mode="r:gz");'
    't.extraction_filter=getattr(tarfile,"fully_trusted_filter",None);t.extractall(sys.argv[1])'
)


@dataclass(frozen=True)
class Box:
    """One gateway's box: its login, its two ports, and whether it may be taken out of service (i_own_this_box)."""

    login: ssh.Login
    lan: str
    wan: str
    python: str = "python3"
    i_own_this_box: bool = False
    labgrid: LabgridTarget | None = None

    def argv(self) -> list[str]:
        """Return the ssh command line."""
        return ssh.command(self.login, [self.python, "-I", "-S", "-c", _BOOTSTRAP])

    def request(self, *, take: bool, only_mend: bool = False) -> bytes:
        """Return the first line for the program's stdin.

        take: the box becomes a gateway; otherwise it is only examined. only_mend: it only restores its ports if a
        helper was killed.
        """
        spec = {
            **{name: file.read_text() for name, file in PROGRAMS.items()},
            "lan": self.lan,
            "wan": self.wan,
            "mine": self.i_own_this_box,
            "take": take,
            "only_mend": only_mend,
            "silence_s": SILENCE_S,
        }
        return base64.b64encode(zlib.compress(json.dumps(spec).encode())) + b"\n"


@dataclass(frozen=True)
class CpuTimes:
    """The times of all CPUs of a box since its boot, ns: busy (with interrupts), and stolen by a hypervisor."""

    cpus: int
    busy_ns: int
    steal_ns: int


def cpu_times(stat: str) -> CpuTimes:
    """Return the sums over the CPUs in the text of /proc/stat (proc(5)); the time of guests is already in user."""
    cpus = busy = steal = 0
    for line in stat.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, _idle, _iowait, irq, softirq, stolen = (int(f) for f in fields[:8])
            cpus += 1
            busy += user + nice + system + irq + softirq
            steal += stolen
    return CpuTimes(cpus, busy * _TICK_NS, steal * _TICK_NS)


def survey(side: Side, box: Box, within_s: float = READY_S) -> dict[str, Any]:
    """Return facts about a box: its kernel, machine, cpus, virtual, macs, boot (the boot id). The box is not changed.

    Raise EspbenchError if it does not answer or cannot be used.
    """
    if why := ssh.missing_files(side, box.login):
        raise MachineLacks(why)
    try:
        done = subprocess.run(
            box.argv(), input=box.request(take=False), capture_output=True, check=False, timeout=within_s
        )
    except subprocess.TimeoutExpired:
        raise GatewayFailed(f"{side} ({box.login}): no answer within {within_s:g} s") from None
    if done.returncode:
        raise ssh.explain(side, box.login, done.stderr.decode(errors="replace"), done.returncode)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def mend(name: str, box: Box) -> None:
    """Let a box restore the ports that a killed helper had moved; it is no error if there are none.

    Raise EspbenchError if the box cannot be reached, UsageError if it cannot restore them.
    """
    try:
        done = subprocess.run(
            box.argv(),
            input=box.request(take=False, only_mend=True),
            capture_output=True,
            check=False,
            timeout=READY_S,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise GatewayFailed(f"{name} ({box.login}): no answer within {READY_S:g} s") from None
    if done.returncode:
        raise ssh.explain(name, box.login, done.stderr.decode(errors="replace"), done.returncode)


def _mend_left(record: dict[str, Any]) -> None:
    """Restore the ports of a box whose controller was killed or lost the connection; for `espbench clean`."""
    known = {key: Path(record[key]) if record[key] else None for key in ("identity", "known_hosts")}
    login = ssh.Login(record["host"], record["user"], record["port"], **known)
    # The side is for messages only; a journal of an earlier version has it only in the name.
    mend(record.get("side", record["name"]), Box(login, record["lan"], record["wan"], record["python"]))


UNDO["box"] = _mend_left


def _detail(box: Box) -> dict[str, Any]:
    """Return the journal's fields with which a box can be reached again; they have no secret."""
    login = box.login
    files = {"identity": login.identity, "known_hosts": login.known_hosts}
    return {
        **{name: str(path.absolute()) if path else "" for name, path in files.items()},
        **{"host": login.host, "user": login.user, "port": login.port},
        **{"lan": box.lan, "wan": box.wan, "python": box.python},
    }


class SshChannel(AgentChannel):
    """A connection without a terminal, so that requests of any length are sent in one line.

    Before the greeting, output of a login shell (such as an echo in .bashrc) is ignored.
    """

    longest_line = 1 << 30
    greeted = False

    def end_input(self) -> None:
        """Close the sending direction, without waiting until the box has given its ports back."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def wait_ready(self, timeout_s: float) -> dict[str, Any]:
        greeting = super().wait_ready(timeout_s)
        self.greeted = True
        return greeting

    def _decode(self, line: bytes) -> dict[str, Any]:
        try:
            return super()._decode(line)
        except EspbenchError:
            if self.greeted:
                raise
            return {}


class RemoteGateway(AgentGateway):
    """A gateway on another machine; its CPU time is that of the whole box."""

    def __init__(
        self, channel: SshChannel, side: Side, box: Box, logs: Path, abandon: Callable[[], None]
    ) -> None:
        notebook, said = notebook_of(logs, side), ssh_log_of(logs, side)
        super().__init__(channel, side, box.lan, box.wan, self._box_cpu_ns, notebook, said)
        self.hang_up = channel.end_input
        self.abandon = abandon
        self._python = box.python
        self._brought: dict[Path, str] = {}
        self._console_log = console_log_of(logs, side)
        self._before_boot_ns = 0

    def go_on_with(self, booted: RemoteGateway, used_ns: int) -> None:
        """Continue with the gateway that answers after a power cycle; used_ns: the CPU time until it was off."""
        self.plug_in(booted.channel, self._box_cpu_ns, None)
        self.hang_up, self.abandon = booted.hang_up, booted.abandon
        self._before_boot_ns = used_ns
        self._brought.clear()

    def last_words(self) -> str:
        """Return the end of ssh's output, and that of the box's console if it is captured.

        A line that ssh prints at each connection, such as the box's banner, is there once.
        """
        shown = tail(self._console_log).strip()
        said = "\n".join(dict.fromkeys(super().last_words().splitlines()))
        return said + (f"\non its console:\n{shown}" if shown else "")

    def note(self, text: str) -> None:
        """Write a text into the gateway's log."""
        self._note(f"# {text}")

    def cpu_times(self) -> CpuTimes:
        """Return the CPU times of the whole box."""
        text = self.channel.request("read", paths=["/proc/stat"])["texts"]["/proc/stat"]
        return cpu_times(text or "")

    def deliver(self, folder: Path) -> str:
        """Copy a folder of this machine into the box's memory, where it disappears with the agent; return its path
        there.
        """
        if folder not in self._brought:
            place = f"/tmp/espbench/{len(self._brought)}"
            made = self.run(["mkdir", "-p", place])
            if made.rc:
                raise GatewayFailed(f"gateway {self.side}: {made.err.strip()}")
            packed = base64.b64encode(_packed(folder)).decode()
            done = self.run([self._python, "-I", "-S", "-c", _UNPACK, place], stdin=packed, timeout_s=120)
            if done.rc:
                words = done.err.strip().splitlines()[-1:] or ["it gave no reason"]
                raise GatewayFailed(f"gateway {self.side}: cannot unpack {folder.name} there: {words[0]}")
            self._brought[folder] = place
        return self._brought[folder]

    def _box_cpu_ns(self) -> int:
        times = self.cpu_times()
        self._note(f"# CPU of the box: {times.busy_ns / 1e9:.2f} s busy, {times.steal_ns / 1e9:.2f} s stolen")
        return self._before_boot_ns + times.busy_ns


def connect(registry: Registry, side: Side, box: Box, logs: Path) -> Callable[[], RemoteGateway]:
    """Start the connection; the box then moves its ports. Return a function that waits for the box's agent.

    The registry undoes this: it closes the connection and waits until the box has given its ports back, and raises
    EspbenchError if the box could not do this.
    """
    ours, theirs = socket.socketpair()
    words = ssh_log_of(logs, side)
    with theirs, words.open("ab") as output:
        began = output.tell()
        process = registry.spawn(
            box.argv(), f"ssh to {side}", stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=output
        )
    channel = SshChannel(side, ours, lambda: tail(words))
    connection = _Connection(side, box, logs, process, channel, began)
    registry.add("box", f"{side} ({box.login})", connection.hang_up, side=side, **_detail(box))
    _send(ours, box.request(take=True))
    # The box gives its ports back if it hears nothing; the other box may take long to connect before this one is
    # waited for.
    threading.Thread(target=_beat, args=(ours, connection.ended), daemon=True).start()

    def wait() -> RemoteGateway:
        try:
            channel.wait_ready(READY_S)
        except EspbenchError:
            if channel.closed:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(ssh.CONNECT_S)
                raise ssh.explain(side, box.login, connection.said(), process.poll()) from None
            raise
        return RemoteGateway(channel, side, box, logs, connection.abandon)

    return wait


@dataclass
class _Connection:
    """One SSH connection to a box; began: the position in ssh's log at which this connection's output begins."""

    side: Side
    box: Box
    logs: Path
    process: subprocess.Popen[bytes]
    channel: SshChannel
    began: int
    ended: threading.Event = field(default_factory=threading.Event)
    as_it_was: threading.Event = field(default_factory=threading.Event)

    def said(self) -> str:
        """Return what ssh and the box's helper wrote since the connection began."""
        return ssh_log_of(self.logs, self.side).read_bytes()[self.began :].decode(errors="replace")

    def hang_up(self) -> None:
        """Close the connection and wait until the box has given its ports back.

        Raise EspbenchError if the ports do not have their former state.
        """
        if self.ended.is_set():
            if not self.as_it_was.is_set():
                raise LeftForClean  # the first call has reported everything
            return
        self.ended.set()
        self.channel.end_input()
        try:
            status = self.process.wait(GIVE_BACK_S)
        except subprocess.TimeoutExpired:
            status = None
        self.channel.close()
        if status == 1:
            words = "; ".join(re.findall(r"^espbench: (.+)$", self.said(), re.MULTILINE))
            raise EspbenchError(
                f"{self.side} ({self.box.login}) is not as it was: {words or self.said().strip()}"
            )
        if self.channel.greeted and status != 0:
            self._ask_again()
        self.as_it_was.set()

    def abandon(self) -> None:
        """Close the connection to a box that was switched off: it has no ports to give back."""
        self.ended.set()
        self.as_it_was.set()
        self.channel.close()

    def _ask_again(self) -> None:
        """Let the box restore its ports, if it has not done so by itself after the connection or the helper ended."""
        try:
            mend(self.side, self.box)
        except UsageError:
            raise
        except EspbenchError as error:
            with notebook_of(self.logs, self.side).open("a") as page:
                page.write(
                    f"# {self.side}: lost; `espbench clean` asks it again to give its ports back: {error}\n"
                )
            raise LeftForClean from None


def notebook_of(logs: Path, side: Side) -> Path:
    """Return the log of the requests to the box."""
    return logs / f"{side}.log"


def ssh_log_of(logs: Path, side: Side) -> Path:
    """Return the log with the output of ssh and the box's helper."""
    return logs / f"{side}-ssh.log"


def console_log_of(logs: Path, side: Side) -> Path:
    """Return the log of the box's serial console, which labgrid reads."""
    return logs / f"{side}-console.log"


def _beat(connection: socket.socket, ended: threading.Event) -> None:
    """Send heartbeats, NUL bytes, which may be anywhere in the stream: a line of JSON has no NUL."""
    while not ended.wait(BEAT_S):
        try:
            connection.send(b"\0")
        except BlockingIOError:
            continue
        except OSError:
            return


def _send(connection: socket.socket, data: bytes) -> None:
    """Send the first line; the peer may not read it before it is connected."""
    deadline = time.monotonic() + READY_S
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[connection.send(rest) :]
        except BlockingIOError:
            if time.monotonic() > deadline:
                return  # the code that waits for the greeting reports the error
            time.sleep(0.01)
        except OSError:
            return


@functools.lru_cache(maxsize=4)
def _packed(folder: Path) -> bytes:
    """Return the folder as tar.gz, without files that no daemon reads; it is cached for the time after a power
    cycle.
    """

    def wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if member.name.startswith(_LEFT_OUT) else member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for part in sorted(folder.iterdir()):
            archive.add(part, part.name, filter=wanted)
    return packed.getvalue()
