# SPDX-License-Identifier: Apache-2.0
"""Makes synthetic results of cipher kernels, with every configuration that claims and reports use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from espbench.claims.kernel_measures import GENERATIONS, KERNELS, NEWER, OLDER
from espbench.results.kernels import KINDS, KernelResult, MemoryUse


def made(**changes: Any) -> KernelResult:
    """Return a result: AES at level 0 on one thread of an IXP2800; changes: other fields."""
    count = dict.fromkeys(KINDS, 10)
    use = MemoryUse(reads=100, writes=20, transfers=120, busy=0.25, refused=3, waited=240)
    fields: dict[str, Any] = {
        "dut": "ixp2800", "kernel": "aes", "level": 0, "compiler": "gcc", "option": "O2", "engines": 1,
        "threads": 1, "data": 2048, "clock_hz": 1_400_000_000, "cycles": 20_480, "executing": 0.5, "aborted": 0.1,
        "idle": 0.35, "stalled": 0.05, "code": count, "run": count, "cycles_of": count,
        "storage": {"local": 176, "scratch": 4096, "sram": 0},
        "memories": {"scratch": use, "sram": use, "dram": use}, "checked": 2048,
    }  # fmt: skip
    return KernelResult(**fields | changes)


def on_board(**changes: Any) -> KernelResult:
    """Return a result of a board's core: AES at level 0; changes: other fields."""
    fields: dict[str, Any] = {
        "dut": "mpc8548e", "kernel": "aes", "level": 0, "compiler": "gcc", "option": "O2", "engines": 1, "threads": 1,
        "data": 2048, "clock_hz": 1_333_000_000, "cycles": 61_440, "executing": 1.0, "aborted": 0.0, "idle": 0.0,
        "stalled": 0.0, "executed": 97_680, "checked": 2048,
    }  # fmt: skip
    return KernelResult(**fields | changes)


def everything() -> list[KernelResult]:
    """Return a result for each configuration of plans/npcryptbench*.yaml; only their throughputs differ."""
    return [*_everything()]


def _everything() -> Iterator[KernelResult]:
    for kernel in KERNELS:
        for dut in GENERATIONS:
            for level in range(4):
                yield made(dut=dut, kernel=kernel, level=level)
        for compiler in (OLDER, NEWER):
            for option in ("O0", "O1", "O2"):
                yield made(kernel=kernel, compiler=compiler, option=option)
        for compiler, option in (
            ("gcc", "O0"),
            ("gcc", "O1"),
            ("clang", "O0"),
            ("clang", "O1"),
            ("clang", "O2"),
        ):
            yield made(kernel=kernel, compiler=compiler, option=option)
        for engines in (1, 2, 4, 8):
            for threads in (1, 2, 4, 8):
                if engines * threads > 1:
                    cycles = 20_480 * threads * max(1, engines // 2)
                    yield made(kernel=kernel, level=2, engines=engines, threads=threads, cycles=cycles)
        for dut in (
            "ixp2800-long-queues", "ixp2800-large-local", "ixp2800-fast-engines", "ixp2800-short-latency"
        ):  # fmt: skip
            yield made(dut=dut, kernel=kernel, level=2, engines=8, threads=8, cycles=20_480 * 32)
        yield made(dut="ixp2800-short-latency", kernel=kernel, level=2)
        yield made(kernel=kernel, level=3, engines=8, threads=8)
        yield made(kernel=kernel, level=2, engines=8, threads=8, faster_dram=0.165, faster_sram=0.335)
    for kernel in KERNELS:
        yield on_board(kernel=kernel)
