# SPDX-License-Identifier: Apache-2.0
"""Boxes over ssh, as far as no box is needed: profiles, the command line, messages, the CPU account, libraries."""

from __future__ import annotations

import ast
import shlex
import socket
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import EspbenchError, GatewayFailed, MachineLacks, UsageError
from espbench.plan import load_plan, load_profile
from espbench.platforms.base import CommandResult
from espbench.platforms.remote import remote_box, remote_gateway, ssh
from espbench.platforms.remote.remote_gateway import Box, cpu_times
from espbench.platforms.remote.ssh import Login
from espbench.runs.platform_kinds.boxes import boxes_of
from espbench.stacks.daemons import layers
from espbench.stacks.daemons.builds import Build
from support.plans import plan_text

PROFILE = {
    "name": "mine", "description": "d", "platform": "remote", "line_rate": "1Gbps",
    "ports": {"west": {"netns": "t1", "interface": "e0"}, "east": {"netns": "t2", "interface": "e0"}},
    "boxes": {
        "home": {"host": "192.0.2.10", "lan": "eth1", "wan": "eth2", "identity": "./key"},
        "office": {"host": "192.0.2.20", "lan": "eth1", "wan": "eth2", "known_hosts": "/etc/known"},
    },
}  # fmt: skip


def written(folder: Path, change: str = "", value: object = None) -> Path:
    """The profile with one key changed, such as `boxes.home.port`; None removes it."""
    profile = yaml.safe_load(yaml.safe_dump(PROFILE))
    *path, last = change.split(".") if change else [""]
    at = profile
    for key in path:
        at = at[key]
    if value is None:
        at.pop(last, None)
    else:
        at[last] = value
    file = folder / "mine.yaml"
    file.write_text(yaml.safe_dump(profile))
    return file


# -- profiles --------------------------------------------------------------------------------------


def test_a_profile_says_how_boxes_are_reached(tmp_path: Path) -> None:
    """Paths of keys start at the profile; what is left out is root, port 22 and ssh's own known_hosts."""
    boxes = boxes_of(load_profile(str(written(tmp_path))))
    home, office = boxes.boxes["home"], boxes.boxes["office"]
    assert home.login == Login("192.0.2.10", "root", 22, tmp_path / "key", None)
    assert office.login.known_hosts == Path("/etc/known")
    assert (home.lan, home.wan, home.python, home.i_own_this_box) == ("eth1", "eth2", "python3", False)
    assert boxes.ports["east"].netns == "t2"


def test_the_example_is_a_profile() -> None:
    """It is there to be copied: all of it must be accepted."""
    boxes = boxes_of(load_profile("remote-example"))
    assert {side: box.login.host for side, box in boxes.boxes.items()} == {
        "home": "192.0.2.10", "office": "192.0.2.20",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "value", "words"),
    [
        ("boxes", None, "expected boxes: with platform: remote, got none; dut-profiles/remote-example.yaml"),
        ("ports", None, "expected ports: with platform: remote, got none"),
        ("boxes.home.wan", "eth1", 'boxes.home.wan: expected another interface than lan, got "eth1"'),
        ("boxes.office.host", "192.0.2.10", "boxes.office.host: expected another box than home's"),
        ("boxes.home.host", "-oProxyCommand=x", "boxes.home.host: expected a host name or an IP address"),
        ("boxes.home.user", "-x", "boxes.home.user: expected a user name"),
        ("boxes.home.port", 0, "boxes.home.port: expected"),
        ("boxes.home.hots", "x", 'boxes.home.hots: expected a key of a box, got "hots"; did you mean host?'),
        (
            "boxes.home.identity",
            "~nobody-here/key",
            "boxes.home.identity: expected a path, which may begin with",
        ),
        (
            "boxes.office.known_hosts",
            "~nobody-here/k",
            'home of a user of this machine, got "~nobody-here/k"; write ~/',
        ),
        ("boxes.home.identity", "~a\0b/key", "boxes.home.identity: expected a path"),
        (
            "boxes.home.labgrid",
            {"config": "~nobody-here/lg.yaml"},
            "boxes.home.labgrid.config: expected a path",
        ),
        ("ports.west.netns", None, "ports.west.interface: expected an interface in a network namespace"),
        ("ports.east.netns", "t1", "ports.east.interface: expected another interface than west's"),
        (
            "memory",
            "256M",
            "memory: expected no such key with platform: remote, got one; boxes run their own",
        ),
        (
            "platform",
            "uml",
            "boxes: expected no such key with platform: uml, got one; guests are of this machine",
        ),
    ],
)
def test_a_mistake_in_a_profile_is_told_where_it_is(
    tmp_path: Path, change: str, value: object, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load_profile(str(written(tmp_path, change, value)))
    assert words in str(caught.value)
    assert "mine.yaml:" in str(caught.value)


def test_a_machines_own_port_needs_the_owners_word(tmp_path: Path) -> None:
    file = written(tmp_path, "ports.west.netns")
    file.write_text(file.read_text() + "i_own_this_network: true\n")
    assert boxes_of(load_profile(str(file))).i_own_this_network


def test_boxes_without_a_line_rate_are_not_compared_with_boxes_that_have_one(tmp_path: Path) -> None:
    """The message says that the ports decide it, because the run has one line rate."""
    first = written(tmp_path).rename(tmp_path / "first.yaml")
    second = written(tmp_path, "line_rate")
    second.write_text(second.read_text().replace("name: mine", "name: other"))
    plan = tmp_path / "plan.yaml"
    plan.write_text(plan_text(dut=f"[./{first.name}, ./{second.name}]", compare="dut"))
    with pytest.raises(UsageError, match=r"expected the line_rate of mine, 1Gbps, got that of the ports"):
        load_plan(plan)


def test_a_cable_cannot_be_captured(tmp_path: Path) -> None:
    """Said where the plan asks for it, before anything runs."""
    written(tmp_path)
    plan = tmp_path / "plan.yaml"
    plan.write_text(plan_text(dut="./mine.yaml"))
    assert load_plan(plan).plan.duts == ["./mine.yaml"]
    plan.write_text(plan_text(dut="./mine.yaml", capture="true"))
    with pytest.raises(UsageError, match=r"plan\.yaml:7:10: capture: expected no capture with \./mine\.yaml"):
        load_plan(plan)


# -- ssh -------------------------------------------------------------------------------------------


def test_ssh_asks_nothing_trusts_nobody_new_and_forwards_nothing() -> None:
    argv = ssh.command(Login("box", "root", 2222, Path("/k e/%y"), Path("/known")), ["python3", "-c", "a b"])
    for option in (
        "BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no", "ForwardX11=no", "ControlPath=none",
        "ClearAllForwardings=yes", "UpdateHostKeys=no", 'UserKnownHostsFile="/known"',
        "GlobalKnownHostsFile=/dev/null", 'IdentityFile="/k e/%%y"', "IdentitiesOnly=yes", "ServerAliveInterval=3",
    ):  # fmt: skip
        assert option in argv
    assert argv[:4] == ["ssh", "-F", "none", "-T"]
    assert argv[-7:] == ["-l", "root", "-p", "2222", "--", "box", "python3 -c 'a b'"]


def test_without_files_ssh_takes_the_users_own() -> None:
    argv = ssh.command(Login("box"), ["true"])
    assert not [word for word in argv if word.startswith(("UserKnownHosts", "GlobalKnown", "Identit"))]


@pytest.mark.parametrize(
    ("said", "status", "words", "kind"),
    [
        ("@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key ver", 255, "not the one", UsageError),
        ("No ED25519 host key is known for b and you have …", 255, "ssh-keyscan -p 22 b", UsageError),
        ("root@b: Permission denied (publickey).", 255, "~root/.ssh/authorized_keys", UsageError),
        ("bash: line 1: python3: command not found", 127, "expected Python on the box", UsageError),
        (
            "Hallo!\nbash: Zeile 1: python3: Kommando nicht gefunden.\n", 127,
            r"got none that runs \(bash: Zeile 1: python3: Kommando nicht gefunden\.\); .* as python:$", UsageError,
        ),
        ("sh: 1: /opt/python3: Permission denied\n", 126, "expected Python on the box", UsageError),
        ("python3: Command not found.", 1, "expected Python on the box", UsageError),
        ("Welcome!\nespbench: lan: eth9: expected x", 3, r"home \(root@b\): lan: eth9: expected x$", UsageError),
        ("a\nb\nc\nssh: connect to host b: Connection refused\n", 255, "reached: b; c; ssh: connect", GatewayFailed),
        ("", None, "cannot be reached: ssh gave no reason", GatewayFailed),
    ],
)  # fmt: skip
def test_what_ssh_says_becomes_one_line(
    said: str, status: int | None, words: str, kind: type[EspbenchError]
) -> None:
    error = ssh.explain("home", Login("b"), said, status)
    with pytest.raises(kind, match=words):
        raise error
    assert type(error) is kind
    assert "\n" not in str(error)


def test_the_command_line_on_the_box_is_short_and_holds_no_program() -> None:
    """A process list there shows it; all else comes by stdin, in one line."""
    box = Box(Login("b"), "eth1", "eth2")
    words = shlex.split(box.argv()[-1])
    assert words[:4] == ["python3", "-I", "-S", "-c"]
    assert len(words[4]) < 200
    ast.parse(words[4])
    assert box.request(take=True).count(b"\n") == 1
    assert box.request(take=True).endswith(b"\n")


# -- the box ---------------------------------------------------------------------------------------


def test_programs_for_a_box_need_no_newer_python_than_they_say() -> None:
    """All three are read there by whatever Python the box has."""
    for program in remote_gateway.PROGRAMS.values():
        text = program.read_text()
        ast.parse(text, feature_version=remote_box.NEEDS_PYTHON)
        imported = {
            alias.name.partition(".")[0]
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert imported <= sys.stdlib_module_names


STAT = """\
cpu  15 2 30 400 50 6 70 8 9 0
cpu0 10 1 20 300 30 4 50 5 9 0
cpu1 5 1 10 100 20 2 20 3 0 0
intr 5
"""


def test_a_boxs_cpu_time_counts_interrupts_and_not_what_was_stolen() -> None:
    """The time is in ns, of all CPUs; guest time is in user already."""
    times = cpu_times(STAT)
    assert times.cpus == 2
    assert times.busy_ns == (10 + 1 + 20 + 4 + 50 + 5 + 1 + 10 + 2 + 20) * 10_000_000
    assert times.steal_ns == 8 * 10_000_000


@given(st.lists(st.tuples(*[st.integers(0, 10**9)] * 10), min_size=1, max_size=8))
def test_cpu_time_never_runs_backwards_where_the_box_does_not(cpus: list[tuple[int, ...]]) -> None:
    def stat(more: int) -> str:
        return "".join(f"cpu{n} {' '.join(str(f + more) for f in fields)}\n" for n, fields in enumerate(cpus))

    first, second = cpu_times(stat(0)), cpu_times(stat(3))
    assert second.busy_ns - first.busy_ns == 5 * 3 * 10_000_000 * len(cpus)


def test_differences_name_what_is_lost_and_what_is_new() -> None:
    was = {"routes": ["a", "b"], "flags": ["UP"]}
    now = {"routes": ["b", "c"], "flags": ["UP"]}
    changes = remote_box.differences(was, now)
    assert [*map(str, changes)] == ["routes: lost a", "routes: has got c"]
    assert [change.lost for change in changes] == [True, False]
    assert remote_box.differences(was, was) == []


def test_whoever_comes_back_after_a_broken_connection_waits_long_enough() -> None:
    """The helper that was cut off still has the ports; a new one must outwait it, and the controller both."""
    assert remote_gateway.SILENCE_S < remote_box.OTHER_WAIT_S < remote_gateway.READY_S
    assert remote_gateway.BEAT_S < remote_gateway.SILENCE_S / 3


def test_one_espbench_at_a_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The other is waited for, then refused; the name is free with its holder."""
    monkeypatch.setattr(remote_box, "OTHER_WAIT_S", 0.0)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind("\0espbench-box")
        with pytest.raises(SystemExit), remote_box.alone():
            pass
    assert capsys.readouterr().err == "espbench: another espbench uses this box\n"
    with remote_box.alone():
        pass


# -- daemons brought along -------------------------------------------------------------------------


class Elsewhere:
    """A gateway on another machine; `said` is what its loader says of a program."""

    side = "home"

    def __init__(self, rc: int, said: str) -> None:
        self._answer = CommandResult(rc, said, "")

    def deliver(self, folder: Path) -> str:
        return "/tmp/espbench/0"

    def run(self, argv: list[str], **_: object) -> CommandResult:
        return self._answer if argv[0] == "env" else CommandResult(0, "", "")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("libc.so.6 => /lib/libc.so.6\nlibgmp.so.10 => not found\n", r"lacks libgmp\.so\.10$"),
        (
            "charon: /lib/libc.so.6: version `GLIBC_2.36' not found (required by charon)\n",
            r"lacks GLIBC_2\.36$",
        ),
    ],
)
def test_a_box_without_a_daemons_libraries_is_told_which(tmp_path: Path, said: str, words: str) -> None:
    (tmp_path / "usr").mkdir()
    build = Build(tmp_path, {"charon": "/usr/lib/ipsec/charon"}, "5.9.8", "d", image=True)
    layers.lay(Elsewhere(0, "libc.so.6 => /lib/libc.so.6\n"), build)  # type: ignore[arg-type]
    with pytest.raises(MachineLacks) as caught:
        layers.lay(Elsewhere(0, said), build)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(caught.value.what)


def test_a_prefix_is_refused_elsewhere_and_an_image_is_not(tmp_path: Path) -> None:
    """A prefix works at its own path only, which another machine does not have."""
    with pytest.raises(UsageError, match=r"prefix: expected an image \(a folder with usr/\)"):
        layers.lay(Elsewhere(0, ""), Build(tmp_path, {}, "n", "d", image=False))  # type: ignore[arg-type]
