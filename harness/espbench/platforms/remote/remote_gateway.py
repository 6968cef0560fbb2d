# SPDX-License-Identifier: Apache-2.0
"""A gateway on a box behind ssh: one connection, the agent at its end, the box's CPUs as its account."""

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

# The parts of what is sent to a box, by their names in the request.
PROGRAMS = {"program": Path(__file__).with_name("remote_box.py"), "launcher": LAUNCHER, "agent": AGENT}
# The three programs in one line on stdin, so that nothing of them is on a disk there or on a command line.
_BOOTSTRAP = (
    "import base64,json,zlib;"
    'r=json.loads(zlib.decompress(base64.b64decode(open(0,"rb",closefd=False).readline())));'
    'n={"__name__":"__main__"};exec(r.pop("program"),n);n["main"](r)'
)
READY_S = 75.0  # a box may first have to end what a broken connection left
# A sign of life this often; without any for so long the box gives its ports back by itself.
BEAT_S, SILENCE_S = 5.0, 30
GIVE_BACK_S = 60.0
# USER_HZ, in which every Linux that espbench can meet counts /proc/stat for programs.
_TICK_NS = 10**9 // 100
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian")
_UNPACK = (
    "import base64,io,sys,tarfile;"
    't=tarfile.open(fileobj=io.BytesIO(base64.b64decode(sys.stdin.read())),mode="r:gz");'
    't.extraction_filter=getattr(tarfile,"fully_trusted_filter",None);t.extractall(sys.argv[1])'
)


@dataclass(frozen=True)
class Box:
    """One gateway's box: how it is reached, its two ports, and whether it may be taken out of service."""

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
        """Write what goes to its stdin first; take: be a gateway, else only look, or give back what was left taken."""
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
    """Holds the times of all CPUs of a box since its boot, ns: busy (interrupts too), and stolen by a hypervisor."""

    cpus: int
    busy_ns: int
    steal_ns: int


def cpu_times(stat: str) -> CpuTimes:
    """Read /proc/stat, CPU by CPU (proc(5)): user, nice, system, irq, softirq; guests are in user already."""
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
    """Ask a box for its kernel, machine, cpus, virtual, macs, boot (its id), and take nothing there.

    EspbenchError, in one message, if it does not answer or will not do.
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
        raise ssh.explain(side, box.login, done.stderr.decode(errors="replace"))
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def mend(name: str, box: Box) -> None:
    """Have a box give back the ports that a killed helper took; nothing to do is no error.

    EspbenchError when it cannot be reached, UsageError when it cannot do it.
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
        raise ssh.explain(name, box.login, done.stderr.decode(errors="replace"))


def _mend_left(record: dict[str, Any]) -> None:
    """Mend, for `clean`, the box of a controller that was killed, or lost it."""
    known = {key: Path(record[key]) if record[key] else None for key in ("identity", "known_hosts")}
    login = ssh.Login(record["host"], record["user"], record["port"], **known)
    # The side is only told; a journal of an earlier version has it in the name alone.
    mend(record.get("side", record["name"]), Box(login, record["lan"], record["wan"], record["python"]))


UNDO["box"] = _mend_left


def _detail(box: Box) -> dict[str, Any]:
    """Say, for the journal, how to reach a box again; no secret is in it."""
    login = box.login
    files = {"identity": login.identity, "known_hosts": login.known_hosts}
    return {
        **{name: str(path.absolute()) if path else "" for name, path in files.items()},
        **{"host": login.host, "user": login.user, "port": login.port},
        **{"lan": box.lan, "wan": box.wan, "python": box.python},
    }


class SshChannel(AgentChannel):
    """A line without a terminal: a request of any length passes whole.

    Before the greeting a login shell may talk (a .bashrc that echoes); that is passed over.
    """

    longest_line = 1 << 30
    greeted = False

    def end_input(self) -> None:
        """Tell the box that this was all, without waiting until it has given its ports back."""
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
    """A gateway whose files are not this machine's and whose CPU account is its whole box."""

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
        """Become the gateway that answers after a power cycle; used_ns is the CPU time until it was off."""
        self.plug_in(booted.channel, self._box_cpu_ns, None)
        self.hang_up, self.abandon = booted.hang_up, booted.abandon
        self._before_boot_ns = used_ns
        self._brought.clear()

    def last_words(self) -> str:
        """Return the end of what ssh said, and of the box's console where it is captured.

        A line that ssh said with each connection of the run, as the box's banner, is there once.
        """
        shown = tail(self._console_log).strip()
        said = "\n".join(dict.fromkeys(super().last_words().splitlines()))
        return said + (f"\non its console:\n{shown}" if shown else "")

    def note(self, text: str) -> None:
        """Write something into its notebook."""
        self._note(f"# {text}")

    def cpu_times(self) -> CpuTimes:
        """Return the CPU times of the whole box."""
        text = self.channel.request("read", paths=["/proc/stat"])["texts"]["/proc/stat"]
        return cpu_times(text or "")

    def deliver(self, folder: Path) -> str:
        """Bring a folder of this machine there, into memory that goes with the agent; the path it has there."""
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
    """Start the connection and take the box's ports; what is returned waits until its agent is there.

    Undone by hanging up and waiting until the box has given its ports back; EspbenchError if it could not.
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

    def wait() -> RemoteGateway:
        try:
            channel.wait_ready(READY_S)
        except EspbenchError:
            if channel.closed:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(ssh.CONNECT_S)
                raise ssh.explain(side, box.login, connection.said()) from None
            raise
        threading.Thread(target=_beat, args=(ours, connection.ended), daemon=True).start()
        return RemoteGateway(channel, side, box, logs, connection.abandon)

    return wait


@dataclass
class _Connection:
    """One ssh connection to a box, and how it ends; began is where its words begin in the log of ssh."""

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
        """End it and wait until the box has given its ports back; EspbenchError where it is not as it was."""
        if self.ended.is_set():
            if not self.as_it_was.is_set():
                raise LeftForClean  # the first time, everything was said
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
        """Forget a box that was switched off: it has nothing left to give back."""
        self.ended.set()
        self.as_it_was.set()
        self.channel.close()

    def _ask_again(self) -> None:
        """Ask the box to give its ports back, unless it did so by itself after the connection or the helper ended."""
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
    """Return the log of what the box was told to do."""
    return logs / f"{side}.log"


def ssh_log_of(logs: Path, side: Side) -> Path:
    """Return the log of what ssh and the box's helper said."""
    return logs / f"{side}-ssh.log"


def console_log_of(logs: Path, side: Side) -> Path:
    """Return the log of the box's serial console, where labgrid reaches it."""
    return logs / f"{side}-console.log"


def _beat(connection: socket.socket, ended: threading.Event) -> None:
    """Send signs of life, which may stand anywhere in the stream: no line of JSON holds a NUL."""
    while not ended.wait(BEAT_S):
        try:
            connection.send(b"\0")
        except BlockingIOError:
            continue
        except OSError:
            return


def _send(connection: socket.socket, data: bytes) -> None:
    """Send the first line, to a peer that may not read before it is connected."""
    deadline = time.monotonic() + READY_S
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[connection.send(rest) :]
        except BlockingIOError:
            if time.monotonic() > deadline:
                return  # the code that waits for the greeting says what is wrong
            time.sleep(0.01)
        except OSError:
            return


@functools.lru_cache(maxsize=4)
def _packed(folder: Path) -> bytes:
    """Pack the folder as tar.gz, without what no daemon reads; once, so that a power cycle has it at hand."""

    def wanted(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        return None if member.name.startswith(_LEFT_OUT) else member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        for part in sorted(folder.iterdir()):
            archive.add(part, part.name, filter=wanted)
    return packed.getvalue()
