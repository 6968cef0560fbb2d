# SPDX-License-Identifier: Apache-2.0
"""An x86-64 guest: what its root holds, QEMU's command line, and how Debian's kernel is taken apart for it."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from espbench.errors import EspbenchError, UsageError
from espbench.platforms.base import HeldDaemon, PortName
from espbench.platforms.virtual import images
from espbench.platforms.virtual.parts import recipe, userland, x86_kernel
from espbench.platforms.virtual.parts.packages import parse_show
from espbench.platforms.virtual.parts.recipe import BinaryPackage
from espbench.platforms.virtual.virtual_guest import PANIC, Built, Guest, LinkEnd, Userland
from espbench.platforms.x86.own_daemon import OwnDaemon
from espbench.platforms.x86.own_kernel import debians
from espbench.platforms.x86.x86_gateway import X86Gateway
from espbench.platforms.x86.x86_guest import Machine, command, initramfs, libraries_of_host
from espbench.stacks.daemons.attack_packets import heard_esp
from espbench.stacks.strongswan.strongswan_config import strongswan_conf

MACHINE = Machine(256, Fraction(1), "Haswell-noTSX", 512, 256, 8000)
ELF = b"\x7fELF" + bytes(12)


def module(depends: str) -> bytes:
    """A module's file, as far as anybody looks into it here."""
    return ELF + b"license=GPL\0depends=" + depends.encode() + b"\0retpoline=Y\0"


def vmlinuz(payload: bytes) -> bytes:
    """A compressed kernel with two sectors of set-up and ten bytes before what it holds."""
    header = bytearray(3 * 512)
    header[0x1F1] = 2
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", header, 0x248, 10, len(payload))
    return bytes(header) + bytes(10) + payload + b"relocations"


def zstd(data: bytes) -> bytes:
    """Pack it as Debian's kernels are from 6.12 on: with the unpacked length behind."""
    if shutil.which("zstd") is None:
        pytest.skip("there is no program zstd")
    packed = subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout
    return packed + struct.pack("<I", len(data))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd, bytes])
def test_the_kernel_is_taken_out_of_its_vmlinuz(pack: Any) -> None:
    assert x86_kernel.kernel_of(vmlinuz(pack(ELF))) == ELF


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"MZ" + bytes(2000), "expected a Linux kernel for x86"),
        (vmlinuz(gzip.compress(b"no image")), "expected an ELF image"),
        (vmlinuz(lzma.compress(ELF)[:-20]), "cannot be unpacked: it ends too soon"),
        (vmlinuz(b"BZh9" + bytes(99)), "expected a kernel or module compressed by gzip or xz"),
    ],
)
def test_what_is_no_kernel_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(EspbenchError, match=words):
        x86_kernel.kernel_of(data)


def test_each_module_comes_after_those_it_needs(tmp_path: Path) -> None:
    """Compressed or not; one that is built in is left out, and each is there once."""
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    (kernel / "esp4.ko").write_bytes(module("xfrm-algo,built_in"))
    (kernel / "esp6.ko.xz").write_bytes(lzma.compress(module("xfrm_algo")))
    (kernel / "xfrm-algo.ko").write_bytes(module(""))
    (tmp_path / "modules.builtin").write_text("kernel/built-in.ko\n")
    modules = x86_kernel.modules(tmp_path, ["esp4", "esp6", "built-in"])
    assert list(modules) == ["xfrm_algo.ko", "esp4.ko", "esp6.ko"]
    assert modules["esp6.ko"] == module("xfrm_algo")


@pytest.mark.parametrize(
    ("folders", "taken"),
    [
        (("extra", "kernel/net"), "extra"),
        (("kernel/net", "weak"), "weak"),
        (("extra", "kernel/net", "updates/dkms"), "updates/dkms"),
    ],
)
def test_a_module_from_elsewhere_goes_before_the_kernels_own(
    tmp_path: Path, folders: tuple[str, ...], taken: str
) -> None:
    """They go in the order of depmod, although "extra" comes before "kernel" in the alphabet."""
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "esp4.ko").write_bytes(module("") + folder.encode())
    assert x86_kernel.modules(tmp_path, ["esp4"])["esp4.ko"].endswith(taken.encode())


def test_a_module_that_is_not_there_is_named_with_who_needs_it(tmp_path: Path) -> None:
    (tmp_path / "esp4.ko").write_bytes(module("xfrm_algo"))
    with pytest.raises(EspbenchError, match="expected the module xfrm_algo, which esp4 needs, there is none"):
        x86_kernel.modules(tmp_path, ["esp4"])


SHOWN = """\
Package: linux-image-6.1.0-9-amd64
Version: 6.1.27-1
SHA256: aa

Package: linux-image-6.1.0-9-cloud-amd64
Version: 6.1.27-1
SHA256: bb
"""


def test_what_apt_knows_of_a_package() -> None:
    """Versions of its series are its own; another flavour is none of them."""
    series = recipe.pinned_packages()["linux-amd64"].series
    pinned = BinaryPackage("linux-image-6.1.0-1-amd64", "6.1.4-1", series, "cc")
    assert parse_show(pinned, SHOWN) == [BinaryPackage("linux-image-6.1.0-9-amd64", "6.1.27-1", series, "aa")]


def test_all_packages_are_pinned_with_hashes() -> None:
    parts = (recipe.X86_GUEST, recipe.X86_KERNEL, recipe.X86_USERLAND, recipe.X86_QEMU)
    assert {name for part in parts for name in recipe.packages_of(part)} == set(recipe.pinned_packages())
    assert all(len(package.sha256) == 64 for package in recipe.pinned_packages().values())


def test_its_qemu_has_the_repairs_of_the_clock_and_its_own() -> None:
    """It lacks the repairs of the boards, so a change of those makes no other PC."""
    names = [patch.name for patch in recipe.x86_qemu_patches(recipe.folder())]
    assert [name for name in names if "-icount-" in name] == [
        "10-icount-idle.patch", "12-icount-rate.patch", "13-icount-speed.patch", "15-icount-profile.patch",
        "19-icount-notify.patch",
    ]  # fmt: skip
    assert "30-e1000e-rings.patch" in names
    assert not [name for name in names if "etsec" in name or "ppce500" in name]


TOLD = {
    "strongswan": {"programs": {"charon": "/usr/lib/ipsec/charon"}, "packages": {"strongswan-charon": "5.9"}}
}


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Parts of a guest, of a few bytes."""
    kernel = tmp_path / "kernel"
    kernel.mkdir()
    (kernel / "modules.txt").write_text("xfrm_algo.ko\ne1000e.ko\n")
    (kernel / "modules.cpio").write_bytes(b"MODULES.")
    (tmp_path / "initramfs.cpio").write_bytes(b"ROOT")
    folder = tmp_path / "userland"
    folder.mkdir()
    files = {"base.cpio": b"BASE", "strongswan.cpio": b"CHARON..", "daemons.json": json.dumps(TOLD).encode()}
    for name, data in files.items():
        (folder / name).write_bytes(data)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return Built(
        kernel / "vmlinux", tmp_path / "initramfs.cpio", tmp_path / "qemu", {}, Userland(folder, digests)
    )


def test_the_root_says_in_which_order_modules_are_loaded_and_how(built: Built) -> None:
    root = initramfs(built, MACHINE, debians(built))
    assert root.startswith(b"ROOTMODULES.070701")
    assert b"modules/order\0" in root
    assert b"?xfrm_algo.ko\n?e1000e.ko InterruptThrottleRate=8000,8000\n" in root


def test_a_stack_with_a_daemon_has_it_in_its_root_and_no_other_has(built: Built) -> None:
    with_daemon = replace(MACHINE, images=("base", "strongswan"))
    assert (
        initramfs(built, with_daemon, debians(built))
        == initramfs(built, MACHINE, debians(built)) + b"BASECHARON.."
    )
    assert images.held(built.userland, with_daemon.images)["strongswan"].packages == {
        "strongswan-charon": "5.9"
    }
    assert images.held(built.userland, MACHINE.images) == {}
    assert images.identified("x86-userland", built.userland, MACHINE.images) == {}
    charon = hashlib.sha256(b"CHARON..").hexdigest()[:16]
    said = images.identified("x86-userland", built.userland, with_daemon.images)
    assert said["x86-userland"].endswith(f"strongswan.cpio sha256 {charon}")


def test_a_daemon_of_the_users_takes_the_place_of_debians(built: Built) -> None:
    """The archive beneath it and the libraries of this machine are told; the daemon itself is told by its stack."""
    held = HeldDaemon({"charon": "/opt/charon"}, own_name="own build 0123")
    own = OwnDaemon("strongswan", b"MINE", held, "libgmp.so.10 sha256 0123")
    with_daemon = replace(MACHINE, images=("base", "strongswan"), own=(own,))
    assert initramfs(built, with_daemon, debians(built)).endswith(b"BASEMINE")
    assert images.held(built.userland, with_daemon.images, {"strongswan"}) == {}
    assert libraries_of_host(with_daemon) == {"libraries of this machine": own.libraries}
    assert libraries_of_host(MACHINE) == {}


def test_a_machine_without_room_for_its_root_is_one_message(built: Built) -> None:
    assert built.userland is not None
    (built.userland.folder / "strongswan.cpio").write_bytes(bytes(20 << 20))
    small = replace(MACHINE, memory_mb=128, images=("base", "strongswan"))
    with pytest.raises(
        UsageError, match=r"memory: expected at least 136M, for the kernel and for base and strongswan"
    ):
        initramfs(built, small, debians(built))
    initramfs(built, replace(small, memory_mb=136), debians(built))


def packages_unpacked(root: Path) -> None:
    """A program below usr/, a library below lib/ with the usual links, as dpkg-deb leaves them."""
    for path, text in (("usr/sbin/charon", "needs a.so.1"), ("lib/x86_64-linux-gnu/liba.so.1.2", "needs b.so.1"),
                       ("usr/lib/ipsec/b.so.1", "")):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "lib/x86_64-linux-gnu/a.so.1").symlink_to("liba.so.1.2")


def needs(file: Path) -> list[str]:
    return re.findall(r"needs (\S+)", file.read_text())


def test_a_program_brings_its_libraries_and_theirs_by_their_names(tmp_path: Path) -> None:
    packages_unpacked(tmp_path)
    files = userland.closure(tmp_path, ["usr/sbin/charon"], needs, set())
    assert set(files) == {"usr/sbin/charon", "usr/lib/x86_64-linux-gnu/a.so.1", "usr/lib/ipsec/b.so.1"}
    assert files["usr/lib/x86_64-linux-gnu/a.so.1"] == b"needs b.so.1"
    base = set(files) - {"usr/sbin/charon"}
    assert set(userland.closure(tmp_path, ["usr/sbin/charon"], needs, base)) == {"usr/sbin/charon"}


def test_a_library_that_no_package_has_is_named_with_who_needs_it(tmp_path: Path) -> None:
    packages_unpacked(tmp_path)
    (tmp_path / "usr/lib/ipsec/b.so.1").unlink()
    with pytest.raises(
        EspbenchError, match=r"expected b\.so\.1, for usr/lib/x86_64-linux-gnu/a\.so\.1, in the packages"
    ):
        userland.closure(tmp_path, ["usr/sbin/charon"], needs, set())


def test_the_userland_has_every_plugin_that_charon_is_told_to_load() -> None:
    files = userland.images()["strongswan"].files
    there = {Path(file).name.removeprefix("libstrongswan-").removesuffix(".so") for file in files}
    configuration = strongswan_conf(user_space=True)
    loaded = {name for line in re.findall(r"load = (.*)", configuration) for name in line.split()}
    assert loaded == there


def test_nothing_of_the_host_is_in_the_command_line(built: Built) -> None:
    """Time is counted in instructions, chance has a seed, the processor is a named one."""
    ends = [
        LinkEnd(Path("/dev/shm/w"), 1, "02:00:00:00:00:11"),
        LinkEnd(Path("/dev/shm/m"), 0, "02:00:00:00:00:12"),
    ]
    words = command(built, debians(built), Path("/r/root"), MACHINE, ends, 1, Path("/r/console"))
    text = " ".join(words)
    assert "-icount shift=0,sleep=off -seed 1 -rtc base=2026-01-01,clock=vm" in text
    assert words[words.index("-cpu") + 1].startswith("Haswell-noTSX,level=21,-")
    assert words[words.index("-smp") + 1] == "1"
    assert "e1000e,romfile=,netdev=port0,mac=02:00:00:00:00:11" in words
    assert "esplink,netdev=link1,path=/dev/shm/m,end=0" in words


class Answers:
    """A clock whose guest gives these answers."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = [{"id": number, "ok": True, **answer} for number, answer in enumerate(answers)]
        self.typed: list[str | None] = []
        self.awaited: list[str] = []
        self.silence = ""

    def console(self, port: PortName, line: str | None, until: str, timeout_s: float) -> list[str]:
        self.typed.append(line)
        self.awaited.append(until)
        if self.silence:
            raise EspbenchError(self.silence)
        return [json.dumps(self.answers.pop(0), separators=(",", ":"))]

    def branch(self, between_guests: object, seed: int = 0, *, anew: bool = False) -> None:
        raise AssertionError


def gateway(folder: Path, *answers: dict[str, Any], own_kernel: bool = False) -> tuple[X86Gateway, Answers]:
    process = cast(Any, type("Running", (), {"poll": lambda self: None})())
    guest = Guest("home", process, folder / "console", folder / "qemu.log")
    clock = Answers({}, *answers)
    made = X86Gateway("home", guest, folder / "notes", MACHINE, own_kernel=own_kernel)
    made.started_by(clock)
    return made, clock


def test_both_ports_get_the_rings_of_the_profile(tmp_path: Path) -> None:
    rings = {"receive": 512, "transmit": 256}
    home, clock = gateway(tmp_path, rings, rings)
    home.set_up_ports()
    assert clock.typed[1:] == ["1 rings eth0 512 256", "2 rings eth1 512 256"]


def test_a_driver_with_other_rings_is_not_believed(tmp_path: Path) -> None:
    home, _ = gateway(tmp_path, {"receive": 256, "transmit": 256})
    with pytest.raises(EspbenchError, match=r"rings of eth0: expected .*512.* frames, its driver has .*256"):
        home.set_up_ports()


def test_a_power_cycle_ends_with_the_greeting_of_the_next_boot(tmp_path: Path) -> None:
    home, clock = gateway(tmp_path, {})
    clock.answers[0]["id"] = 0
    home.power_cycle()
    assert (clock.typed[1:], clock.awaited[1:]) == (["1 power_cycle"], ['{"id":0,'])


def test_a_guest_that_does_not_boot_again_is_one_message(tmp_path: Path) -> None:
    home, clock = gateway(tmp_path)
    clock.silence = "no line that begins with that within 30 s of virtual time; the console: 1 power_cycle"
    with pytest.raises(EspbenchError, match=r"^gateway home: it did not boot again: no line that begins"):
        home.power_cycle()


def test_a_guest_that_panics_when_it_boots_again_has_its_last_words_told(tmp_path: Path) -> None:
    home, clock = gateway(tmp_path)
    clock.silence = "the process at the other end died"
    (tmp_path / "console").write_text(f"{PANIC} - not syncing: no init")
    with pytest.raises(EspbenchError, match=r"(?s)^gateway home died; its last words:.*no init"):
        home.power_cycle()


def test_what_a_guest_hears_is_esp_for_an_attacker(tmp_path: Path) -> None:
    home, clock = gateway(tmp_path, {"packets": ["4500", "4501"]}, {"packets": []})
    assert heard_esp(home, 9000, 1.5) == [b"\x45\x00", b"\x45\x01"]
    assert clock.typed[1:] == ["1 hear eth1 256 1500000000"]
    with pytest.raises(EspbenchError, match="home: no ESP could be heard on eth1: nothing came"):
        heard_esp(home, 9, 1.5)


NO_SUCH_DEVICE = {"ok": False, "error": "interface eth0: No such device", "errno": 19}


@pytest.mark.parametrize(
    ("own_kernel", "answers", "words"),
    [
        (True, [NO_SUCH_DEVICE, {"links": {}}], r"gateway home: expected eth0 and eth1, .*CONFIG_E1000E"),
        (
            False,
            [NO_SUCH_DEVICE],
            "`ip link set eth0 up` failed: gateway home: interface eth0: No such device",
        ),
    ],
)
def test_a_kernel_that_found_no_ports_is_one_message(
    tmp_path: Path, own_kernel: bool, answers: list[dict[str, Any]], words: str
) -> None:
    """The message advises on an own kernel. Links are asked for after a failure only: requests take time."""
    home, _ = gateway(tmp_path, *answers, own_kernel=own_kernel)
    with pytest.raises(EspbenchError, match=words):
        home.ip(["link set eth0 up"])
