# SPDX-License-Identifier: Apache-2.0
"""`kernels.jsonl`, `kernels.csv`: what cipher kernels did on network processors or boards, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field

from espbench.results.durable import write_atomically
from espbench.results.outcome_files import table_text
from espbench.results.records import Records, read_records, read_what_is_whole, sealed
from espbench.terms import Record

FILE, TABLE = "kernels.jsonl", "kernels.csv"
KINDS = ("simple", "complex", "jump", "branch", "immediate", "load", "store", "local", "other")
"""Kinds of instructions; load and store: of shared memory, local: of local memory and stack."""
MEMORIES = ("local", "scratch", "sram")  # control data lie in one of these
COMPILER = "compiler {}"
SOURCES = "source code of the kernels"
_PARTS = ("guest", "kernel", "qemu")  # of boards
KernelKey = tuple[str, str, int, str, str, int, int, float, float, int]


def made_by(tools: Mapping[str, str]) -> dict[str, str]:
    """Return those of a run's tools on which its kernels' figures depend: compilers, sources, and parts of boards."""
    of_compilers = COMPILER.format("")
    return {
        name: version
        for name, version in tools.items()
        if name.startswith(of_compilers) or name == SOURCES or name in _PARTS
    }


class MemoryUse(Record):
    """The use of one shared memory; busy is the share of the time in which its channels were busy, on average."""

    reads: int
    writes: int
    transfers: int
    busy: float
    refused: int  # references that found the queue full
    waited: int  # cycles that references waited until they began


class KernelConfiguration(Record):
    """One kernel at one level, compiled in one way, on so many engines and threads, or on a board's core.

    threads: per engine. data: bytes for each thread. faster_dram, faster_sram: by how much the memories' clocks exceed
    those stated.
    """

    dut: str
    kernel: str
    level: int
    compiler: str
    option: str
    engines: int
    threads: int
    data: int
    faster_dram: float = 0.0
    faster_sram: float = 0.0

    @property
    def key(self) -> KernelKey:
        """The key that distinguishes the configuration from the others of a run."""
        return (
            self.dut, self.kernel, self.level, self.compiler, self.option, self.engines, self.threads,
            self.faster_dram, self.faster_sram, self.data,
        )  # fmt: skip


class KernelResult(KernelConfiguration):
    """The result of one configuration: what it cost, and where the time went.

    cycles: of an engine, until the last thread had done its `data` bytes. executing, aborted, idle, stalled: shares
    of the engines' time (docs/npcryptbench.md). code, run: instructions by kind, of the program and as they were run.
    storage: bytes of control data by memory.
    cycles_of: cycles executing and aborted, by the kind they are due to; waiting for a signal counts as load.
    executed: instructions as they were run, on a board's core. It tells nothing of their kinds and of memories: code,
    storage, run, cycles_of and memories are empty then.
    checked: bytes of output that were compared with what had to come out.
    """

    clock_hz: int
    cycles: int
    executing: float
    aborted: float
    idle: float
    stalled: float
    code: dict[str, int] = Field(default_factory=dict)
    storage: dict[str, int] = Field(default_factory=dict)
    run: dict[str, int] = Field(default_factory=dict)
    cycles_of: dict[str, int] = Field(default_factory=dict)
    memories: dict[str, MemoryUse] = Field(default_factory=dict)
    executed: int | None = None
    checked: int

    @property
    def on_engines(self) -> bool:
        """True if engines of a network processor ran it, which tell what they did; a board's core does not."""
        return self.executed is None

    @property
    def total_bytes(self) -> int:
        """Bytes that all threads encrypted or hashed."""
        return self.data * self.engines * self.threads

    @property
    def mbps(self) -> float:
        """Throughput, Mbit/s."""
        return self.total_bytes * 8 * self.clock_hz / self.cycles / 1e6

    @property
    def cycles_per_byte(self) -> float:
        """Cycles of the processor for each byte of all threads."""
        return self.cycles / self.total_bytes

    @property
    def instructions(self) -> int:
        """The number of instructions in the program."""
        return sum(self.code.values())

    @property
    def instructions_per_byte(self) -> float:
        """Instructions that were run for a byte."""
        executed = sum(self.run.values()) if self.executed is None else self.executed
        return executed / self.total_bytes

    @property
    def waiting(self) -> float:
        """The share of the time in which no thread could continue."""
        return self.idle + self.stalled

    def time_share(self, *kinds: str) -> float:
        """Return the share of the engines' time that instructions of these kinds take, without waiting for memory."""
        spent = sum(self.cycles_of.values())
        return sum(self.cycles_of[kind] for kind in kinds) / spent * (1 - self.waiting) if spent else 0.0

    @property
    def memory_time(self) -> float:
        """The share of a single thread's time that references to shared memory take, waiting included."""
        return self.time_share("load", "store") + self.waiting


def save(run: Path, results: Sequence[KernelResult]) -> None:
    """Replace both files as a whole; raise EspbenchError if they cannot be written."""
    write_atomically(run / FILE, sealed(results))
    write_atomically(run / TABLE, table(results))


def table(results: Sequence[KernelResult]) -> str:
    """Return all figures as CSV."""
    fields = (
        "dut", "kernel", "level", "compiler", "option", "engines", "threads", "data", "faster_dram",
        "faster_sram", "cycles",
    )  # fmt: skip
    shares = ("executing", "aborted", "idle", "stalled")
    head = (
        [*fields, "mbps", "cycles_per_byte", "instructions", "local_bytes", "scratch_bytes",
         "sram_bytes", "instructions_per_byte", *shares, "memory_time",
         *(f"code_{kind}" for kind in KINDS), *(f"run_{kind}" for kind in KINDS),
         *(f"cycles_{kind}" for kind in KINDS)]
    )  # fmt: skip
    rows = (
        [*(getattr(r, field) for field in fields), round(r.mbps, 3), round(r.cycles_per_byte, 3),
         r.instructions if r.on_engines else None, *(r.storage.get(memory) for memory in MEMORIES),
         round(r.instructions_per_byte, 3), *(round(getattr(r, s), 5) for s in shares),
         round(r.memory_time, 5) if r.on_engines else None, *(r.code.get(kind) for kind in KINDS),
         *(r.run.get(kind) for kind in KINDS), *(r.cycles_of.get(kind) for kind in KINDS)]
        for r in results
    )  # fmt: skip
    return table_text(head, rows)


def read(run: Path) -> list[KernelResult]:
    """Return the results of a run, none if it has no such test; raise EspbenchError if the file is damaged."""
    return read_records(run / FILE, KernelResult)


def read_to_resume(run: Path) -> Records[KernelResult]:
    """Return the results that are undamaged, so that a resumed run can measure the others again."""
    return read_what_is_whole(run / FILE, KernelResult)
