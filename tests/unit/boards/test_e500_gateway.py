# SPDX-License-Identifier: Apache-2.0
"""An emulated gateway as the controller sees it, with a guest that is only lines; and how QEMU is started."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from espbench.errors import EspbenchError, UsageError
from espbench.platforms.base import CommandResult, LinkCounters, NetlinkRefused, PortName
from espbench.platforms.channel import AgentRefused
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.platforms.e500.e500_guest import Coalescing, Machine, command, initramfs
from espbench.platforms.virtual.virtual_guest import Built, Guest, LinkEnd, Userland

MACHINE = Machine(128, Fraction(5, 3), "2.1", 266_000_000, "descriptor=500:rng=1", "polling")
BUILT = Built(Path("/c/vmlinux"), Path("/c/initramfs"), Path("/c/qemu"), {})


class Lines:
    """A clock whose guest answers as told; without an answer it is dead."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.typed: list[str] = []

    def console(self, port: PortName, line: str | None, until: str, timeout_s: float) -> list[str]:
        assert port == "west"
        if line is not None:
            self.typed.append(line)
        if not self.answers:
            raise EspbenchError("generator: link west: process 7 left it at virtual time 0.1 s")
        answer = json.dumps(self.answers.pop(0), separators=(",", ":"))
        assert answer.startswith(until)
        return ["noise", answer]

    def branch(self, between_guests: Sequence[Path], seed: int = 0, *, anew: bool = False) -> None:
        raise AssertionError


def gateway(folder: Path, *answers: dict[str, Any], alive: bool = True) -> tuple[E500Gateway, Lines]:
    """One that has greeted."""
    (folder / "console").write_text("" if alive else "Oops\nKernel panic - not syncing: no more\n")
    process = cast(Any, type("Running", (), {"poll": lambda self: None})())
    guest = Guest("home", process, folder / "console", folder / "qemu.log")
    made, clock = E500Gateway("home", guest, folder / "notes"), Lines({"id": 0, "ok": True}, *answers)
    made.started_by(clock)
    return made, clock


def ok(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": number, "ok": True, **fields}


def test_each_request_has_its_number_and_its_answer(tmp_path: Path) -> None:
    links = {"eth0": vars(LinkCounters(1, 2, 3, 4, 5, 6))}
    home, clock = gateway(
        tmp_path, ok(1, now_ns=50, idle_ns=20, exact=True), ok(2, links=links), ok(3, texts={"/a": None})
    )
    assert home.cpu_ns() == 30
    assert home.link_counters() == {"eth0": LinkCounters(1, 2, 3, 4, 5, 6)}
    assert home.read(["/a", "/b"]) == {"/a": None}
    assert clock.typed == ["1 cpu", "2 counters", "3 read /a /b"]


def gathering(folder: Path, *answers: dict[str, Any]) -> tuple[E500Gateway, Lines]:
    """One that is to gather 16 frames or 205 µs receiving, 8 or 52 sending."""
    (folder / "console").write_text("")
    process = cast(Any, type("Running", (), {"poll": lambda self: None})())
    guest = Guest("home", process, folder / "console", folder / "qemu.log")
    made = E500Gateway("home", guest, folder / "notes", Coalescing(16, 205, 8, 52))
    clock = Lines({"id": 0, "ok": True}, *answers)
    made.started_by(clock)
    return made, clock


def test_interrupts_are_gathered_by_both_ports_as_asked(tmp_path: Path) -> None:
    asked = {"rx_frames": 16, "rx_us": 205, "tx_frames": 8, "tx_us": 52}
    home, clock = gathering(tmp_path, ok(1, **asked), ok(2, **asked))
    home.set_up_ports()
    assert clock.typed == ["1 coalesce eth0 16 205 8 52", "2 coalesce eth1 16 205 8 52"]


def test_a_driver_that_gathers_otherwise_is_no_device_of_that_profile(tmp_path: Path) -> None:
    home, _ = gathering(tmp_path, ok(1, rx_frames=16, rx_us=204, tx_frames=8, tx_us=52))
    with pytest.raises(EspbenchError, match=r"eth0 was to gather interrupts as .*205.* says .*204"):
        home.set_up_ports()


def test_what_a_reading_costs_is_not_in_it(tmp_path: Path) -> None:
    """Here 10 ns from one to the next, and 1,000 of work before the last."""
    busy = [100, 115, 125, 135, 145, 1155]
    answers = [ok(number, now_ns=9_000 + ns, idle_ns=9_000, exact=True) for number, ns in enumerate(busy, 1)]
    home, _ = gateway(tmp_path, *answers)
    home.weigh_asking()
    before, after = home.cpu_ns(), home.cpu_ns()
    assert after - before == 1_000


def test_each_trial_asks_with_the_same_numbers(tmp_path: Path) -> None:
    """A line that is a digit longer takes the guest a little longer."""
    asked = [1, 2, 3, 2, 3]
    home, clock = gateway(tmp_path, *(ok(number, texts={}) for number in asked))
    home.read(["/a"])
    for _ in range(2):
        home.as_before_trials()
        home.read(["/b"])
        home.read(["/c"])
    assert [int(line.split()[0]) for line in clock.typed] == asked


def test_a_kernel_that_only_guesses_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    home, _ = gateway(tmp_path, ok(1, now_ns=50, idle_ns=20, exact=False))
    with pytest.raises(
        UsageError,
        match=r"kernel: expected one that can read[\s\S]*build it with harness/emulator/kernel/idle\.c",
    ):
        home.weigh_asking()


def test_a_time_that_is_only_guessed_is_no_cpu_time_of_a_trial(tmp_path: Path) -> None:
    home, _ = gateway(tmp_path, ok(1, now_ns=50, idle_ns=20, exact=False))
    with pytest.raises(EspbenchError, match="no longer tells") as error:
        home.cpu_ns()
    assert not isinstance(error.value, UsageError)


def test_keys_are_typed_and_written_nowhere(tmp_path: Path) -> None:
    key = b"a secret key"
    home, clock = gateway(tmp_path, ok(1, replies=[[], ["0102"]]))
    messages = [bytes(16) + key, bytes(6) + b"\x03\x00" + bytes(8)]
    assert home.netlink(6, messages) == [[], [b"\1\2"]]
    assert key.hex() in clock.typed[0]
    assert (
        tmp_path / "notes"
    ).read_text() == "home # 1 netlink messages to protocol 6\n"  # the other only asks


def test_many_messages_go_in_several_lines(tmp_path: Path) -> None:
    """A guest takes lines of 60,000 bytes."""
    many = [bytes([number]) * 5_000 for number in range(9)]
    answers = [ok(number, replies=[[]] * count) for number, count in ((1, 4), (2, 4), (3, 1))]
    home, clock = gateway(tmp_path, *answers)
    assert home.netlink(6, many) == [[]] * 9
    assert all(len(line) < 60_000 for line in clock.typed)
    assert bytes.fromhex("".join("".join(line.split()[3:]) for line in clock.typed)) == b"".join(many)


def test_what_the_guest_refuses_is_told(tmp_path: Path) -> None:
    refused = {"ok": False, "error": "no such thing", "errno": 2}
    home, _ = gateway(tmp_path, *({"id": number, **refused} for number in (1, 2, 3)))
    with pytest.raises(EspbenchError, match=r"gateway home: `ip link set dev lo up` failed: .*no such thing"):
        home.ip(["link set dev lo up"])
    with pytest.raises(AgentRefused, match="gateway home: no such thing"):
        home.write("/proc/a", "1")
    with pytest.raises(NetlinkRefused) as error:
        home.netlink(6, [bytes(16)])
    assert error.value.errno == 2


def test_a_guest_that_panics_shows_its_console(tmp_path: Path) -> None:
    home, _ = gateway(tmp_path, alive=False)
    with pytest.raises(EspbenchError, match=r"(?s)gateway home died; .*Kernel panic - not syncing: no more"):
        home.cpu_ns()
    assert not home.alive()


def test_a_guest_that_is_only_silent_is_not_called_dead(tmp_path: Path) -> None:
    home, _ = gateway(tmp_path)
    with pytest.raises(EspbenchError, match="gateway home: no answer: generator: link west"):
        home.cpu_ns()


def test_only_its_own_boot_is_a_guests_console(tmp_path: Path) -> None:
    """The guests of a run's cases write into one log."""
    log = tmp_path / "console"
    log.write_text("Kernel panic - the one before\n")
    process = cast(Any, type("Running", (), {"poll": lambda self: None})())
    guest = Guest("home", process, log, tmp_path / "qemu.log", (log.stat().st_size, 0))
    assert guest.alive()
    assert guest.last_words() == ""


def test_a_program_is_run_by_its_words(tmp_path: Path) -> None:
    """Each in hex: they may hold spaces. Its time is of the guest's clock."""
    home, clock = gateway(tmp_path, ok(1, rc=3, out="a\nb", err="no"))
    assert home.run(["sh", "-c", "echo a; exit 3"], timeout_s=2.5) == CommandResult(3, "a\nb", "no")
    assert clock.typed == [f"1 run 2500000000 {b'sh'.hex()} {b'-c'.hex()} {b'echo a; exit 3'.hex()}"]


def test_a_text_of_several_lines_goes_in_pieces(tmp_path: Path) -> None:
    """A request is a line of at most 60,000 bytes."""
    text = "a\n" * 15_000
    home, clock = gateway(tmp_path, ok(1), ok(2))
    home.write("/run/x", text)
    (first, second) = (line.split(" ") for line in clock.typed)
    assert first[1:4] == ["put", "/run/x", "0"]
    assert second[1:4] == ["put", "/run/x", "20000"]
    assert bytes.fromhex(first[4] + second[4]).decode() == text


def test_nothing_is_brought_into_a_guest_that_runs(tmp_path: Path) -> None:
    home, _ = gateway(tmp_path)
    with pytest.raises(EspbenchError, match="cannot use x: nothing can be brought into a guest that runs"):
        home.deliver(Path("x"))


def test_nothing_of_the_host_is_in_the_command_line() -> None:
    """Time is counted in instructions, chance has a seed, the clock of the board begins at one moment."""
    ends = [
        LinkEnd(Path("/dev/shm/a,b"), 1, "02:00:00:00:00:11"),
        LinkEnd(Path("/dev/shm/m"), 0, "02:00:00:00:00:12"),
    ]
    words = command(BUILT, BUILT.initramfs, MACHINE, ends, 1, Path("/r/console"))
    text = " ".join(words)
    assert "-icount shift=0,sleep=off,ns=5/3 -seed 1 -rtc base=2026-01-01,clock=vm" in text
    assert "espbench.crypto=polling" in words[words.index("-append") + 1].split()
    assert "fsl-sec,version=2.1,clock=266000000,costs=descriptor=500:rng=1" in words
    devices = [word for word in words if word.startswith(("eTSEC,", "esplink,netdev"))]
    assert devices == [
        "eTSEC,netdev=port0,mac=02:00:00:00:00:11",
        "esplink,netdev=link0,path=/dev/shm/a,,b,end=1,console=control",
        "eTSEC,netdev=port1,mac=02:00:00:00:00:12",
        "esplink,netdev=link1,path=/dev/shm/m,end=0",
    ]
    whole = command(
        BUILT, BUILT.initramfs, Machine(128, Fraction(1), "2.1", 1, ""), ends, 1, Path("/r/console")
    )
    assert "shift=0,sleep=off" in whole
    assert not re.search(r"espbench\.crypto|trust_bootloader", " ".join(whole))


def test_a_bus_and_sets_of_units_are_in_the_command_line_where_asked_for() -> None:
    """Without them QEMU is called as it was before it had them, so that its figures are the same."""
    usual = command(BUILT, BUILT.initramfs, MACHINE, [], 1, Path("/r/console"))
    assert not re.search("espbench-bus|at-once", " ".join(usual))
    asked = replace(MACHINE, bus_bytes_per_second=372_000_000, sec_at_once=2)
    words = command(BUILT, BUILT.initramfs, asked, [], 1, Path("/r/console"))
    assert words[words.index("espbench-bus,bytes-per-second=372000000") - 1] == "-device"
    assert "fsl-sec,version=2.1,clock=266000000,costs=descriptor=500:rng=1,at-once=2" in words
    assert {word for word in words if not re.search("espbench-bus|fsl-sec", word)} <= set(usual)


def test_a_stack_with_a_daemon_has_it_in_its_root_and_random_numbers_at_once(tmp_path: Path) -> None:
    """Other guests boot as ever: what is read back of them is that of boards without programs."""
    init = tmp_path / "initramfs.cpio.gz"
    init.write_bytes(b"INIT.")
    (tmp_path / "base.cpio").write_bytes(b"BASE")
    (tmp_path / "strongswan.cpio").write_bytes(b"CHARON..")
    built, programs = replace(BUILT, initramfs=init), Userland(tmp_path, {})
    with_daemon = replace(MACHINE, images=("base", "strongswan"))
    assert initramfs(built, with_daemon, programs) == b"INIT.\0\0\0BASECHARON.."
    words = command(built, tmp_path / "root", with_daemon, [], 1, Path("/r/console"))
    assert str(tmp_path / "root") == words[words.index("-initrd") + 1]
    assert "random.trust_bootloader=on" in words[words.index("-append") + 1].split()
    (tmp_path / "strongswan.cpio").write_bytes(bytes(20 << 20))
    with pytest.raises(
        UsageError, match="memory: expected at least 136M, for the kernel and for base and strongswan"
    ):
        initramfs(built, with_daemon, programs)
