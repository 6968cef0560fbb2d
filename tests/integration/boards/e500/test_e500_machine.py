# SPDX-License-Identifier: Apache-2.0
"""`espbench build e500` on real sources, and what it built, started: the guest answers, its SEC computes."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.platforms.virtual.parts import guest, recipe, sources
from espbench.platforms.virtual.parts.tools import Runner
from espbench.platforms.virtual.virtual_guest import Built
from espbench.this_machine.registry import Registry
from support.virtual.e500_machine import BUILD, PATIENCE_S, built_by_command, sec, starter

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]

SEC = sec()


@pytest.fixture(scope="module")
def built() -> Built:
    """Return the kit as a run would find it."""
    return built_by_command()


@pytest.fixture
def start(built: Built, tmp_path: Path) -> Iterator[Any]:
    """Starts machines that end with the test."""
    with Registry(secrets.token_hex(3), tmp_path / "state") as registry:
        yield starter(built, registry, tmp_path)


@pytest.mark.root
def test_what_is_built_is_found_without_network(built: Built) -> None:
    """The command finds it in a network namespace with nothing in it, at once."""
    done = subprocess.run(["unshare", "-n", *BUILD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert str(built.kernel) in done.stdout


def test_the_manifests_are_those_of_the_files(built: Built) -> None:
    """Their SHA-256, and of what they were made."""
    products = {"vmlinux": built.kernel, "initramfs.cpio.gz": built.initramfs, "qemu-system-ppc": built.qemu}
    for part in recipe.PARTS:
        manifest = built.manifests[part.name]
        assert manifest["inputs"] == recipe.inputs(part)
        for name, expected in manifest["products"].items():
            assert recipe.digest(products.get(name, built.kernel.with_name(name))) == expected


def test_the_initramfs_is_the_same_wherever_it_is_built(built: Built, tmp_path: Path) -> None:
    """Neither folder nor time is in it."""
    work = tmp_path / "elsewhere"
    work.mkdir()
    with Registry(secrets.token_hex(3), tmp_path / "state") as registry:
        made = guest.build(work, Runner(registry, tmp_path / "log", lambda line: None))
    assert made["initramfs.cpio.gz"].read_bytes() == built.initramfs.read_bytes()


def test_no_product_holds_the_path_it_was_built_at(built: Built) -> None:
    """It would differ with the user and the moment."""
    for file in (built.kernel, built.qemu, built.initramfs):
        assert b".work-" not in file.read_bytes(), file


def test_a_build_that_is_ended_leaves_nothing_half_done(built: Built, tmp_path: Path) -> None:
    """SIGTERM while a tree is unpacked: exit code 130, no process, no work folder; done parts stay."""
    own = tmp_path / "espbench/e500"
    own.mkdir(parents=True)
    (own / "sources").symlink_to(sources.folder())
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    process = subprocess.Popen(BUILD, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    log = own / "logs/kernel.log"
    deadline = time.monotonic() + PATIENCE_S
    while not (log.is_file() and "dpkg-source" in log.read_text()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, said
    assert [path.name.partition("-")[0] for path in own.glob("[!.]*-*")] == ["guest"]
    assert list(own.glob(".work*")) == []
    while (
        str(own) in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    ):
        assert time.monotonic() < deadline  # a killed process ends when it has a CPU
        time.sleep(0.05)


@pytest.mark.root
def test_too_little_disk_is_said_before_anything_is_built(tmp_path: Path) -> None:
    """The command ends with 4, says what is free and what it needs, and writes nothing to a disk of 64 MB."""
    script = 'mount -t tmpfs -o size=64m none "$0" && { "$@"; code=$?; find "$0" -type f; exit $code; }'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, tmp_path, *BUILD],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert re.search(rf"{tmp_path}/espbench/e500: building needs \d+ MB there, 6\d MB are free", done.stderr)
    assert "XDG_CACHE_HOME" in done.stderr
    assert done.stdout.split() == [f"{tmp_path}/espbench/e500/.lock"]


def test_the_guest_greets_answers_and_switches_off(start: Any) -> None:
    """Requests of the file first, then those of the line; the CPU idles while nobody asks."""
    machine = start(requests=b"7 ping\n8 read /requests /proc/cpuinfo\n")
    assert machine.greeting["machine"] == "ppc"
    assert machine.answer()["id"] == 7
    texts = machine.answer()["texts"]
    assert texts["/requests"] == "7 ping\n8 read /requests /proc/cpuinfo\n"
    assert "e500v2" in texts["/proc/cpuinfo"]
    assert machine.ask("read /requests")["texts"] == {"/requests": None}
    before = machine.ask("cpu")
    machine.ask(f"wait {before['now_ns'] + 1_000_000_000}")
    after = machine.ask("cpu")
    idle = (after["idle_ns"] - before["idle_ns"]) / (after["now_ns"] - before["now_ns"])
    assert 0.99 < idle < 1
    machine.ask("read /proc/interrupts")
    assert machine.process.stdin is not None
    machine.process.stdin.write(b"2 poweroff\n")
    machine.process.stdin.flush()
    assert machine.process.wait(PATIENCE_S) == 0


def test_two_starts_are_the_same_to_the_nanosecond(start: Any) -> None:
    """A file asks the guests, so that no byte comes from outside."""
    asked = b"".join(b"%d %b\n" % (n, r) for n, r in enumerate([b"ping", b"cpu", b"read /proc/interrupts"]))
    machines = [start(*SEC, requests=asked) for _ in range(2)]
    first, second = ([m.greeting, *(m.answer() for _ in range(3))] for m in machines)
    assert first == second


def test_talitos_finds_the_sec_and_the_accelerator_test_drives_it(start: Any) -> None:
    """Both ways; at once is not slower; an unknown suite is refused."""
    machine = start(*SEC)
    crypto = machine.ask("read /proc/crypto")["texts"]["/proc/crypto"]
    assert "authenc-hmac-sha1-cbc-3des-talitos" in crypto
    figures = machine.ask("accel 3des-sha1 64 500")
    assert figures["ok"], figures
    assert "talitos" in figures["driver"]
    assert 0 < figures["at_once_ns"] < figures["after_ns"]
    # The SEC's own time for one, in ns, is a lower bound: 500 cycles for the descriptor alone.
    assert figures["at_once_ns"] > 500 * 500 * 1e9 / 266e6
    assert machine.ask("accel rot13 64 500")["errno"] == 22
    assert machine.ask("accel 3des-sha1 65 500")["errno"] == 22


def test_the_guest_drives_the_public_key_unit(start: Any) -> None:
    """It compares every result itself; the unit's cycles are between the two bounds; what it cannot do is refused."""
    machine = start(*SEC)
    figures = machine.ask("public_key unit rsa 512 3 2")
    assert figures["ok"], figures
    unit_ns = (figures["whole_ns"] - figures["overhead_ns"]) / 2
    assert abs(unit_ns - (14_289.5 - 31) / 266e6 * 1e9) < 500
    for request in ("unit rsa-crt 512 0 1", "software rsa-crt 512 0 1", "software rsa 512 512 1"):
        assert machine.ask(f"public_key {request}")["ok"], request
    for request in ("software ecdh 256 0 1", "software ecdsa-verify 384 0 1"):
        figures = machine.ask(f"public_key {request}")
        assert figures["ok"], (request, figures)
        assert (figures["overhead_ns"], figures["whole_ns"] > 0) == (0, True)
    assert machine.ask("public_key unit rsa 768 3 1")["errno"] == 22
    assert machine.ask("public_key unit ecdh 256 0 1")["errno"] == 95


def test_without_a_sec_there_is_no_public_key_unit(start: Any) -> None:
    """Software works, but its power has nothing to be compared with; ENODEV says so."""
    machine = start()
    assert machine.ask("public_key unit rsa 512 3 1")["errno"] == 19
    assert machine.ask("public_key software rsa-crt 512 0 1")["ok"]


def test_without_a_sec_the_ciphers_are_software(start: Any) -> None:
    """The same request, and another driver says so."""
    machine = start()
    figures = machine.ask("accel 3des-sha1 64 100")
    assert figures["ok"], figures
    assert "talitos" not in figures["driver"]


def test_a_guest_that_panics_ends_and_says_why(start: Any, built: Built, tmp_path: Path) -> None:
    """Its console has the reason: here an init that is none."""
    assert shutil.which("sh")
    with pytest.raises(AssertionError, match="Kernel panic"):
        start(append="rdinit=/proc")
