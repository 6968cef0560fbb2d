# SPDX-License-Identifier: Apache-2.0
"""Measures one configuration: compiles the kernel, checks it by its known answers, runs it, compares every byte."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from espbench.npcrypt import machine, prices
from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.ciphers.kernel import Kernel
from espbench.npcrypt.compilers import Compilation, compiled
from espbench.npcrypt.processes import Processes
from espbench.npcrypt.proof import check, data_of, expected_of, lengthened
from espbench.plan.duts.processors import Processor
from espbench.plan.keys.kernel_test import FasterMemory, KernelName
from espbench.results.kernels import KernelConfiguration, KernelResult, MemoryUse


@dataclass(frozen=True)
class Configuration:
    """One point of a cipher_kernels test.

    engines and threads (per engine) are numbers; data is in bytes for each thread. faster_dram and faster_sram are the
    parts by which the memories are faster than in the profile (0: equal).
    """

    dut: str
    kernel: KernelName
    compilation: Compilation
    engines: int
    threads: int
    data: int
    faster_dram: float
    faster_sram: float

    @property
    def recorded(self) -> KernelConfiguration:
        """The configuration as results have it."""
        c = self.compilation
        return KernelConfiguration(
            dut=self.dut,
            kernel=self.kernel,
            level=c.level,
            compiler=c.compiler,
            option=c.option,
            engines=self.engines,
            threads=self.threads,
            data=self.data,
            faster_dram=self.faster_dram,
            faster_sram=self.faster_sram,
        )

    @property
    def shown(self) -> str:
        """The text of the configuration for messages."""
        c = self.compilation
        return f"{self.dut}, {self.kernel}, level {c.level}, {c.compiler} -{c.option}, {self.engines} × {self.threads}"


@dataclass
class Programs:
    """Compiles each program of a run once, and checks it by its known answers, at its first use by any thread."""

    folder: Path
    processes: Processes
    _made: dict[tuple[str, str, Compilation], Path] = field(default_factory=dict)
    _locks: dict[tuple[str, str, Compilation], threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, configuration: Configuration, processor: Processor) -> Path:
        """Return the program of a configuration. Raise EspbenchError if it cannot be compiled, or computes wrongly."""
        c = configuration
        key = (c.dut, c.kernel, c.compilation)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._made:
                name = f"{c.dut}-{c.kernel}-{c.compilation.level}-{c.compilation.compiler}-{c.compilation.option}"
                program = compiled(KERNELS[c.kernel], c.compilation, processor, self.folder / name)
                prove(KERNELS[c.kernel], program, processor, c.shown, self.processes)
                self._made[key] = program
        return self._made[key]


def prove(kernel: Kernel, program: Path, processor: Processor, what: str, processes: Processes) -> None:
    """Run a kernel on the data of all its known answers; raise EspbenchError if an answer is wrong."""
    for vector in kernel.vectors:
        data = lengthened(vector)
        words = kernel.words(data)
        answer = machine.run(
            program,
            {
                "processor": prices.machine(processor, FasterMemory()),
                "engines": 1,
                "threads": 1,
                "tables": kernel.tables(vector.key),
                "input": words,
                "output_words": kernel.output_bytes(len(data)) // 4,
            },
            processes,
        )
        check(kernel, kernel.bytes(answer.output), vector.answer, f"{what}, {vector.source}")


def measure(configuration: Configuration, processor: Processor, programs: Programs) -> KernelResult:
    """Run one configuration, and return its result. Raise EspbenchError if a byte of the output is wrong."""
    c, kernel = configuration, KERNELS[configuration.kernel]
    program = programs.of(c, processor)
    threads = range(c.engines * c.threads)
    data = b"".join(data_of(c.kernel, thread, c.data) for thread in threads)
    wanted = b"".join(expected_of(c.kernel, thread, c.data) for thread in threads)
    faster = FasterMemory(dram=c.faster_dram, sram=c.faster_sram)
    answer = machine.run(
        program,
        {
            "processor": prices.machine(processor, faster),
            "engines": c.engines,
            "threads": c.threads,
            "tables": kernel.tables(kernel.key),
            "input": kernel.words(data),
            "output_words": kernel.output_bytes(c.data) // 4,
        },
        programs.processes,
    )
    got = kernel.bytes(answer.output)
    check(kernel, got, wanted, c.shown)
    return _result(c, processor, answer, len(got))


def _result(c: Configuration, processor: Processor, answer: machine.Answer, checked: int) -> KernelResult:
    spent = answer.spent
    ports = processor.assumed
    uses = {
        "scratch": (answer.scratch, ports.scratch.channels),
        "sram": (answer.sram, ports.sram.channels),
        "dram": (answer.dram, ports.dram.channels),
    }
    return KernelResult(
        **c.recorded.model_dump(),
        clock_hz=processor.stated.clock,
        cycles=answer.cycles,
        executing=spent.executing / spent.total,
        aborted=spent.aborted / spent.total,
        idle=spent.idle / spent.total,
        stalled=spent.stalled / spent.total,
        code=answer.code,
        storage=answer.storage,
        run=answer.dynamic,
        cycles_of=answer.cycles_of,
        memories={
            name: MemoryUse(
                reads=use.reads,
                writes=use.writes,
                transfers=use.transfers,
                busy=use.busy / 1000 / channels / answer.cycles,
                refused=use.refused,
                waited=use.waited,
            )
            for name, (use, channels) in uses.items()
        },
        checked=checked,
    )
