# SPDX-License-Identifier: Apache-2.0
"""The XDP program that receives, compiled as an ordinary library: how it counts an intact frame."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

BPF = Path(__file__).parents[3] / "traffic" / "bpf"

# The shim has one stream, and its own maps in place of the kernel's.
SHIM = """
#include "common.h"
static void *shim_map(void *map);
#define bpf_map_lookup_elem(map, key) ((void)(key), shim_map(map))
#include "receive.bpf.c"
static struct expected stream = { .slice_ns = 1, .tail_ns = ~0ULL, .bin_ns = 1, .tag_ns = ~0ULL };
static struct count counted;
static struct arrivals came;
static u64 numbers;
static void *shim_map(void *map)
{
    return map == &expected ? (void *)&stream : map == &counts ? &counted : map == &arrivals ? &came :
           map == &arrived ? (void *)&numbers : 0;
}
/* Counts one frame; returns its latency, and whether it seemed to arrive before it left. */
u64 took_ns(u64 low, u64 at_ns, u64 *early)
{
    u64 sum = 0;

    __builtin_memset(&counted, 0, sizeof(counted));
    numbers = 0;
    book(0, 0, low, at_ns);
    for (int i = 0; i < SLICES; i++)
        sum += counted.slices[i].total_ns;
    *early = counted.early;
    return sum;
}
"""
WRAP = 1 << 48


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The program with its shim."""
    folder = tmp_path_factory.mktemp("receive")
    (folder / "shim.c").write_text(SHIM)
    argv = ["gcc", "-std=gnu11", "-O1", "-w", "-shared", "-fPIC", f"-I{BPF}", "-o", "shim.so", "shim.c"]
    subprocess.run(argv, cwd=folder, check=True)
    loaded = ctypes.CDLL(str(folder / "shim.so"))
    loaded.took_ns.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)]
    loaded.took_ns.restype = ctypes.c_uint64
    return loaded


@pytest.mark.needs("gcc", "libbpf-dev")
@pytest.mark.parametrize(
    ("sent_ns", "at_ns"),
    [
        (5, 100),
        (WRAP - 10, WRAP + 20),
        (3 * WRAP + 7, 3 * WRAP + 9),
        (WRAP + 5, WRAP - 5),
        (3 * WRAP, 3 * WRAP - 1),
    ],
)
def test_a_time_of_48_bits_is_made_whole_on_both_sides_of_a_wrap(
    program: ctypes.CDLL, sent_ns: int, at_ns: int
) -> None:
    """Each 78 hours; clocks of two CPUs may let a frame arrive before it left. stream_count.rs has the same times."""
    early = ctypes.c_uint64()
    took_ns = program.took_ns(sent_ns % WRAP, at_ns, ctypes.byref(early))
    assert (took_ns, early.value) == (max(at_ns - sent_ns, 1), int(sent_ns > at_ns))
