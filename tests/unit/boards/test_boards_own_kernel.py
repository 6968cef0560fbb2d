# SPDX-License-Identifier: Apache-2.0
"""The user's own kernel, modules and overlay on an emulated board: what is asked of them, each fault as one message."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.paths import data_dir
from espbench.plan import conditions, load_profile, resolve
from espbench.plan.duts.profiles import PerGateway
from espbench.plan.reading.reader import read_text
from espbench.platforms.e500.own_kernel import files_of, identified, read
from espbench.platforms.virtual.own import additions, own_files
from espbench.platforms.virtual.own.additions import Own
from espbench.platforms.virtual.parts import recipe
from espbench.platforms.virtual.parts.cpio import Entry, archive, entries
from espbench.runs.platform_kinds.boards import Boards
from espbench.runs.platform_kinds.lone_boards import LoneBoards
from support.plans import kernels_text, plan_text

HEAD = b"\x7fELF\x01\x02" + bytes(12) + b"\x00\x14"
BANNER = b"Linux version 6.6.1-mine (me@here) #1\0"
NAMES = b"espbench_idle\0espbench_crypto\0fsl-gianfar\0"


def kernel(folder: Path, data: bytes) -> Path:
    (folder / "vmlinux").write_bytes(data)
    return folder / "vmlinux"


def test_a_kernel_is_identified_by_version_and_digest(tmp_path: Path) -> None:
    said = identified(kernel(tmp_path, HEAD + BANNER + NAMES))
    assert re.fullmatch(r"6\.6\.1-mine, vmlinux sha256 [0-9a-f]{16}", said)
    assert identified(kernel(tmp_path, HEAD + BANNER + NAMES + b"more")) != said


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"MZ", "expected: a vmlinux for a 32-bit PowerPC"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\x00" + BANNER, "expected: a vmlinux for a 32-bit PowerPC"),
        (HEAD + NAMES, "got: none in it"),
        (
            HEAD + BANNER + b"espbench_crypto\0fsl-gianfar\0",
            r"kernel/idle\.c\)\n  got: 6\.6\.1-mine without it",
        ),
        (
            HEAD + BANNER + b"espbench_idle\0fsl-gianfar\0",
            r"kernel/crypto\.c\)\n  got: 6\.6\.1-mine without it",
        ),
        (HEAD + BANNER + b"espbench_idle\0espbench_crypto\0", "CONFIG_GIANFAR"),
    ],
)
def test_what_no_board_can_boot_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words) as error:
        identified(kernel(tmp_path, data))
    assert "build it as docs/powerquicc.md shows, or remove kernel:" in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected: a file that can be read"):
        identified(tmp_path / "vmlinux")


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "a\0b"])
def test_a_file_that_never_ends_or_cannot_exist_is_not_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        UsageError, match=r"expected: a file that can be read\n  got: (not a regular file|no path)"
    ):
        additions.content(tmp_path / name, "kernel")


def test_a_profile_names_it_and_the_conditions_say_so(tmp_path: Path) -> None:
    """Its path starts at the profile; without it the conditions are those of earlier runs."""
    text = (data_dir("dut-profiles") / "mpc8548e.yaml").read_text()
    own = tmp_path / "mine.yaml"
    own.write_text(
        text.replace("name: mpc8548e", "name: mine\nkernel: {home: a/vmlinux, office: vmlinux}", 1)
    )
    profile = load_profile(str(own))
    assert profile.own_kernel is not None
    assert (profile.own_kernel.home, profile.own_kernel.office) == (
        str(tmp_path / "a/vmlinux"), str(tmp_path / "vmlinux"),
    )  # fmt: skip
    plan = resolve(read_text(plan_text(dut="mpc8548e", suites="[aes128-sha1]"), "plan.yaml", "plan"))
    profiles = conditions(plan, [profile, load_profile("mpc8548e")])["profiles"]
    assert profiles["mine"]["kernel"]["home"] == str(tmp_path / "a/vmlinux")
    assert profiles["mpc8548e"]["kernel"] == "espbench's own"


def test_workers_on_other_machines_get_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both boards name it, so it is sent once; the copy is identified as the original is."""
    data = HEAD + BANNER + NAMES
    mine = kernel(tmp_path, data)
    document = read_text(plan_text(dut="mpc8548e"), "plan.yaml", "plan")
    profile = load_profile("mpc8548e").model_copy(
        update={"kernel": PerGateway(home=str(mine), office=str(mine))}
    )
    (sent,) = Boards(resolve(document), profile).own_files()
    assert Boards(resolve(document), load_profile("mpc8548e")).own_files() == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert own_files.take(sent) == ""
    assert sent.path == str(mine)
    assert identified(recipe.store() / sent.place) == identified(mine)


LOADS = b"version magic '%s' should be '%s'\0"


def module(depends: str = "", release: str = "6.6.1-mine") -> bytes:
    return b"\x7fELF" + bytes(12) + f"\0depends={depends}\0vermagic={release} mod_unload \0".encode()


@pytest.fixture
def own(tmp_path: Path) -> Own:
    """Return a kernel, two modules of which the first needs the second, and an overlay."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "esp.ko").write_bytes(module("ocf-core"))
    (modules / "ocf-core.ko").write_bytes(module())
    overlay = tmp_path / "overlay.cpio"
    overlay.write_bytes(archive([Entry.file("first", b"#!/bin/sh", mode=0o755)]))
    return Own(kernel(tmp_path, HEAD + BANNER + NAMES + LOADS), modules, overlay)


def test_modules_are_loaded_after_those_they_need_and_the_overlay_is_last(own: Own) -> None:
    added = read(own)
    first, rest = added.root.split(b"TRAILER!!!", 1)
    assert first.index(b"modules/ocf_core.ko\0") < first.index(b"modules/esp.ko\0")
    assert b"ocf_core.ko\nesp.ko\n" in rest
    assert rest.index(b"modules/order\0") < rest.index(b"first\0")
    assert re.fullmatch(
        r"ocf_core\.ko sha256 [0-9a-f]{16}, esp\.ko sha256 [0-9a-f]{16}", added.facts["modules"]
    )
    assert re.fullmatch(r"overlay\.cpio sha256 [0-9a-f]{16}", added.facts["overlay"])
    assert read(Own()).root == b""
    assert read(Own()).facts == {}


def test_a_compressed_overlay_is_the_same(own: Own, tmp_path: Path) -> None:
    assert own.overlay is not None
    (tmp_path / "small").mkdir()
    small = tmp_path / "small" / "overlay.cpio"
    small.write_bytes(gzip.compress(own.overlay.read_bytes()))
    assert read(Own(overlay=small)) == read(Own(overlay=own.overlay))
    assert [entry.path for entry in entries(read(Own(overlay=small)).root)] == ["first"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"PK", "got: a file of another kind"),
        (b"\x1f\x8b\x08", "got: a gzip file that is damaged"),
        (archive([Entry.file("first", b"x" * 100)])[:150], "got: an archive that is damaged, or ends early"),
    ],
)
def test_what_no_kernel_can_unpack_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "overlay").write_bytes(data)
    with pytest.raises(UsageError, match=words) as error:
        read(Own(overlay=tmp_path / "overlay"))
    assert "expected: a cpio archive (find . | cpio --create --format=newc)" in str(error.value)


def test_a_module_that_the_board_cannot_load_is_one_message(own: Own, tmp_path: Path) -> None:
    assert own.modules is not None
    for changed, words in (
        (Own(modules=own.modules), "expected: a kernel: beside it that can load modules"),
        (
            Own(kernel(tmp_path, HEAD + BANNER + NAMES), own.modules),
            r"\(CONFIG_MODULES\)\n  got: 6\.6\.1-mine",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            read(changed)
    able = kernel(tmp_path, HEAD + BANNER + NAMES + LOADS)
    (own.modules / "ocf-core.ko").write_bytes(module(release="6.1.0"))
    with pytest.raises(UsageError, match=r"a module of the kernel 6\.6\.1-mine\n  got: one of 6\.1\.0"):
        read(Own(able, own.modules))
    (own.modules / "ocf-core.ko").unlink()
    with pytest.raises(UsageError, match=r"got: esp\.ko, which needs ocf_core"):
        read(Own(able, own.modules))
    (own.modules / "esp.ko").unlink()
    with pytest.raises(UsageError, match="or a folder of some\n  got: none"):
        read(Own(able, own.modules))


def test_another_machine_boots_the_same_from_its_copies(
    own: Own, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = read(own)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sent = files_of(own)
    assert [own_files.take(each) for each in sent] == [""] * 3
    assert read(Own(*(recipe.store() / each.place for each in sent))) == here


def test_a_profile_names_modules_and_an_overlay(tmp_path: Path) -> None:
    """They are conditions; a profile without them has those of earlier runs."""
    text = (data_dir("dut-profiles") / "mpc8548e.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(
        text.replace(
            "name: mpc8548e", "name: mine\nkernel: k\nmodules: m\noverlay: {home: a.cpio, office: b.cpio}", 1
        )
    )
    plan = resolve(read_text(plan_text(dut="mpc8548e", suites="[aes128-sha1]"), "plan.yaml", "plan"))
    given = [load_profile(str(tmp_path / "mine.yaml")), load_profile("mpc8548e")]
    profiles = conditions(plan, given)["profiles"]
    assert profiles["mine"]["overlay"] == {
        "home": str(tmp_path / "a.cpio"), "office": str(tmp_path / "b.cpio"),
    }  # fmt: skip
    assert profiles["mine"]["modules"]["home"] == str(tmp_path / "m")
    assert not {"modules", "overlay"} & profiles["mpc8548e"].keys()


@pytest.mark.parametrize("key", ["modules", "overlay"])
def test_a_board_that_runs_ciphers_alone_takes_no_files_that_it_would_not_use(key: str) -> None:
    resolved = resolve(read_text(kernels_text(), "plan.yaml", "plan"))
    profile = load_profile("mpc8548e").model_copy(update={key: PerGateway(home="/a", office="/a")})
    with pytest.raises(UsageError, match=f"{key}: expected none for a board that runs cipher kernels alone"):
        LoneBoards(resolved, profile).require(lambda _: None)
