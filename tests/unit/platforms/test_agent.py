# SPDX-License-Identifier: Apache-2.0
"""The agent as a child on two ends of a socket: what it does, and what it does with nonsense."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.errors import EspbenchError
from espbench.platforms import agent as agent_module
from espbench.platforms.base import NetlinkRefused
from espbench.platforms.channel import AgentChannel, AgentRefused
from espbench.platforms.gateway import AgentGateway
from espbench.platforms.remote.remote_gateway import Box, RemoteGateway, SshChannel, ssh_log_of
from espbench.platforms.remote.ssh import Login
from espbench.this_machine.registry import interpreter

NETLINK_ROUTE = 0
RTM_GETLINK = 18
RTM_DELLINK = 17
NLM_F_DUMP = 0x300
PATIENCE_S = 120  # only ends a hang


def link_message(kind: int, flags: int, index: int = 0) -> bytes:
    """A netlink message with an empty ifinfomsg."""
    return struct.pack("=IHHII", 32, kind, flags, 0, 0) + struct.pack("=BBHiII", 0, 0, 0, index, 0, 0)


class Running:
    """An agent process and the controller's end of its socket."""

    def __init__(self, console: str = "") -> None:
        self.ours, theirs = socket.socketpair()
        fd = str(theirs.fileno())
        self.process = subprocess.Popen(
            [interpreter(), "-I", "-S", agent_module.__file__, "--fd", fd, fd], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self.channel = AgentChannel("home", self.ours, lambda: console)
        self.greeting = self.channel.wait_ready(PATIENCE_S)

    def gateway(self, logs: Path) -> AgentGateway:
        """The same agent as a gateway."""
        return AgentGateway(
            self.channel, "home", "lan", "wan", lambda: 0, logs / "home.log", logs / "console.log"
        )


@pytest.fixture
def running() -> Iterator[Running]:
    """An agent that has greeted."""
    started = Running("its last words")
    yield started
    started.channel.close()
    assert started.process.wait(PATIENCE_S) == 0


def test_a_long_request_given_up_halfway_does_not_spoil_the_next(running: Running) -> None:
    """Its first pieces are forgotten."""
    assert running.channel.request("part", text="half of something", first=True, last=False)["ok"]
    text = "".join(f"line {n}\n" for n in range(2000))
    assert running.channel.request("exec", argv=["cat"], stdin=text)["out"] == text


def test_greets_with_its_kernel(running: Running) -> None:
    """The first line names the kernel the gateway runs."""
    assert running.greeting["kernel"] == os.uname().release


def test_runs_a_command_with_stdin(running: Running) -> None:
    """Exit code, both outputs and stdin pass."""
    reply = running.channel.request("exec", argv=["sh", "-c", "cat; echo no >&2; exit 3"], stdin="yes")
    assert (reply["rc"], reply["out"], reply["err"]) == (3, "yes", "no\n")


def test_long_lines_pass_in_both_directions(running: Running) -> None:
    """Two megabytes there and back are one request and one answer."""
    text = "x" * 2_000_000
    assert running.channel.request("exec", argv=["cat"], stdin=text)["out"] == text


def test_a_daemon_left_behind_does_not_hold_the_answer_up(running: Running) -> None:
    """A child that keeps the output open is not waited for."""
    reply = running.channel.request("exec", argv=["sh", "-c", "sleep 60 & echo $!"], timeout_s=30)
    pid = int(reply["out"])
    os.kill(pid, 9)  # it was still there


def test_a_command_that_does_not_end_is_killed(running: Running) -> None:
    """Its time is up: an error with the command's name, and the agent goes on."""
    with pytest.raises(AgentRefused, match=r"sleep did not end within 0\.2 s") as refused:
        running.channel.request("exec", argv=["sleep", "60"], timeout_s=0.2)
    assert refused.value.errno == errno.ETIMEDOUT
    assert running.channel.request("ping")["ok"]


def test_a_command_that_is_not_there_is_named(running: Running) -> None:
    """ENOENT comes back as errno and in words."""
    with pytest.raises(AgentRefused, match="cannot run no-such-command") as refused:
        running.channel.request("exec", argv=["no-such-command"])
    assert refused.value.errno == errno.ENOENT


def test_reads_and_writes_files(running: Running, tmp_path: Path) -> None:
    """A file that is missing is None, not an error."""
    gateway = running.gateway(tmp_path)
    path = str(tmp_path / "a")
    assert gateway.read([path]) == {path: None}
    gateway.write(path, "ü\n")
    assert gateway.read([path, "/no/such"]) == {path: "ü\n", "/no/such": None}
    with pytest.raises(AgentRefused, match="cannot write /no/such/file"):
        gateway.write("/no/such/file", "")


def test_what_may_hold_keys_is_its_owners_alone(running: Running, tmp_path: Path) -> None:
    """A new file is read by nobody else, an old one keeps its mode; and no daemon leaves a core."""
    gateway = running.gateway(tmp_path)
    old = tmp_path / "old"
    old.touch(0o644)
    for name in ("new", "old"):
        gateway.write(str(tmp_path / name), "key")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("new", "old")] == [0o600, 0o644]
    assert (tmp_path / "new").read_text() == "key"
    assert gateway.run(["sh", "-c", "ulimit -c; ulimit -H -c"]).out.split() == ["0", "0"]


def test_counts_every_interface(running: Running, tmp_path: Path) -> None:
    """The columns of /proc/net/dev land under their names."""
    counters = running.gateway(tmp_path).link_counters()
    sysfs = Path("/sys/class/net/lo/statistics/rx_errors")
    assert counters["lo"].rx_errors == int(sysfs.read_text())
    assert set(counters) == {name for _, name in socket.if_nameindex()}


def test_a_netlink_dump_comes_back_whole(running: Running, tmp_path: Path) -> None:
    """One reply for each interface, header included, without ACK or DONE."""
    gateway = running.gateway(tmp_path)
    replies = gateway.netlink(NETLINK_ROUTE, [link_message(RTM_GETLINK, NLM_F_DUMP)] * 2)
    assert [len(each) for each in replies] == [len(socket.if_nameindex())] * 2
    assert {struct.unpack_from("=IH", reply)[1] for reply in replies[0]} == {16}  # RTM_NEWLINK
    assert all(struct.unpack_from("=I", reply)[0] == len(reply) for reply in replies[0])


def test_a_netlink_refusal_has_its_errno(running: Running, tmp_path: Path) -> None:
    """A negative ACK raises with errno and says which message it was."""
    gateway = running.gateway(tmp_path)
    messages = [link_message(RTM_GETLINK, 0, 1), link_message(RTM_GETLINK, 0, 2**31 - 1)]
    with pytest.raises(NetlinkRefused, match="message 2: No such device") as refused:
        gateway.netlink(NETLINK_ROUTE, messages)
    assert refused.value.errno == errno.ENODEV


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{nonsense", "not JSON"),
        (b"[]", "a request is a JSON object"),
        (b"\x80", "agent: UnicodeDecodeError"),
        (b'{"op": "reboot"}', "unknown op 'reboot'"),
        (b'{"op": "exec"}', "field 'argv' is missing"),
        (b'{"op": "exec", "argv": []}', "field 'argv' is empty"),
        (b'{"op": "exec", "argv": [1]}', "must hold strings only"),
        (b'{"op": "exec", "argv": ["true"], "timeout_s": "1"}', "field 'timeout_s'"),
        (b'{"op": "read", "paths": "x"}', "field 'paths'"),
        (b'{"op": "read", "paths": ["\\u0000"]}', "agent: ValueError"),
        (b'{"op": "netlink", "protocol": 0, "messages": ["?"]}', "not base64"),
        (b'{"op": "netlink", "protocol": 0, "messages": ["AA=="]}', "shorter than its header"),
        (b'{"op": "netlink", "protocol": 99, "messages": []}', "rotocol not supported"),
    ],
)
def test_nonsense_gets_an_error_and_no_more(running: Running, line: bytes, complaint: str) -> None:
    """One error reply goes out whatever comes in, and the agent stays."""
    running.ours.setblocking(True)
    running.ours.sendall(line + b"\n")
    with running.ours.makefile() as answers:
        reply = json.loads(answers.readline())
    assert reply["ok"] is False
    assert complaint in reply["error"]
    assert running.process.poll() is None


def test_the_notebook_has_commands_and_no_secrets(running: Running, tmp_path: Path) -> None:
    """The log has what was run, and not what went in by stdin, file or netlink."""
    gateway = running.gateway(tmp_path)
    gateway.run(["cat"], stdin="secret-1")
    gateway.write(str(tmp_path / "key"), "secret-2")
    gateway.netlink(NETLINK_ROUTE, [link_message(RTM_GETLINK, 0, 1)])
    notebook = (tmp_path / "home.log").read_text()
    assert "home cat\n" in notebook
    assert "secret" not in notebook


def test_the_ip_line_that_failed_is_named(running: Running, tmp_path: Path) -> None:
    """`ip -batch` gives a line number; the user gets the line and the reason."""
    gateway = running.gateway(tmp_path)
    with pytest.raises(EspbenchError, match=r"gateway home: `ip link show dev no-such-link` failed: .+"):
        gateway.ip(["link show dev lo", "link show dev no-such-link", "link show dev lo"])


def test_a_dead_gateway_is_named_with_its_last_words() -> None:
    """The channel says who died and quotes the end of the console; alive() knows without asking."""
    started = Running("Kernel panic - not syncing")
    assert not started.channel.hung_up()
    started.process.kill()
    started.process.wait()
    assert started.channel.hung_up()
    with pytest.raises(EspbenchError, match=r"(?s)gateway home died.*Kernel panic"):
        started.channel.request("ping")
    started.channel.close()


def test_the_last_words_of_a_box_have_its_banner_once(tmp_path: Path) -> None:
    """It comes with each connection of a run; what ssh says of the last one's end stays."""
    ours, theirs = socket.socketpair()
    box = Box(Login("10.0.0.1"), lan="lan0", wan="wan0")
    gateway = RemoteGateway(SshChannel("home", ours, str), "home", box, tmp_path, lambda: None)
    ssh_log_of(tmp_path, "home").write_text("Keep out.\n" * 3 + "Connection to 10.0.0.1 closed.\n")
    assert gateway.last_words() == "Keep out.\nConnection to 10.0.0.1 closed."
    theirs.close()
    ours.close()


def test_a_late_answer_is_not_taken_for_the_next() -> None:
    """The reply to a request that timed out comes late, and is passed over."""
    started = Running()
    with pytest.raises(EspbenchError, match=r"did not answer exec within 0\.1 s"):
        started.channel.request("exec", 0.1, argv=["sh", "-c", "sleep 0.5; echo late"])
    assert started.channel.request("exec", argv=["echo", "right"])["out"] == "right\n"
    started.channel.close()
    started.process.wait(PATIENCE_S)


def test_dies_with_its_parent() -> None:
    """A killed parent takes the agent with it although the socket stays open."""
    ours, theirs = socket.socketpair()
    fd = str(theirs.fileno())
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], close_fds=False)\n"
        "print(child.pid, flush=True)\n"
        "child.wait()"
    )
    parent = subprocess.Popen(
        [interpreter(), "-c", program, interpreter(), "-I", "-S", agent_module.__file__, "--fd", fd, fd],
        pass_fds=[theirs.fileno()],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    channel = AgentChannel("home", ours, str)
    channel.wait_ready(PATIENCE_S)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + PATIENCE_S
    while (state := state_of(pid)) not in ("gone", "Z") and time.monotonic() < deadline:
        time.sleep(0.01)
    channel.close()
    theirs.close()
    assert state in ("gone", "Z")


def state_of(pid: int) -> str:
    """The letter of proc(5), or `gone`."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "gone"
