# SPDX-License-Identifier: Apache-2.0
"""The parts of x86-64 guests depend on Debian's pinned packages, and not on the machine that builds them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from espbench.cli import doctor
from espbench.platforms.virtual.parts import guest, recipe
from espbench.platforms.virtual.parts.kits import E500_KIT, X86_KIT
from espbench.platforms.virtual.parts.tools import Runner
from espbench.platforms.virtual.virtual_guest import Built, emulator_of, parts_of
from support.command_line import in_process


class Programs:
    """Notes the programs that are run; each makes what it would write."""

    def __init__(self) -> None:
        self.commands: list[Sequence[str]] = []

    def run(self, argv: Sequence[str], folder: Path, what: str, **_: object) -> str:
        self.commands.append(argv)
        if "-o" in argv:
            Path(argv[argv.index("-o") + 1]).write_bytes(b"made")
        return ""


@pytest.fixture
def commands(tmp_path: Path) -> list[Sequence[str]]:
    """The commands that build the initramfs below tmp_path."""
    programs = Programs()
    guest.build_x86(tmp_path, cast(Runner, programs))
    return programs.commands


def test_no_program_of_this_machine_compiles_the_init(commands: list[Sequence[str]], tmp_path: Path) -> None:
    """It unpacks the pinned packages; all others come from them, with their own loader and libraries."""
    unpacking = [argv for argv in commands if argv[0] == "dpkg-deb"]
    names = {Path(argv[2]).name.partition("_")[0] for argv in unpacking}
    assert {"cpp-12", "binutils-x86-64-linux-gnu", "libc6-dev", "libc6", "libgcc-12-dev"} <= names
    root = tmp_path / "compiler"
    others = [argv for argv in commands if argv not in unpacking]
    assert {Path(argv[3]).name for argv in others} == {
        "cc1",
        "x86_64-linux-gnu-as",
        "x86_64-linux-gnu-ld.bfd",
    }
    for argv in others:
        loader, option, libraries, program = argv[:4]
        assert option == "--library-path"
        assert all(Path(path).is_relative_to(root) for path in (loader, program, *libraries.split(":")))


def test_no_header_or_library_of_this_machine_is_in_the_init(
    commands: list[Sequence[str]], tmp_path: Path
) -> None:
    ours = recipe.folder() / "init"
    for argv in (argv for argv in commands if argv[0] != "dpkg-deb"):
        paths = [
            Path(word.removeprefix("-L")) for word in argv[4:] if word.removeprefix("-L").startswith("/")
        ]
        assert all(path.is_relative_to(tmp_path) or path.is_relative_to(ours) for path in paths)
        assert ("-nostdinc" in argv) == argv[3].endswith("cc1")


def test_every_file_of_the_init_is_in_it(commands: list[Sequence[str]]) -> None:
    compiled = {Path(word).name for argv in commands for word in argv if word.endswith(".c")}
    assert compiled == {file.name for file in recipe.X86_GUEST.files(recipe.folder()) if file.suffix == ".c"}
    (linking,) = (argv for argv in commands if argv[3].endswith("ld.bfd"))
    assert len([word for word in linking if re.fullmatch(r"\d+\.o", Path(word).name)]) == len(compiled)


def test_another_compiler_is_another_key() -> None:
    """So every machine makes the init again."""
    named = recipe.inputs(recipe.X86_GUEST)
    for what, package in recipe.pinned_packages().items():
        if package.group == recipe.X86_GUEST.group or what in recipe.X86_GUEST.packages:
            assert named[package.file] == package.sha256


def built(qemu: str, patch: str = "04") -> Built:
    """Parts as they are found in the cache: QEMU's program has this digest, its patch that one."""
    products = {
        X86_KIT.guest: {"initramfs.cpio": "02" * 32},
        X86_KIT.kernel: {"vmlinux": "03" * 32},
        X86_KIT.qemu: {"qemu-system-x86_64": qemu * 32, "pvh.bin": "03" * 32},
    }
    parts: dict[str, tuple[Path, dict[str, Any]]] = {
        part.name: (Path(part.name), {"inputs": {"a.patch": patch}, "products": digests})
        for part, digests in products.items()
    }
    return replace(X86_KIT, userland=None).found(parts)


def test_the_same_qemu_by_another_compiler_is_the_same_instrument() -> None:
    """Its digest is recorded; its sources, patches and options are what figures depend on."""
    one, other = built("0a"), built("0b")
    assert parts_of(one) == parts_of(other)
    assert (emulator_of(one), emulator_of(other)) == (
        {X86_KIT.program: "sha256 " + "0a" * 8},
        {X86_KIT.program: "sha256 " + "0b" * 8},
    )
    assert parts_of(built("0a", patch="05")) != parts_of(one)
    assert parts_of(one)["x86-guest"] == "initramfs.cpio sha256 " + "02" * 8
    assert "pvh.bin sha256 " + "03" * 8 in parts_of(one)["x86-qemu"]


@pytest.fixture
def arm64(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The cache of a machine whose processor is another."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    return tmp_path


def test_another_processor_is_refused_with_one_message(arm64: Path) -> None:
    """Exit code 4, before anything is fetched; no command is named that cannot work."""
    done = in_process("build", "x86")
    assert done.returncode == 4
    assert (
        "the x86 guests are made by Debian's programs for x86_64, and this machine is aarch64" in done.stderr
    )
    assert not [*arm64.iterdir()]


def test_doctor_offers_nothing_that_another_processor_cannot_build(arm64: Path) -> None:
    answers = {answer.name: answer for answer in doctor.survey()["build"]}
    assert not answers["x86"].ready
    assert "this machine is aarch64" in answers["x86"].missing
    assert "espbench build" not in answers["x86"].install
    assert X86_KIT.readiness() == answers["x86"]
    assert E500_KIT.processor_fits.ready
