# SPDX-License-Identifier: Apache-2.0
"""Real User-Mode Linux pairs: they boot, forward, lose visibly, die with their controller, leave nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from espbench.errors import EspbenchError, GatewayFailed, MachineLacks, UsageError
from espbench.platforms.base import SIDES, Gateway
from espbench.platforms.gateway import AgentGateway
from espbench.platforms.placement import NICE
from espbench.platforms.uml.uml_kernel import UmlProfile
from espbench.platforms.uml.uml_platform import UmlPlatform, UmlTestbed
from espbench.this_machine.processes import descendants, start_time
from espbench.this_machine.registry import Registry, clean
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.gateways.boxes import leftovers
from support.gateways.uml_pairs import PLACEMENT, guest_pids, send

pytestmark = [pytest.mark.uml, pytest.mark.untimed]

NETLINK_XFRM = 6
XFRM_MSG_GETSA = 18


def fresh_id() -> str:
    """A run id no other test run has."""
    return f"t{uuid.uuid4().hex[:10]}"


class SharedPair:
    """One pair for the tests of this file, built anew after one that left a gateway which answers nothing."""

    def __init__(self, registry: Registry, logs: Path, *, capture: bool) -> None:
        self._registry = registry
        self._logs = logs
        self._capture = capture
        self.patience_s = 60.0
        self.built: UmlTestbed | None = None

    def ready(self) -> UmlTestbed:
        """Return a pair whose gateways answer."""
        if self.built is not None and not all(map(self._answers, self.built.gateways.values())):
            self.close()
        if self.built is None:
            self.built = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY).build(
                self._registry, self._logs, PLACEMENT, capture=self._capture
            )
        return self.built

    def close(self) -> None:
        """End it; nothing of it is left."""
        assert self.built is not None
        pids = guest_pids(self.built)
        self.built.close()
        self.built = None
        assert self._registry.entries == []
        assert not [pid for pid in pids if start_time(pid) is not None]

    def _answers(self, gateway: Gateway) -> bool:
        """Say whether it starts programs, which needs the kernel's timer, and does not only read its line."""
        assert isinstance(gateway, AgentGateway)
        try:
            return bool(gateway.channel.request("exec", self.patience_s, argv=["true"])["ok"])
        except GatewayFailed:
            return False


# These tests, in which the middle link takes part, run with each kind of it.
each_link = pytest.mark.parametrize(
    "shared",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["socketpair", "capture"],
    indirect=True,
)


@pytest.fixture(scope="module", params=[False], ids=["socketpair"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedPair]:
    """A pair, whose middle link can be captured if that is asked for; afterwards nothing of it is left."""
    run_id = fresh_id()
    with Registry(run_id) as registry:
        pair = SharedPair(registry, tmp_path_factory.mktemp("logs"), capture=request.param)
        pair.ready()
        yield pair
        pair.close()
    assert leftovers(run_id) == set()


@pytest.fixture
def bed(shared: SharedPair) -> UmlTestbed:
    """The pair, with gateways that answer: what one test did to a gateway fails no other."""
    return shared.ready()


def main_process(bed: UmlTestbed, side: str) -> int:
    """The guest's kernel, as a process of the host."""
    (launcher,) = (
        entry.detail["pid"] for entry in bed.made if entry.kind == "process" and side in entry.name
    )
    return descendants(launcher)[1]  # after process 1 of its PID namespace


def tap_statistic(bed: UmlTestbed, tap: str, name: str) -> int:
    """One counter of a link in the tester's namespace."""
    netns = bed.ports["west"].netns
    assert netns is not None
    path = f"/sys/class/net/{tap}/statistics/{name}"
    command = ["ip", "netns", "exec", Path(netns).name, "cat", path]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def at_rest(bed: UmlTestbed) -> None:
    """Wait until both gateways have worked off their queues: nothing moves from one second to the next."""
    deadline = time.monotonic() + 120
    now = [gateway.link_counters() for gateway in bed.gateways.values()]
    while time.monotonic() < deadline:
        time.sleep(1)
        before, now = now, [gateway.link_counters() for gateway in bed.gateways.values()]
        if now == before:
            return
    raise AssertionError(now)


@each_link
@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("size", [78, 1420])
def test_forwards_from_west_to_east(bed: UmlTestbed, version: int, size: int) -> None:
    """Every frame of an easy load arrives once, two hops later, and nothing else does."""
    before = {side: gateway.link_counters() for side, gateway in bed.gateways.items()}
    result = send(bed, version, 500, size)
    assert result == {"refused": 0, "received": 500, "foreign": 0, "hop_limits": [62]}
    for side, gateway in bed.gateways.items():
        after = gateway.link_counters()
        entered, left = ("vec0", "vec1") if side == "home" else ("vec1", "vec0")
        assert after[entered].rx_packets - before[side][entered].rx_packets == 500
        assert after[left].tx_packets - before[side][left].tx_packets == 500


@each_link
def test_loss_before_the_gateway_shows_in_the_ports_counter(bed: UmlTestbed) -> None:
    """A gateway that does not take frames fills its queue; what is beyond it is counted, none vanishes."""
    stopped = main_process(bed, "home")
    before = tap_statistic(bed, "west", "tx_dropped")
    os.kill(stopped, signal.SIGSTOP)
    try:
        result = send(bed, 4, 11_000, wait_s=0.2)
        dropped = tap_statistic(bed, "west", "tx_dropped") - before
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert result["received"] == 0
    assert result["refused"] in (0, dropped)
    assert 0 < dropped < 11_000
    at_rest(bed)  # before the next test counts


@each_link
def test_every_frame_of_a_flood_is_received_or_counted_where_it_was_lost(bed: UmlTestbed) -> None:
    """Received + the tester's port + the middle link (Home's port, or the bridge's) = sent."""

    def losses() -> int:
        lost = tap_statistic(bed, "west", "tx_dropped")
        lost += bed.gateways["home"].link_counters()["vec1"].tx_dropped
        return lost + (tap_statistic(bed, "middle-office", "tx_dropped") if bed.capture else 0)

    before = losses()
    result = send(bed, 4, 100_000, wait_s=5.0, pause_s=0)
    assert result["received"] + losses() - before == 100_000


def test_cpu_time_grows_with_work_of_that_gateway(bed: UmlTestbed) -> None:
    """Home's work is booked to Home, not to Office."""
    home, office = bed.gateways["home"], bed.gateways["office"]
    before = home.cpu_ns() or 0, office.cpu_ns() or 0
    loop = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    home.run(["sh", "-c", loop], timeout_s=120)  # a third of a second of CPU, of which others leave little
    used = (home.cpu_ns() or 0) - before[0], (office.cpu_ns() or 0) - before[1]
    assert used[0] > 5 * used[1]
    assert used[0] > 0


def test_a_pair_with_a_gateway_that_answers_nothing_is_built_anew(
    shared: SharedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next test gets another pair: here Home's agent has been stopped."""
    before = shared.ready()
    assert shared.ready() is before
    before.gateways["home"].run(["sh", "-c", "(sleep 0.2; kill -STOP $PPID) &"])
    monkeypatch.setattr(shared, "patience_s", 2.0)
    deadline = time.monotonic() + 300
    while shared.ready() is before:
        assert time.monotonic() < deadline
    assert send(shared.ready(), 4, 50)["received"] == 50


def test_the_guests_run_where_they_were_put(bed: UmlTestbed) -> None:
    """Every process of a gateway is pinned and under SCHED_OTHER."""
    for side in ("home", "office"):
        main = main_process(bed, side)
        assert start_time(main) is not None
        for pid in [main, *descendants(main)]:
            with contextlib.suppress(ProcessLookupError):  # one of a program that has just ended
                assert os.sched_getaffinity(pid) == set(PLACEMENT.cpus[side])
                assert os.sched_getscheduler(pid) == os.SCHED_OTHER


@pytest.mark.needs("autogroup")
def test_the_guests_come_before_others_on_their_cpu(bed: UmlTestbed) -> None:
    """A guest's kernel makes a session of its own, whose weight is what counts (sched(7))."""
    for side in SIDES:
        main = main_process(bed, side)
        assert start_time(main) is not None
        for pid in [main, *descendants(main)]:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                assert Path(f"/proc/{pid}/autogroup").read_text().endswith(f" nice {NICE}\n")


def test_a_guest_has_no_way_to_write_the_hosts_files(bed: UmlTestbed, tmp_path: Path) -> None:
    """Neither its root nor a second mount of the host's root is a way."""
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    etc = Path(f"/etc/espbench-{uuid.uuid4().hex}")
    gateway = bed.gateways["home"]
    gateway.write(str(victim), "overwritten")
    gateway.write(str(etc), "x")
    assert gateway.read([str(victim)]) == {str(victim): "overwritten"}
    script = f"mkdir -p /mnt/h && mount -t hostfs none /mnt/h && echo evil > /mnt/h{victim}"
    result = gateway.run(["sh", "-c", script])
    gateway.run(["umount", "/mnt/h"])
    assert "Read-only file system" in result.err
    assert victim.read_text() == "untouched"
    assert not etc.exists()


def test_the_guests_kernel_has_ipsec(bed: UmlTestbed) -> None:
    """NETLINK_XFRM answers: an empty dump, and states appear in `ip xfrm` once made."""
    request = (40).to_bytes(4, "little") + XFRM_MSG_GETSA.to_bytes(2, "little") + b"\x00\x03" + bytes(32)
    assert bed.gateways["office"].netlink(NETLINK_XFRM, [request]) == [[]]
    add = "xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 mode tunnel aead rfc4106(gcm(aes))"
    bed.gateways["office"].ip([f"{add} 0x{'00' * 20} 128"])
    assert len(bed.gateways["office"].netlink(NETLINK_XFRM, [request])[0]) == 1
    bed.gateways["office"].ip(["xfrm state flush"])


@pytest.mark.parametrize("kind", ["ipip", "sit", "ip6tnl"])
def test_tunnel_devices_load_on_demand(bed: UmlTestbed, kind: str) -> None:
    """Transport mode over an IP tunnel needs these; the kernel finds their modules by itself."""
    ends = "local 192.0.2.1 remote 192.0.2.2"
    if kind == "ip6tnl":
        ends = "local 2001:2:0:f::1 remote 2001:2:0:f::2"
    bed.gateways["home"].ip([f"link add test type {kind} {ends}", "link del test"])


def test_a_megabyte_passes_the_serial_line(bed: UmlTestbed) -> None:
    """The agent's line is raw and takes lines of any length without losing a character."""
    text = "".join(f"{number}\n" for number in range(150_000))
    assert bed.gateways["office"].run(["cat"], stdin=text).out == text


@each_link
def test_the_capture_port_shows_the_middle_link(bed: UmlTestbed) -> None:
    """A bridge shows the frames between the gateways; a socketpair has no port to capture at."""
    if bed.capture is None:
        assert bed.capture_netns is None
        return
    before = tap_statistic(bed, bed.capture, "rx_packets")
    send(bed, 4, 100)
    assert tap_statistic(bed, bed.capture, "rx_packets") - before == 100


def test_a_panic_is_noticed_and_quoted(tmp_path: Path) -> None:
    """A gateway whose kernel panics is not alive; the error names it and quotes its console."""
    run_id = fresh_id()
    with Registry(run_id) as registry:
        built = UmlPlatform(UmlProfile(memory_mb=128), GATEWAY_TO_GATEWAY).build(
            registry, tmp_path, PLACEMENT
        )
        home, office = built.gateways["home"], built.gateways["office"]
        assert home.alive()
        with pytest.raises(EspbenchError, match=r"(?s)gateway home died.*sysrq triggered crash"):
            home.run(["sh", "-c", "echo c > /proc/sysrq-trigger"])
        assert not home.alive()
        assert "Kernel panic" in (tmp_path / "home-console.log").read_text()
        assert office.alive()
        os.kill(main_process(built, "office"), signal.SIGKILL)
        deadline = time.monotonic() + 120
        while office.alive() and time.monotonic() < deadline:
            time.sleep(0.001)
        assert not office.alive()
    assert leftovers(run_id) == set()


def test_after_kill_9_of_the_controller_no_guest_process_is_left(tmp_path: Path) -> None:
    """Traced and stopped processes die too; `clean` removes the namespace and the folders."""
    run_id = fresh_id()
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[3])\n"
        "from espbench.this_machine.registry import Registry\n"
        "from espbench.platforms.uml.uml_platform import UmlPlatform\n"
        "from espbench.platforms.uml.uml_kernel import UmlProfile\n"
        "from support.gateways.addresses import GATEWAY_TO_GATEWAY\n"
        "from support.gateways.uml_pairs import PLACEMENT, guest_pids\n"
        "with Registry(sys.argv[1], Path(sys.argv[2])) as registry:\n"
        "    built = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY).build(registry, Path(sys.argv[2]), PLACEMENT)\n"
        "    built.gateways['home'].run(['sh', '-c', 'sleep 1000 & sleep 1000 &'])\n"
        "    print(*guest_pids(built), flush=True)\n"
        "    time.sleep(1000)\n"
    )
    controller = subprocess.Popen(
        [sys.executable, "-c", program, run_id, str(tmp_path), str(Path(__file__).parents[2])],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert controller.stdout is not None
    pids = [int(pid) for pid in controller.stdout.readline().split()]
    assert len(pids) >= 10, "four launchers, two kernels, and processes of both guests"
    controller.kill()
    controller.communicate()
    deadline = time.monotonic() + 120
    while (left := [pid for pid in pids if start_time(pid) is not None]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []
    report = clean(tmp_path)
    assert f"{run_id}: netns espbench-{run_id}-tester" in report
    assert leftovers(run_id) == set()


def test_a_guest_that_cannot_boot_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    """A module that does not exist ends the boot; the error quotes modprobe."""
    run_id = fresh_id()
    profile = UmlProfile(preload=("no_such_module",))
    with pytest.raises(EspbenchError, match=r"(?s)gateway home died.*no_such_module"), Registry(run_id) as it:
        UmlPlatform(profile, GATEWAY_TO_GATEWAY).build(it, tmp_path, PLACEMENT)
    assert leftovers(run_id) == set()


def test_two_pairs_run_at_once(tmp_path: Path) -> None:
    """The same addresses and names in two runs do not meet; closing one leaves the other."""
    with Registry(fresh_id()) as one, Registry(fresh_id()) as two:
        pairs = []
        for registry, name in ((one, "one"), (two, "two")):
            logs = tmp_path / name
            logs.mkdir()
            pairs.append(UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY).build(registry, logs, PLACEMENT))
        assert send(pairs[0], 4, 50)["received"] == 50
        assert pairs[1].gateways["home"].link_counters()["vec0"].rx_packets == 0
        pairs[0].close()
        assert send(pairs[1], 4, 50)["received"] == 50


def test_a_kernel_that_is_not_there_is_named(tmp_path: Path) -> None:
    """MachineLacks says what and how to install it, before anything is made."""
    with Registry(fresh_id()) as registry:
        with pytest.raises(MachineLacks, match=r"(?s)no-such-kernel.*apt-get install user-mode-linux"):
            UmlPlatform(
                UmlProfile(kernel={"home": "linux.uml", "office": "no-such-kernel"}), GATEWAY_TO_GATEWAY
            ).build(registry, tmp_path, PLACEMENT)
        assert registry.entries == []


def test_memory_out_of_range_is_refused() -> None:
    """128 to 512 MB, said in those words."""
    with pytest.raises(UsageError, match="memory_mb is 1024; a UML gateway gets 128 to 512 MB"):
        UmlPlatform(UmlProfile(memory_mb=1024), GATEWAY_TO_GATEWAY)


def test_the_mtu_reaches_every_link(tmp_path: Path) -> None:
    """A topology's MTU is that of the taps and of the gateways' interfaces."""
    with Registry(fresh_id()) as registry:
        addressing = replace(GATEWAY_TO_GATEWAY, mtu=1400)
        built = UmlPlatform(UmlProfile(), addressing).build(registry, tmp_path, PLACEMENT)
        paths = [f"/sys/class/net/{name}/mtu" for name in ("vec0", "vec1")]
        assert set(built.gateways["home"].read(paths).values()) == {"1400\n"}
        assert {port.mtu for port in built.ports.values()} == {1400}
