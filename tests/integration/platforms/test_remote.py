# SPDX-License-Identifier: Apache-2.0
"""Gateways behind a real sshd: who is let in, what is measured, and that the boxes are afterwards as before."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.measure import trial
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase
from espbench.plan import load_profile
from espbench.platforms.base import SIDES
from espbench.platforms.remote import remote_gateway
from espbench.platforms.remote.remote_gateway import Box, survey
from espbench.runs.platform_kinds.boxes import boxes_of
from espbench.terms import WITH_FIGURE
from support.gateways.boxes import sh
from support.gateways.remote_boxes import SECRET, RemoteBoxes, inside, two_boxes
from support.gateways.workshop import Workshop, workshop
from support.plans import PINNED, pair_plan, write_plan
from support.runs import assert_no_keys
from support.session.unsettled import require_settled

pytestmark = [pytest.mark.uml, pytest.mark.needs("openssh-client"), pytest.mark.untimed]
TRAFFIC = Traffic(((256, 1),), 4, "both-ways")
PATIENCE_S = 1800.0  # only ends a hang


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteBoxes]:
    """Two boxes that are up, with an sshd."""
    with two_boxes(tmp_path_factory.mktemp("boxes")) as made:
        yield made


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    """Open a workshop for one test: the boxes are given back at its end."""
    with workshop(tmp_path) as made:
        yield made


def box_of(boxes: RemoteBoxes, **changes: Any) -> Box:
    """Home, with keys of its profile changed."""
    return boxes_of(load_profile(str(boxes.profile(home=changes)))).boxes["home"]


def bring_up(setup: Setup) -> None:
    """Its stack, without traffic: a busy host may lose a frame, and a run would try again."""
    assert setup.stack is not None
    setup.stack.block()
    setup.stack.establish()
    assert setup.stack.security_context()["mismatches"] == []


def assert_as_before(boxes: RemoteBoxes, before: dict[Any, dict[str, str]], within_s: float = 90) -> None:
    """Both boxes are what they were, at once or soon; in as much of their state as `before` has."""

    def state(side: Any) -> dict[str, str]:
        return {what: text for what, text in boxes.state(side).items() if what in before[side]}

    deadline = time.monotonic() + within_s
    while (now := {side: state(side) for side in SIDES}) != before and time.monotonic() < deadline:
        time.sleep(0.3)
    for side in SIDES:
        assert now[side] == before[side]


# -- who is let in ---------------------------------------------------------------------------------


def test_a_box_says_what_it_is_and_nothing_is_changed_by_asking(boxes: RemoteBoxes) -> None:
    before = {side: boxes.state(side) for side in SIDES}
    with inside(boxes.management):
        surveyed = survey("home", box_of(boxes))
        with pytest.raises(UsageError, match="got eth9"):
            survey("home", box_of(boxes, wan="eth9"))
    assert (surveyed["cpus"], surveyed["machine"]) == (1, os.uname().machine)
    assert surveyed["kernel"] == boxes.run("home", "uname -r").strip()
    assert surveyed["macs"] == [
        boxes.run("home", f"cat /sys/class/net/{port}/address").strip() for port in ("vec0", "vec1")
    ]
    assert_as_before(boxes, before)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"known_hosts": "changed"}, "its host key is not the one in .*changed: another machine answers there"),
        ({"known_hosts": "empty"}, "expected its host key in .*empty, got none of it; fetch it with `ssh-keyscan"),
        ({"identity": "other"}, "does not accept .*other; put its public half into ~root/.ssh/authorized_keys"),
        ({"identity": "open"}, "ssh ignores .*open, which others may read; chmod 600"),
        ({"user": "nobody"}, "does not accept"),
        ({"port": 2222}, "cannot be reached: .*Connection refused"),
        ({"python": "/opt/python9"}, "expected Python on the box, got none"),
        ({"lan": "eth9"}, "lan: expected a network interface of the box, got eth9; there are: lo, vec0, vec1, vec2"),
        ({"lan": "vec2"}, "lan: vec2: this ssh connection arrives on it and would be cut"),
        ({"wan": "lo"}, "wan: lo: expected a network port, got the loopback"),
    ],
)  # fmt: skip
def test_a_box_that_cannot_be_used_is_refused_in_one_line(
    boxes: RemoteBoxes, changes: dict[str, Any], words: str
) -> None:
    """One message that names the box replaces what ssh says at length."""
    wrong = (boxes.folder / "other.pub").read_text().rpartition(" ")[0]
    (boxes.folder / "changed").write_text(f"{boxes.host('home')} {wrong}\n")
    (boxes.folder / "empty").write_text("")
    shutil.copy(boxes.folder / "key", boxes.folder / "open")
    (boxes.folder / "open").chmod(0o644)
    named = {
        key: str(boxes.folder / value) if key in ("known_hosts", "identity") else value
        for key, value in changes.items()
    }
    with inside(boxes.management), pytest.raises(EspbenchError, match=words) as caught:
        survey("home", box_of(boxes, **named))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("home (")
    assert isinstance(caught.value, UsageError) or "port" in changes


def test_a_key_that_is_not_there_is_told_before_ssh_is_tried(boxes: RemoteBoxes) -> None:
    with pytest.raises(MachineLacks, match=r"home: identity: expected a file that can be read, got .*no-key"):
        survey("home", box_of(boxes, identity=str(boxes.folder / "no-key")))


@pytest.mark.alone
def test_a_run_with_the_wrong_host_key_ends_before_it_begins(boxes: RemoteBoxes, tmp_path: Path) -> None:
    (boxes.folder / "none").write_text("")
    profile = boxes.profile("strange", home={"known_hosts": str(boxes.folder / "none")})
    done = espbench_run(boxes, tmp_path, profile, ["xfrm"])
    assert done.returncode == UsageError.exit_code
    assert "got none of it" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


# -- boxes in service ------------------------------------------------------------------------------

_IN_SERVICE = """\
ip link set vec0 up mtu 1400 txqueuelen 77
ip addr add 10.1.2.3/24 brd + dev vec0
ip addr add fd00:77::3/64 dev vec0 nodad
ip route add 10.9.0.0/16 via 10.1.2.9 dev vec0 metric 7 mtu 1200
ip -6 route add fd00:99::/48 via fd00:77::9 dev vec0
ip route add 10.8.0.0/16 dev vec0 table 77
ip neigh replace 10.1.2.9 lladdr 02:00:00:00:00:99 dev vec0 nud permanent
echo 2 > /proc/sys/net/ipv4/conf/vec0/rp_filter
echo 33 > /proc/sys/net/ipv6/conf/vec0/hop_limit
echo 5 > /proc/sys/net/ipv4/neigh/vec0/mcast_solicit
ip xfrm state add src 10.1.2.3 dst 10.1.2.9 proto esp spi 0x77 mode tunnel enc 'cbc(aes)' 0x{key}
ip xfrm policy add src 10.1.0.0/16 dst 10.9.0.0/16 dir out tmpl src 10.1.2.3 dst 10.1.2.9 proto esp mode tunnel
"""
_OUT_OF_SERVICE = """\
ip xfrm state flush; ip xfrm policy flush
ip addr flush dev vec0; ip route flush table 77; ip link set vec0 down mtu 1500 txqueuelen 1000
echo 0 > /proc/sys/net/ipv4/conf/vec0/rp_filter
echo 64 > /proc/sys/net/ipv6/conf/vec0/hop_limit
echo 3 > /proc/sys/net/ipv4/neigh/vec0/mcast_solicit
"""


@pytest.fixture
def in_service(boxes: RemoteBoxes) -> Iterator[None]:
    """Home has addresses, routes, settings and SAs of its own on the port that is wanted."""
    boxes.run("home", _IN_SERVICE.format(key="77" * 16))
    yield
    boxes.run("home", _OUT_OF_SERVICE)


@pytest.mark.usefixtures("in_service")
def test_a_box_in_service_is_taken_only_by_its_owner(boxes: RemoteBoxes) -> None:
    with inside(boxes.management):
        with pytest.raises(UsageError, match=r"it has 10\.1\.2\.3/24, fd00:77::3/64; .*i_own_this_box: true"):
            survey("home", box_of(boxes))
        with pytest.raises(UsageError, match="the box already has 1 SAs"):
            survey("home", replace(box_of(boxes), lan="vec1"))
        assert survey("home", box_of(boxes, i_own_this_box=True))["cpus"] == 1


@pytest.mark.usefixtures("in_service")
def test_a_box_in_service_gets_everything_back(boxes: RemoteBoxes, shop: Workshop) -> None:
    """Its addresses, routes of every table, neighbours, settings; its SAs are never touched."""
    before = {side: boxes.state(side) for side in SIDES}
    neighbours = boxes.run("home", "ip neigh show nud permanent")
    profile = boxes.profile("mine", home={"i_own_this_box": True})
    with inside(boxes.management), shop.pair("xfrm", "aes128gcm16", dut=str(profile)) as (setup, _):
        assert "10.1.2.3" not in boxes.run("home", "ip addr")
        assert boxes.run("home", "ip xfrm state; ip xfrm policy") == before["home"]["xfrm"]
        bring_up(setup)
    assert_as_before(boxes, before)
    assert boxes.run("home", "ip neigh show nud permanent") == neighbours
    assert "10.9.0.0/16 via 10.1.2.9 dev vec0 metric 7 mtu 1200" in boxes.state("home")["routes"]


# -- measuring -------------------------------------------------------------------------------------


def espbench_run(
    boxes: RemoteBoxes, folder: Path, profile: Path, stacks: list[str], **throughput: Any
) -> subprocess.CompletedProcess[str]:
    """`espbench run` of a small plan, where ssh finds the boxes."""
    return subprocess.run(
        command_of(boxes, folder, profile, stacks, **throughput),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def command_of(
    boxes: RemoteBoxes, folder: Path, profile: Path, stacks: list[str], **throughput: Any
) -> list[str]:
    waits = {"settle": "50ms", "learning": "50ms", "residue": "100ms"}
    plan = pair_plan(
        str(profile), throughput=waits | throughput, name="remote", stacks=stacks, suites=["aes128gcm16"],
        frame_sizes=[256], directions=["both-ways"], **PINNED,
    )  # fmt: skip
    return run_of(boxes, folder, plan)


def run_of(boxes: RemoteBoxes, folder: Path, plan: dict[str, Any]) -> list[str]:
    """The command that runs a plan where ssh finds the boxes."""
    written = write_plan(folder, plan)
    enter = ["nsenter", f"--net=/run/netns/{boxes.management}"]
    return [
        *enter,
        sys.executable,
        "-m",
        "espbench",
        "run",
        "--no-report",
        str(written),
        "--out",
        str(folder / "runs"),
    ]


@pytest.mark.alone
def test_a_whole_plan_is_measured_and_nothing_of_it_stays(boxes: RemoteBoxes, tmp_path: Path) -> None:
    """Plain forwarding, which each plan has, and a daemon that is not installed there; its encryption is proven."""
    before = {side: boxes.state(side) for side in SIDES}
    done = espbench_run(boxes, tmp_path, boxes.profile(), ["strongswan"])
    assert done.returncode in (0, 3), done.stderr
    (directory,) = (tmp_path / "runs").iterdir()
    with (directory / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    require_settled(rows)
    assert {row["status"] for row in rows} <= set(WITH_FIGURE)
    assert {(row["stack"], row["encryption"]) for row in rows} == {
        ("plain", "baseline"), ("strongswan", "proven"),
    }  # fmt: skip
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["platform"] == "remote"
    assert "home" not in manifest["placement"]["cpus"]
    assert any(
        "CPU of home is that of its whole box (1 CPUs" in text for text in manifest["placement"]["shared"]
    )
    for context in manifest["contexts"].values():
        assert set(context["kernel"].values()) == {boxes.run("home", "uname -r").strip()}
    shown = next(c for name, c in manifest["contexts"].items() if name.startswith("strongswan"))
    assert shown["stack_version"]["home"].startswith("strongSwan ")
    assert shown["shown before the first trial"]["cleartext blocked, tunnel down"].startswith("0 of ")
    assert_as_before(boxes, before)
    no_secrets(boxes, directory)


def no_secrets(boxes: RemoteBoxes, directory: Path) -> None:
    """Neither the ssh key nor a pre-shared key is in anything the run wrote."""
    private = (boxes.folder / "key").read_text().splitlines()[1]
    for file in directory.rglob("*"):
        if file.is_file():
            text = file.read_text(errors="replace")
            assert private not in text, file
            assert not re.search(r"secret\s*=|PSK \"", text), file
    assert_no_keys(directory)


@pytest.mark.slow
def test_the_cpu_account_is_the_boxs_own(boxes: RemoteBoxes, shop: Workshop) -> None:
    """Work on Home is Home's, whoever does it, and not Office's."""
    with inside(boxes.management), shop.pair("xfrm", "aes128gcm16", dut=str(boxes.profile())) as (setup, _):
        home, office = setup.bed.gateways["home"], setup.bed.gateways["office"]
        before = home.cpu_ns() or 0, office.cpu_ns() or 0
        boxes.run("home", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
        used = (home.cpu_ns() or 0) - before[0], (office.cpu_ns() or 0) - before[1]
    assert used[0] > 200e6
    assert used[0] > 4 * used[1]


@pytest.mark.slow
def test_a_daemon_is_in_memory_and_goes_with_the_agent(boxes: RemoteBoxes, shop: Workshop) -> None:
    """It is laid over the agent's root alone, which cannot be written; its processes end too."""
    before = {side: boxes.state(side) for side in SIDES}
    with (
        inside(boxes.management),
        shop.pair("strongswan", "aes128gcm16", dut=str(boxes.profile())) as (setup, _),
    ):
        gateway = setup.bed.gateways["home"]
        bring_up(setup)
        assert "charon" in boxes.state("home")["processes"]
        assert gateway.run(["test", "-x", "/usr/sbin/swanctl"]).rc == 0
        assert "Read-only file system" in gateway.run(["sh", "-c", "echo x > /root/espbench-was-here"]).err
        assert boxes.run("home", "ls /usr/sbin/swanctl /tmp/espbench 2>&1; true").count("No such file") == 2
    assert_as_before(boxes, before)


# -- power and console -----------------------------------------------------------------------------


def power_cycled(
    boxes: RemoteBoxes, folder: Path, profile: Path, trial: str
) -> subprocess.CompletedProcess[str]:
    """`espbench run` of one trial in which Home is switched off and on."""
    reset = {"what": "power", "load": "500fps", "trial": trial, "at": "1s", "repeats": 1, "retries": 0}
    plan = pair_plan(
        str(profile), name="power", stacks=["strongswan"], suites=["aes128gcm16"], frame_sizes=[256],
        directions=["both-ways"], **PINNED,
        tests=[{"reset": {**reset, "settle": "50ms", "learning": "50ms", "residue": "100ms"}}],
    )  # fmt: skip
    return subprocess.run(
        run_of(boxes, folder, plan), capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


@pytest.mark.slow
@pytest.mark.needs("labgrid")
@pytest.mark.alone
def test_a_box_is_switched_off_and_on_in_mid_trial_and_carries_traffic_again(
    boxes: RemoteBoxes, tmp_path: Path
) -> None:
    """Its agent, addresses, daemon and tunnel are back; its console is in the logs, labgrid's password nowhere."""
    before = {side: boxes.state(side) for side in SIDES}
    profile = boxes.profile("powered", home={"labgrid": boxes.labgrid("home", back_within="45s")})
    done = power_cycled(boxes, tmp_path, profile, trial="45s")
    assert done.returncode == 0, done.stderr + done.stdout
    boxes.booted["home"].result()
    (directory,) = (tmp_path / "runs").iterdir()
    (trial_line,) = (directory / "trials.jsonl").read_text().splitlines()
    record = json.loads(trial_line)
    (action,) = record["measured"]["actions"]
    (finding,) = json.loads((directory / "results.json").read_text())["findings"]
    (reset,) = [q["value"] for q in finding["quantities"] if q["name"] == "reset time"][:1]
    assert finding["status"] == "OK"
    assert 0.5 < action["off_s"] + action["boot_s"] < reset < 44
    assert finding["rfc2544_deviations"][0].startswith(
        "RFC 6201 4: the time includes that espbench brings its agent"
    )
    assert record["gateways"]["home"]["cpu_pct"] > 0
    assert re.search(r"home: back \d+ s after it was switched on", done.stderr + done.stdout)
    console = (directory / "logs/home-console.log").read_text(errors="replace")
    _, off, rest = console.partition("] switched off\n")
    _, on, boot = rest.partition("] switched on\n")
    assert off
    assert on
    assert "Linux version" in boot
    assert not (directory / "logs/office-console.log").exists()
    assert any("labgrid_worker" in line for line in boxes.process_list)
    assert not [line for line in boxes.process_list if SECRET in line]
    written = [
        file for file in directory.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()
    ]
    assert written == []
    for of_this_boot in ("processes", "sysctls"):  # paths with its name, sizes that follow its free memory
        del before["home"][of_this_boot]
    assert_as_before(boxes, before)
    no_secrets(boxes, directory)


@pytest.mark.slow
@pytest.mark.needs("labgrid")
def test_a_kernel_panic_of_a_box_is_in_its_console_log(boxes: RemoteBoxes, shop: Workshop) -> None:
    """It is also in the words with which the gateway is told dead."""
    profile = boxes.profile("panics", office={"labgrid": boxes.labgrid("office")})
    with inside(boxes.management), shop.pair("xfrm", "aes128gcm16", dut=str(profile)) as (setup, _):
        with contextlib.suppress(EspbenchError):
            boxes.consoles["office"].request(
                "exec", 2, argv=["sh", "-c", "echo c > /proc/sysrq-trigger"], stdin="", timeout_s=1
            )
        deadline = time.monotonic() + 120
        while "Kernel panic" not in setup.bed.gateways["office"].last_words():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "Kernel panic" in (shop.folder / "office-console.log").read_text(errors="replace")
        boxes.switch("office", "off")
        boxes.switch("office", "on")
        boxes.booted["office"].result()


# -- ends ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.alone
def test_after_kill_9_of_the_controller_the_boxes_are_as_before(boxes: RemoteBoxes, tmp_path: Path) -> None:
    before = {side: boxes.state(side) for side in SIDES}
    command = command_of(boxes, tmp_path, boxes.profile(), ["plain", "strongswan"], final_trial="60s")
    with (tmp_path / "said").open("w") as said:
        run = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            deadline = time.monotonic() + 600
            while "vec0" in boxes.run("home", "ls /sys/class/net") or not list(
                tmp_path.glob("runs/*/trials.jsonl")
            ):
                assert run.poll() is None, (tmp_path / "said").read_text()
                assert time.monotonic() < deadline, (tmp_path / "said").read_text()
                time.sleep(0.1)
        finally:
            run.send_signal(signal.SIGKILL)
            run.wait()
    assert_as_before(boxes, before)
    assert clean(boxes).returncode == 0  # its journal, and it asks both boxes


def clean(boxes: RemoteBoxes) -> subprocess.CompletedProcess[str]:
    """`espbench clean` where ssh finds the boxes."""
    return subprocess.run(
        ["nsenter", f"--net=/run/netns/{boxes.management}", sys.executable, "-m", "espbench", "clean"],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip


def kill_the_helper(boxes: RemoteBoxes) -> None:
    """SIGKILL to what runs on Home behind its sshd, which is then in no state to give anything back."""
    boxes.run("home", "kill -9 $(pgrep -f 'import [b]ase64,json,zlib' | tail -n 1)")
    deadline = time.monotonic() + 120
    while "vec0" not in boxes.run("home", "ls /sys/class/net"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("in_service")
@pytest.mark.parametrize(
    "by",
    [
        "the end of the pair",
        pytest.param("the next connection", marks=pytest.mark.alone),
        pytest.param("clean", marks=pytest.mark.alone),
    ],
)
def test_after_kill_9_of_the_helper_the_box_gets_everything_back(
    boxes: RemoteBoxes, shop: Workshop, by: str, tmp_path: Path
) -> None:
    """Addresses, routes of every table, neighbours, settings, by whoever comes next."""
    before = {side: boxes.state(side) for side in SIDES}
    neighbours = boxes.run("home", "ip neigh show nud permanent")
    box = box_of(boxes, i_own_this_box=True)
    with inside(boxes.management):
        if by == "the end of the pair":
            profile = boxes.profile("mine", home={"i_own_this_box": True})
            with shop.pair("xfrm", "aes128gcm16", dut=str(profile)):
                kill_the_helper(boxes)
                assert "10.1.2.3" not in boxes.run("home", "ip addr")
        else:
            abandoned(boxes, box, tmp_path)
            if by == "clean":
                done = clean(boxes)
                assert (done.returncode, "removed" in done.stdout, "box home" in done.stdout) == (
                    0,
                    True,
                    True,
                )
            else:
                survey("home", box)
                assert clean(boxes).returncode == 0
    assert_as_before(boxes, before)
    assert boxes.run("home", "ip neigh show nud permanent") == neighbours
    assert boxes.run("home", "ls -d /run/espbench-box 2>&1; true").count("No such file") == 1


def abandoned(boxes: RemoteBoxes, box: Box, folder: Path) -> None:
    """A controller takes Home's ports; its helper there and then it itself are killed."""
    script = (
        "import sys,time,pickle; from pathlib import Path; from espbench.this_machine.registry import Registry;"
        "from espbench.platforms.remote.remote_gateway import connect; box = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "with Registry('abandoned') as r:\n"
        " connect(r, 'home', box, Path(sys.argv[2]))(); print('up', flush=True); time.sleep(1000)"
    )
    argv = [sys.executable, "-c", script, pickle.dumps(box).hex(), str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == "up\n"
        kill_the_helper(boxes)
        controller.kill()
    assert "10.1.2.3" not in boxes.run("home", "ip addr")


@pytest.mark.slow
@pytest.mark.alone
def test_a_lost_connection_is_an_error_within_seconds_and_the_box_helps_itself(
    boxes: RemoteBoxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial is broken, its message says why; after its time of silence the box is as before, still cut off.

    A workshop of its own: its journal keeps the box that could not be asked, and `clean` asks it once it is in reach.
    """
    monkeypatch.setattr(remote_gateway, "SILENCE_S", 4)
    monkeypatch.setattr(remote_gateway, "BEAT_S", 0.5)
    before = {side: boxes.state(side) for side in SIDES}
    link = f"ip -n {boxes.netns} link set dev out-home"
    with inside(boxes.management), workshop(tmp_path) as shop:
        try:
            with shop.pair("xfrm", "aes128gcm16", dut=str(boxes.profile())) as (setup, case):
                bring_up(setup)
                time.sleep(5)  # longer than the silence a box takes: the signs of life arrive
                assert setup.bed.gateways["home"].alive()
                sh(f"{link} down")
                began = time.monotonic()
                with pytest.raises(
                    TrialBroken, match=r"(?s)gateway home died during the trial.*not responding"
                ):
                    trial.measure(
                        setup,
                        TRAFFIC,
                        Request(1000, 0.3, "search"),
                        OfCase(case.id, 0, 0.1),
                        Waits(0.05, 0.1, 0.0),
                    )
                assert time.monotonic() - began < 20
                assert setup.bed.gateways["office"].alive()
            assert_as_before(boxes, before)
        finally:
            sh(f"{link} up")
    cleaned = clean(boxes)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert not shop.registry.path.exists()


@pytest.mark.slow
def test_a_cable_that_is_not_there_is_named(
    boxes: RemoteBoxes, shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("espbench.platforms.remote.remote_platform.CARRIER_S", 1.0)
    before = {side: boxes.state(side) for side in SIDES}
    sh(f"ip -n {boxes.netns} link set dev west down")
    try:
        with (
            inside(boxes.management),
            pytest.raises(EspbenchError, match=r"no link after 1 s: tester west \(west\)"),
            shop.pair("xfrm", "aes128gcm16", dut=str(boxes.profile())),
        ):
            pass
    finally:
        sh(f"ip -n {boxes.netns} link set dev west up")
    assert_as_before(boxes, before)


@pytest.mark.slow
@pytest.mark.alone
def test_a_port_that_cannot_be_given_back_is_told(boxes: RemoteBoxes, tmp_path: Path) -> None:
    """Somebody has made another of its name in the meantime: that must not pass for the port.

    A workshop of its own: its journal keeps the box, and `clean` restores it once the name is free.
    """
    before = {side: boxes.state(side) for side in SIDES}
    try:
        with (
            inside(boxes.management),
            workshop(tmp_path) as shop,
            pytest.raises(
                EspbenchError, match=r"home \(root@10\.77\.1\.2\) is not as it was: .*vec0.*File exists"
            ),
            shop.pair("xfrm", "aes128gcm16", dut=str(boxes.profile())),
        ):
            boxes.run("home", "ip link add vec0 type veth peer name other0")
    finally:
        # The kernel has given it a name of its own.
        boxes.run("home", "ip link del vec0; cd /sys/class/net; ip link set dev $(echo dev*) name vec0")
    cleaned = clean(boxes)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert not shop.registry.path.exists()
    assert_as_before(boxes, before)
