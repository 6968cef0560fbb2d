# SPDX-License-Identifier: Apache-2.0
"""The user's own kernel and modules in an x86-64 guest: what is taken of them and sent, each fault as one message."""

from __future__ import annotations

import gzip
import re
import struct
from fractions import Fraction
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.paths import data_dir
from espbench.plan import conditions, load_profile, resolve
from espbench.plan.duts.profiles import Profile
from espbench.plan.reading.reader import read_text
from espbench.platforms.base import Placement
from espbench.platforms.virtual.own import additions, own_files
from espbench.platforms.virtual.own.additions import Own
from espbench.platforms.virtual.parts import recipe
from espbench.platforms.virtual.parts.cpio import Entry, archive
from espbench.platforms.virtual.virtual_guest import Built, LinkEnd
from espbench.platforms.x86.own_kernel import Kernel, debians, files_of, read
from espbench.platforms.x86.x86_guest import Machine, command, initramfs
from espbench.runs.workers.messages import RunFacts
from espbench.runs.workers.worker import _as_here
from support.plans import plan_text

OURS = "6.9.0-mine"
MACHINE = Machine(256, Fraction(1), "Haswell-noTSX", 256, 256, 8000)


def elf(release: str = OURS, *, note: int = 18, more: bytes = b"") -> bytes:
    """A kernel's image as far as anybody looks into it: a program header with a note of Xen's, and its version."""
    name = struct.pack("<III", 4, 8, note) + b"Xen\0" + bytes(8)
    head = bytearray(64)
    head[:4] = b"\x7fELF"
    struct.pack_into("<Q", head, 32, 64)
    struct.pack_into("<HH", head, 54, 56, 1)
    table = struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(name), len(name), 4)
    return bytes(head) + table + name + f"Linux version {release} (me@here) #1\n".encode() + more


def bzimage(image: bytes) -> bytes:
    """The image as a bzImage holds it."""
    payload = gzip.compress(image)
    header = bytearray(3 * 512)
    header[0x1F1] = 2
    header[0x202:0x206] = b"HdrS"
    struct.pack_into("<II", header, 0x248, 0, len(payload))
    return bytes(header) + payload


def module(depends: str = "", release: str = OURS) -> bytes:
    """A module's file in the same way."""
    said = f"\0license=GPL\0depends={depends}\0vermagic={release} SMP mod_unload \0"
    return b"\x7fELF" + bytes(12) + said.encode()


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Return what would be built with Debian's kernel: a kernel of OURS with two modules."""
    folder = tmp_path / "debian"
    folder.mkdir()
    (folder / "vmlinux").write_bytes(elf())
    (folder / "modules.txt").write_text("xfrm_algo.ko\ne1000e.ko\nesp4.ko\n")
    files = {"xfrm_algo.ko": module(), "e1000e.ko": module(), "esp4.ko": module("xfrm-algo")}
    (folder / "modules.cpio").write_bytes(additions.archived(files))
    (tmp_path / "initramfs.cpio").write_bytes(b"ROOT")
    return Built(folder / "vmlinux", tmp_path / "initramfs.cpio", tmp_path / "qemu", {})


def release(folder: Path, *modules: str, builtin: str = "kernel/xfrm_user.ko\n") -> Path:
    """A release's folder with these modules, each of nothing but itself."""
    (folder / "kernel").mkdir(parents=True)
    for name in modules:
        (folder / "kernel" / f"{name}.ko").write_bytes(module())
    (folder / "modules.builtin").write_text(builtin)
    return folder


def kernel(folder: Path, data: bytes) -> Path:
    (folder / "bzImage").write_bytes(data)
    return folder / "bzImage"


def test_without_any_it_is_debians_to_the_byte(built: Built) -> None:
    assert read(Own(), built) == debians(built)
    assert debians(built).facts == {}


def test_the_users_kernel_is_unpacked_and_told(built: Built, tmp_path: Path) -> None:
    modules = release(tmp_path / "lib", "e1000e", "esp4", "something-else")
    own = read(Own(kernel(tmp_path, bzimage(elf())), modules), built)
    assert (own.image, own.data) == (None, elf())
    assert own.order == ("e1000e.ko", "esp4.ko")
    assert b"something" not in own.modules
    assert re.fullmatch(rf"{OURS}, bzImage sha256 [0-9a-f]{{16}}", own.facts["kernel"])
    assert "esp4.ko sha256" in own.facts["modules"]
    configured = read(Own(kernel(tmp_path, bzimage(elf(more=b"IKCFG_STxxIKCFG_ED"))), modules), built)
    assert configured.facts["configuration of the kernel"].startswith("sha256 ")


def test_modules_that_were_installed_beside_its_own_are_loaded_too(built: Built, tmp_path: Path) -> None:
    modules = release(tmp_path / "lib", "e1000e", "esp4")
    (modules / "updates").mkdir()
    (modules / "updates" / "spin.ko").write_bytes(module())
    assert read(Own(kernel(tmp_path, bzimage(elf())), modules), built).order[-1] == "spin.ko"


def test_a_module_of_the_users_comes_after_debians_or_in_the_place_of_one(
    built: Built, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("spin", "esp4"):
        (mine / f"{name}.ko").write_bytes(module("xfrm-algo"))
    own = read(Own(modules=mine), built)
    assert own.image == built.kernel
    assert own.order == ("xfrm_algo.ko", "e1000e.ko", "esp4.ko", "spin.ko")
    assert own.modules == debians(built).modules + additions.archived(
        {name: module("xfrm-algo") for name in ("esp4.ko", "spin.ko")}
    )
    alone = read(Own(modules=mine / "spin.ko"), built)
    assert alone.order[-1] == "spin.ko"
    assert re.fullmatch(r"spin\.ko sha256 [0-9a-f]{16}", alone.facts["modules"])


def test_modules_of_the_users_come_after_those_of_them_that_they_need(built: Built, tmp_path: Path) -> None:
    """Also one in the place of Debian's, whose turn would be earlier."""
    mine = tmp_path / "mine"
    mine.mkdir()
    for name, needs in {"a": "b,xfrm-algo", "b": "", "esp4": "z-core", "z-core": "e1000e"}.items():
        (mine / f"{name}.ko").write_bytes(module(needs))
    order = read(Own(modules=mine), built).order
    assert order == ("xfrm_algo.ko", "e1000e.ko", "z_core.ko", "esp4.ko", "b.ko", "a.ko")


def test_only_modules_that_espbench_chose_need_not_find_anything_to_drive(
    built: Built, tmp_path: Path
) -> None:
    """A module of the user's that the kernel refuses is not under test, so the guest must not go on without it."""
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("spin", "esp4"):
        (mine / f"{name}.ko").write_bytes(module())
    root = initramfs(built, MACHINE, read(Own(modules=mine), built))
    assert b"?xfrm_algo.ko\n?e1000e.ko InterruptThrottleRate=8000,8000\nesp4.ko\nspin.ko\n" in root
    modules = release(tmp_path / "lib", "e1000e", "esp4")
    (modules / "updates").mkdir()
    (modules / "updates" / "a-spin.ko").write_bytes(module())
    own = read(Own(kernel(tmp_path, bzimage(elf())), modules), built)
    assert b"?e1000e.ko InterruptThrottleRate=8000,8000\n?esp4.ko\na_spin.ko\n" in initramfs(
        built, MACHINE, own
    )


def test_an_overlay_is_the_last_that_a_guest_unpacks(built: Built, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.cpio"
    overlay.write_bytes(archive([Entry.file("first", b"mine", mode=0o755)]))
    own = read(Own(overlay=overlay), built)
    assert own.facts.keys() == {"overlay"}
    assert initramfs(built, MACHINE, own).endswith(overlay.read_bytes())
    assert initramfs(built, MACHINE, debians(built)) == initramfs(built, MACHINE, own)[: -len(own.overlay)]


def test_the_kernel_that_is_told_is_the_one_that_boots(built: Built) -> None:
    """A driver that is built in gets its settings from the kernel's command line."""
    ends = [LinkEnd(Path("/dev/shm/w"), 1, "02:00:00:00:00:11")]
    own = Kernel(Path("/b/vmlinux-0"), order=("esp4.ko",))
    words = command(built, own, Path("/r"), MACHINE, ends, 1, Path("/c"))
    assert words[words.index("-kernel") + 1] == "/b/vmlinux-0"
    assert "e1000e.InterruptThrottleRate=8000,8000" in words[words.index("-append") + 1].split()
    usual = command(built, debians(built), Path("/r"), MACHINE, ends, 1, Path("/c"))
    assert "InterruptThrottleRate" not in usual[usual.index("-append") + 1]
    assert b"modules/order" not in initramfs(built, MACHINE, Kernel(Path("/b")))


def refused(own: Own, built: Built, words: str) -> None:
    with pytest.raises(UsageError) as error:
        read(own, built)
    text = str(error.value)
    assert re.search(words, text, re.DOTALL), text
    assert "what to do:" in text


def test_what_is_no_kernel_that_could_boot_is_one_message(built: Built, tmp_path: Path) -> None:
    modules = release(tmp_path / "lib", "e1000e", "esp4")
    for data, words in (
        (b"#!/bin/sh\n", "kernel: .*bzImage.*expected: a bzImage .*got: .*without its header"),
        (b"MZ" + bytes(5000), "expected: a bzImage"),
        (bzimage(b"no image"), "expected: a bzImage"),
        (bzimage(elf())[:-20], "expected: a bzImage"),
        (bzimage(elf(note=1)), rf"CONFIG_PVH=y.*got: {OURS} without it"),
        (bzimage(elf().replace(b"Linux version", b"Other version")), "a Linux kernel that tells its version"),
    ):
        refused(Own(kernel(tmp_path, data), modules), built, words)
    refused(Own(tmp_path / "nothing", modules), built, "nothing.*a file that can be read.*No such file")


def test_a_kernel_without_the_ports_driver_or_without_esp_is_one_message(
    built: Built, tmp_path: Path
) -> None:
    good = kernel(tmp_path, bzimage(elf()))
    refused(Own(good), built, r"the driver of its network ports \(CONFIG_E1000E\) built in, or modules:")
    refused(Own(good, release(tmp_path / "a", "esp4")), built, "CONFIG_E1000E.*e1000e, as a module")
    refused(Own(good, release(tmp_path / "b", "e1000e")), built, r"ESP \(CONFIG_INET_ESP\): esp4")
    refused(Own(good, release(tmp_path / "c", "e1000e", "esp4", builtin="")), built, "CONFIG_XFRM_USER")
    refused(Own(good, tmp_path / "nowhere"), built, rf"the folder of the modules of {OURS}")


ALL_BUILT_IN = {
    "CONFIG_E1000E": b"\0e1000e.InterruptThrottleRate\0",
    "CONFIG_INET_ESP": b"\0esp4_init\0",
    "CONFIG_XFRM_USER": b"\x016Initializing XFRM netlink socket\n\0",
}


def test_a_kernel_without_modules_has_all_built_in(built: Built, tmp_path: Path) -> None:
    whole = kernel(tmp_path, bzimage(elf(more=b"".join(ALL_BUILT_IN.values()))))
    assert read(Own(whole), built).order == ()
    for missing in ALL_BUILT_IN:
        texts = b"".join(text for option, text in ALL_BUILT_IN.items() if option != missing)
        lacking = kernel(tmp_path, bzimage(elf(more=texts)))
        refused(
            Own(lacking), built, rf"kernel: .*\({missing}\) built in, or modules:.*got: {OURS} with neither"
        )


def test_a_module_of_another_kernel_is_one_message(built: Built, tmp_path: Path) -> None:
    other = tmp_path / "spin.ko"
    other.write_bytes(module(release="6.1.0-1-amd64"))
    refused(Own(modules=other), built, rf"spin\.ko.*a module of the kernel {OURS}.*one of 6\.1\.0-1-amd64")
    other.write_bytes(b"\x7fELF no module")
    refused(Own(modules=other), built, "a file that names no version of it")
    other.write_bytes(module("nf_tables"))
    refused(Own(modules=other), built, r"spin\.ko, which needs nf_tables")
    (tmp_path / "empty").mkdir()
    refused(Own(modules=tmp_path / "empty"), built, r"expected: a module .*got: none")
    modules = release(tmp_path / "lib", "e1000e")
    (modules / "kernel" / "esp4.ko").write_bytes(module(release="6.9.1-mine"))
    refused(Own(kernel(tmp_path, bzimage(elf())), modules), built, "esp4.*got: one of 6.9.1-mine")


def profile(folder: Path, more: str) -> Profile:
    text = (data_dir("dut-profiles") / "virt-x86.yaml").read_text()
    (folder / "mine.yaml").write_text(
        re.sub("^name: .*", f"name: mine\n{more}", text, count=1, flags=re.MULTILINE)
    )
    return load_profile(str(folder / "mine.yaml"))


def test_a_profile_names_them_beside_itself(tmp_path: Path) -> None:
    """A base of the gate takes these files for what is under test."""
    plan = resolve(read_text(plan_text(dut="virt-x86"), "plan.yaml", "plan"))
    usual = conditions(plan, [load_profile("virt-x86")])["profiles"]["virt-x86"]
    assert usual["kernel"] == "Debian's"
    assert "modules" not in usual
    assert load_profile("virt-x86").own_kernel is None
    own = conditions(plan, [profile(tmp_path, "kernel: bzImage\nmodules: {home: a.ko, office: lib/b.ko}")])
    assert own["profiles"]["mine"]["kernel"] == dict.fromkeys(("home", "office"), str(tmp_path / "bzImage"))
    assert own["profiles"]["mine"]["modules"]["office"] == str(tmp_path / "lib/b.ko")


def owns(folder: Path) -> dict[str, Own]:
    """Return the ways in which a profile names a kernel, modules, or both."""
    of_kernel = release(folder / "lib", "e1000e", "esp4", "something-else")
    (of_kernel / "updates").mkdir()
    for name in ("spin", "a-first"):
        (of_kernel / "updates" / f"{name}.ko").write_bytes(module())
    mine = folder / "mine"
    mine.mkdir()
    for name in ("spin", "esp4"):
        (mine / f"{name}.ko").write_bytes(module("xfrm-algo"))
    image = kernel(folder, bzimage(elf()))
    return {
        "kernel and modules": Own(image, of_kernel),
        "kernel": Own(
            kernel(mine, bzimage(elf(more=b"\0e1000e\0esp4_init\0Initializing XFRM netlink socket")))
        ),
        "module": Own(modules=mine / "spin.ko"),
        "folder of modules": Own(modules=mine),
    }


@pytest.mark.parametrize("which", ["kernel and modules", "kernel", "module", "folder of modules"])
def test_another_machine_boots_the_same_from_its_copies(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """The guest gets the same bytes, the records name the same files; a second time, nothing changes."""
    own = owns(tmp_path)[which]
    here = read(own, built)
    sent = files_of(own)
    for path in (own.kernel, own.modules):
        if path is not None:
            path.rename(path.with_name(f"gone-{path.name}"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [own_files.take(each) for each in (*sent, *sent)] == [""] * 2 * len(sent)
    copies = {each.path: recipe.store() / each.place for each in sent}
    there = Own(*(copies[str(path)] if path else None for path in (own.kernel, own.modules)))
    assert read(there, built) == here
    assert sorted(path.name for path in recipe.store().iterdir()) == sorted({each.folder for each in sent})


def test_only_the_modules_that_a_gateway_loads_are_sent(tmp_path: Path) -> None:
    """A release's folder has hundreds of megabytes."""
    _, modules = files_of(owns(tmp_path)["kernel and modules"])
    names = ("extra/a_first.ko", "extra/spin.ko", "kernel/e1000e.ko", "kernel/esp4.ko", "modules.builtin")
    assert sorted(modules.digests) == [f"lib/{name}" for name in names]


def test_a_copy_that_was_changed_is_not_booted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither with other content nor with a file more, which a guest would load."""
    (sent,) = files_of(owns(tmp_path)["folder of modules"])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert own_files.take(sent) == ""
    more = recipe.store() / sent.place / "more.ko"
    more.write_bytes(module())
    assert "expected nothing but what was sent, got mine/more.ko" in own_files.take(sent)
    more.unlink()
    assert own_files.take(sent) == ""
    (recipe.store() / sent.place / "spin.ko").write_bytes(module(release="6.9.1"))
    assert "mine/spin.ko: expected SHA-256" in own_files.take(sent)


def test_a_worker_takes_the_copies_of_what_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths that were not sent stay: they are on every machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    given = profile(tmp_path, "kernel: {home: a/bzImage, office: b/bzImage}\nmodules: lib\n")
    resolved = resolve(read_text(plan_text(), "plan.yaml", "plan"))
    sent = {str(tmp_path / "a/bzImage"): "own-1/bzImage", str(tmp_path / "lib"): "own-2/lib"}
    facts = RunFacts(resolved, (("a", given), ("b", None)), (), Placement({}, ""), copies=sent)
    (_, here), (_, none) = _as_here(facts)
    assert none is None
    assert here is not None
    assert here.own_kernel is not None
    assert here.modules is not None
    assert here.own_kernel.home == str(recipe.store() / "own-1/bzImage")
    assert here.own_kernel.office == str(tmp_path / "b/bzImage")
    assert here.modules.home == here.modules.office == str(recipe.store() / "own-2/lib")
