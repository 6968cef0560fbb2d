# SPDX-License-Identifier: Apache-2.0
"""Tests of what goes wrong on links in virtual time: how the program learns of it, and the sums of QEMU's ends."""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.paths import data_dir
from espbench.plan.keys.links import Links
from espbench.platforms.chance import Chance
from espbench.platforms.link_errors import Errors, LinkErrors

ROOT = Path(__file__).parents[3]
ALL = 2**64
LATE_NS = 5_000
# The shim calls what the device's header has as functions for whoever includes it.
SHIM = """
#define _GNU_SOURCE
#include <stdio.h>
#include "esplink_shm.h"
static void esplink_fatal(const struct esplink *link, const char *what) { (void)link; (void)what; _exit(1); }
uint64_t intact(uint64_t flip, uint64_t bits) { return esplink_intact(flip, bits); }
/* Of so many frames: 0 lost, 1 comes, 2 damaged; and 4 more if late. */
void fates(uint64_t seed, uint64_t lose, uint64_t flip, uint32_t late, unsigned count, uint8_t *found)
{
    struct esplink_end mine = { 0 };
    struct esplink link = { .header = { .lose = lose, .flip = flip, .late = late, .late_ns = 5000 },
                            .chance = seed, .mine = &mine };
    for (unsigned i = 0; i < count; i++) {
        uint32_t kind = ESPLINK_FRAME;
        uint64_t late_ns = 0;
        bool comes = esplink_fate(&link, 512, &kind, &late_ns);
        found[i] = !comes ? 0 : (kind == ESPLINK_DAMAGED ? 2 : 1) + (late_ns ? 4 : 0);
    }
}
"""

needs_compiler = pytest.mark.needs("gcc")
seeds = st.integers(0, ALL - 1)
shares = st.integers(0, ALL - 1)


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The arithmetic of QEMU's end of a link, as a library."""
    folder = tmp_path_factory.mktemp("ends")
    (folder / "shim.c").write_text(SHIM)
    library = folder / "shim.so"
    include = data_dir("emulator") / "qemu"
    argv = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Werror", "-Wno-unused-function", "-shared", "-fPIC"]
    subprocess.run([*argv, f"-I{include}", "-o", library, folder / "shim.c"], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.intact.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    loaded.intact.restype = ctypes.c_uint64
    loaded.fates.argtypes = [ctypes.c_uint64] * 3 + [ctypes.c_uint32, ctypes.c_uint, ctypes.c_char_p]
    loaded.fates.restype = None
    return loaded


def fates(
    ends: ctypes.CDLL, seed: int, lose: int = 0, flip: int = 0, late: int = 0, count: int = 300
) -> bytes:
    buffer = ctypes.create_string_buffer(count)
    ends.fates(seed, lose, flip, late, count, buffer)
    return buffer.raw


def test_the_delay_is_there_without_a_seed_and_the_documents_say_so() -> None:
    """A link has its delay from its start on; it has errors only when a trial gives it a seed."""
    assert LinkErrors(delay_ns=2_000_000).flags == ["--latency-ns", "2050000"]
    assert LinkErrors(delay_ns=2_000_000).flags_of_wire == ["--delay-ns", "2000000"]
    document = " ".join((ROOT / "docs/board-hardware.md").read_text(encoding="utf-8").split())
    assert "a delay is there while the gateways are set up, too" in document
    assert "`delay`, but no other fault" in (Links.__doc__ or "")


@needs_compiler
@given(flip=st.integers(1, ALL - 1), bits=st.integers(1, 1518 * 8))
def test_bits_that_are_flipped_add_up(ends: ctypes.CDLL, flip: int, bits: int) -> None:
    """Within what rounding down at each of some 28 products of 64 bits takes."""
    exact = float((1 - Fraction(flip, ALL)) ** bits)
    share = ends.intact(flip, bits) / ALL
    assert exact - 1e-12 <= share <= exact + 1e-12


@needs_compiler
@given(seed=seeds, lose=shares, flip=shares, late=st.integers(0, 2**32 - 1))
def test_the_same_seed_loses_the_same_frames_whatever_else_goes_wrong(
    ends: ctypes.CDLL, seed: int, lose: int, flip: int, late: int
) -> None:
    both = fates(ends, seed, lose, flip, late)
    assert both == fates(ends, seed, lose, flip, late)
    alone = fates(ends, seed, lose)
    assert [fate == 0 for fate in both] == [fate == 0 for fate in alone]
    damaged, delayed = fates(ends, seed, flip=flip), fates(ends, seed, late=late)
    for fate, bad, behind in zip(both, damaged, delayed, strict=True):
        assert fate == 0 or (fate & 2, fate & 4) == (bad & 2, behind & 4)


@needs_compiler
def test_the_fates_of_a_seed_are_those_of_the_generators_ends(ends: ctypes.CDLL) -> None:
    """The line of seed 7 is also in traffic/src/fates.rs."""
    found = fates(ends, 7, 1 << 62, 1 << 51, 1 << 30, 64)
    assert "".join(map(str, found)) == "1551222062110051211111251122021206022021662220101202011211052120"


@needs_compiler
@given(seed=seeds, less=shares, more=shares)
def test_a_link_that_loses_more_loses_those_as_well(
    ends: ctypes.CDLL, seed: int, less: int, more: int
) -> None:
    less, more = sorted((less, more))
    some, all_of = fates(ends, seed, less), fates(ends, seed, more)
    assert all(greater == 0 for fewer, greater in zip(some, all_of, strict=True) if fewer == 0)


@given(seed=st.integers(0, 2**32 - 1), chance=st.text(), other=st.text())
def test_a_trials_errors_are_those_of_seed_and_text(seed: int, chance: str, other: str) -> None:
    errors = Errors({"west": LinkErrors(loss=0.5)}, seed)
    first = Chance()
    assert errors.seed_for(first, chance) == errors.seed_for(first, chance) < ALL
    assert (errors.seed_for(first, chance) == errors.seed_for(first, other)) == (chance == other)
    assert Errors({}, seed).seed_for(first, chance) == 0


def test_each_repeat_has_other_errors_and_the_first_those_it_always_had() -> None:
    errors = Errors({"west": LinkErrors(loss=0.5)}, 1)
    settings = "20000.0 0.05 0"
    drawn = [errors.seed_for(Chance(seed, repeat), settings) for seed in (1, 2) for repeat in (1, 2, 3)]
    assert len(set(drawn)) == 6
    assert drawn[0] == int.from_bytes(hashlib.sha256(f"1 {settings}".encode()).digest()[:8])


def test_the_program_is_told_of_what_goes_wrong_alone() -> None:
    assert LinkErrors().flags == ["--latency-ns", "50000"]
    assert LinkErrors(loss=1e-5, delay_ns=2_000_000, late_ns=7).flags == [
        "--latency-ns", "2050000", "--lose", "1e-05",
    ]  # fmt: skip
    assert LinkErrors(bit_errors=1e-9, late=0.01, late_ns=LATE_NS).flags[2:] == [
        "--flip", "1e-09", "--late", "0.01", "--late-ns", "5000",
    ]  # fmt: skip
    assert LinkErrors().flags_of_wire == []
    assert LinkErrors(loss=1e-5, delay_ns=2_000_000).flags_of_wire == [
        "--delay-ns",
        "2000000",
        "--lose",
        "1e-05",
    ]


def test_links_say_what_they_do() -> None:
    assert Errors().said == "50 µs long"
    assert Errors({"east": LinkErrors(said="loss 0.1")}).said == "50 µs long; east: loss 0.1"
