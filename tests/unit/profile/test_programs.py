# SPDX-License-Identifier: Apache-2.0
"""Addresses in user space get the functions of the files that are mapped there, with symbols or without."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.profile import elf, programs
from espbench.profile.attribution import attribute
from espbench.profile.elf import NoElf
from espbench.profile.sections import How, Node, Run, Section
from espbench.profile.symbols import Function, Symbols
from support.elf_file import TEXT, TEXT_AT, TEXT_SIZE, Made

BUILD_ID = "ab12cd"
WHOLE = Made(
    symbols=[
        ("esp.c", 0, False), ("encrypt", TEXT + 0x100, True), ("helper", TEXT + 0x180, True),
        ("gcm.c", 0, False), ("encrypt", TEXT + 0x200, True),
        ("process_everything", TEXT + 0x300, False), ("process", TEXT + 0x300, False),
    ],
    unwound=[TEXT + at for at in (0x100, 0x180, 0x200, 0x300)],
    build_id=BUILD_ID,
)  # fmt: skip
STRIPPED = replace(WHOLE, symbols=[("process", TEXT + 0x300, False)], table=".dynsym")
MAPS = """\
process /proc/1/maps
00400000-00401000 r--p 00000000 00:02 12                 /init
00401000-00480000 r-xp 00001000 00:02 12                 /init
7ffc1000-7ffc3000 r-xp 00000000 00:00 0                  [vdso]
process /proc/2/maps
process /proc/77/maps
55550000-55551000 r-xp 00000000 00:02 40                 /usr/lib/ipsec/charon
7f110000-7f111000 r--p 00000000 00:02 41                 /usr/lib/ipsec/libipsec.so.0
7f112000-7f112a00 r-xp 00000200 00:02 41                 /usr/lib/ipsec/libipsec.so.0
7f200000-7f201000 rw-p 00000000 00:00 0
7ffd1000-7ffd3000 r-xp 00000000 00:00 0                  [vdso]
"""
LIBRARY = 0x7F112000  # where its code is mapped
LIBIPSEC = "usr/lib/ipsec/libipsec.so.0"


def zipped(folder: Path, files: Mapping[str, bytes]) -> ZipFile:
    """Put the files into an archive, and open it."""
    with ZipFile(folder / "files.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return ZipFile(folder / "files.zip")


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_functions_of_a_file_with_symbols_have_their_names(*, wide: bool, order: str) -> None:
    """Two static functions of one name have their sources too; of two names of an address the shorter counts."""
    binary = elf.read(replace(WHOLE, wide=wide, order=order).data())
    assert [binary.at(TEXT_AT + at) for at in (0xFF, 0x100, 0x17F, 0x180, 0x200, 0x300, TEXT_SIZE - 1)] == [
        None, "encrypt (esp.c)", "encrypt (esp.c)", "helper", "encrypt (gcm.c)", "process", "process"
    ]  # fmt: skip
    assert binary.at(TEXT_AT + TEXT_SIZE) is None
    assert (binary.has_symbols, binary.build_id) == (True, BUILD_ID)


def test_functions_of_a_stripped_file_have_their_offsets() -> None:
    """A function that others may call keeps its name."""
    binary = elf.read(STRIPPED.data())
    assert [binary.at(TEXT_AT + at) for at in (0xFF, 0x150, 0x200, 0x310)] == [
        None, "0x1100", "0x1200", "process"
    ]  # fmt: skip
    assert not binary.has_symbols


@pytest.mark.parametrize("data", [b"", b"#!/bin/sh\n", WHOLE.data()[:100], WHOLE.data()[:-80]])
def test_what_is_no_elf_file_is_said(data: bytes) -> None:
    """A script, and a file that was cut short."""
    with pytest.raises(NoElf):
        elf.read(data)


@given(st.binary(max_size=200))
def test_no_bytes_do_anything_else(rest: bytes) -> None:
    """Whatever follows the first bytes, the file is read or refused."""
    with contextlib.suppress(NoElf):
        elf.read(b"\x7fELF" + rest)


def test_debug_symbols_of_this_machine_name_a_stripped_file(tmp_path: Path) -> None:
    """They are found by the build's id; those of another build are not used."""
    (tmp_path / BUILD_ID[:2]).mkdir()
    (tmp_path / BUILD_ID[:2] / f"{BUILD_ID[2:]}.debug").write_bytes(WHOLE.data())
    of_both = programs.with_symbols(STRIPPED.data(), tmp_path)
    other = programs.with_symbols(replace(STRIPPED, build_id="ab12ce").data(), tmp_path)
    assert of_both is not None
    assert other is not None
    assert (of_both.at(TEXT_AT + 0x180), other.at(TEXT_AT + 0x180)) == ("helper", "0x1180")


@pytest.fixture
def guest(tmp_path: Path) -> programs.Programs:
    """A guest with two processes; the library of one has symbols, its own program is no ELF file."""
    files = {LIBIPSEC: WHOLE.data(), "usr/lib/ipsec/charon": b"none"}
    return programs.read(MAPS, zipped(tmp_path, files))


@pytest.mark.parametrize(
    ("address", "function"),
    [
        (LIBRARY + 0x110, Function("encrypt (esp.c)", "libipsec.so.0")),
        (LIBRARY + 0x10, Function("[unnamed]", "libipsec.so.0")),
        (0x55550010, Function("[unnamed]", "charon")),
        (0x7FFD1010, Function("[vdso]", "[vdso]")),
    ],
)
def test_an_address_is_in_the_file_that_is_mapped_there(
    guest: programs.Programs, address: int, function: Function
) -> None:
    """The place in the file is where the mapping begins in it, and the distance from there."""
    process = guest.running([address])
    assert process is not None
    assert process.name == "charon"
    assert guest.at(process, address) == function


@pytest.mark.parametrize(
    "addresses", [[0x7F110010], [LIBRARY, 0x401000], [0x1]], ids=["data", "of two processes", "nobody's"]
)
def test_addresses_that_no_process_can_have_executed_have_no_program(
    guest: programs.Programs, addresses: list[int]
) -> None:
    """Nothing is guessed: not even where most of the addresses are those of one process."""
    assert guest.running(addresses) is None


def test_two_processes_at_the_same_addresses_are_not_told_apart(tmp_path: Path) -> None:
    """Programs without random addresses could be either."""
    twice = MAPS + MAPS.partition("process /proc/2/maps\n")[0]
    assert programs.read(twice, zipped(tmp_path, {})).running([0x401000]) is None


def test_what_a_daemon_executes_is_of_its_functions(guest: programs.Programs) -> None:
    """Nothing is lost: the functions of a daemon, those by offset and what nobody knows add up to all instructions."""
    nodes = {0: Node(0, How.CALL, 0), 1: Node(0, How.USER, 1), 2: Node(0, How.USER, 2)}
    blocks = {1: [LIBRARY + 0x100, LIBRARY + 0x180], 2: [LIBRARY + 0x10], 3: [0x1]}
    runs = [Run(1, 1, 6, {}), Run(1, 2, 1, {}), Run(2, 3, 3, {})]
    section = Section(100, 116, nodes, blocks, runs)
    profile = attribute("c", "home", 2, section, Symbols({}), programs=guest)
    library = "libipsec.so.0"
    assert profile.by_function() == {
        Function("encrypt (esp.c)", library): 6, Function("helper", library): 6,
        Function("[unnamed]", library): 1, Function("[unnamed]", ""): 3,
    }  # fmt: skip
    assert profile.by_where() == {"user space": 16}
    assert profile.named_share == 0.75
    assert profile.stacks["[charon]", f"helper [{library}]"] == 6
    assert profile.stacks["[user space, program 2]",] == 3


def test_the_kernels_entry_on_a_users_stack_is_no_program(guest: programs.Programs) -> None:
    """A system call's first instructions still have the user's stack; they are the kernel's, and the rest is charon."""
    entry, base = "entry_SYSCALL_64", 0xFFFF_FFFF_8100_0000
    section = Section(
        0, 3, {0: Node(0, How.CALL, 0), 1: Node(0, How.USER, 1)},
        {1: [LIBRARY + 0x100, base, base + 1]}, [Run(1, 1, 1, {})],
    )  # fmt: skip
    profile = attribute("c", "home", 1, section, Symbols({base: Function(entry)}), programs=guest)
    assert profile.by_where() == {"process": 2, "user space": 1}
    assert profile.by_function() == {Function(entry): 2, Function("encrypt (esp.c)", "libipsec.so.0"): 1}


def test_offsets_are_no_names_and_counted(tmp_path: Path) -> None:
    """A stripped library: the functions are known, and how many instructions have no better name."""
    stripped = programs.read(MAPS, zipped(tmp_path, {LIBIPSEC: replace(STRIPPED, build_id="").data()}))
    section = Section(
        0, 4, {0: Node(0, How.CALL, 0), 1: Node(0, How.USER, 1)},
        {1: [LIBRARY + 0x180, LIBRARY + 0x181, LIBRARY + 0x182, LIBRARY + 0x300]}, [Run(1, 1, 1, {})],
    )  # fmt: skip
    profile = attribute("c", "home", 1, section, Symbols({}), programs=stripped)
    assert profile.by_function()[Function("0x1180", "libipsec.so.0")] == 3
    assert (profile.named_share, profile.offset_share) == (0.25, 0.75)
