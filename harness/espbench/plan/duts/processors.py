# SPDX-License-Identifier: Apache-2.0
"""`processor:` of a DUT profile with platform: ixp: a network processor, with stated and assumed properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from espbench.plan.duts.boards import Clock
from espbench.plan.keys.kernel_test import MOST_ENGINES, MOST_THREADS
from espbench.plan.keys.values import Name
from espbench.plan.reading.reader import Problem, Strict, shown

_Cycles = Annotated[int, Field(ge=0, le=1000)]
_Latency = Annotated[int, Field(ge=1, le=10_000)]
_Size = Annotated[int, Field(ge=4, le=1 << 24, multiple_of=4)]
_Count = Annotated[int, Field(ge=1, le=1024)]


class StatedMemory(Strict):
    """A memory that all engines share, as the paper states it."""

    keys_are: ClassVar[str] = "a key of a stated memory"

    transfer: Annotated[int, Field(ge=4, le=64, multiple_of=4)]
    """Bytes of a transfer; a shorter one takes as long."""
    read: _Latency
    """Cycles of an engine from a reference to its signal."""
    write: _Latency


class StatedBus(StatedMemory):
    """A memory outside the chip, as the paper states it."""

    clock: Clock
    """The clock of its bus."""


class StatedScratch(StatedMemory):
    """The scratch memory on the chip, as the paper states it."""

    bytes: _Size


class Stated(Strict):
    """The properties that the paper states."""

    keys_are: ClassVar[str] = "a stated key"

    clock: Clock
    """The clock of the engines."""
    engines: Annotated[int, Field(ge=1, le=MOST_ENGINES)]
    threads: Annotated[int, Field(ge=1, le=MOST_THREADS)]
    """Threads of each engine."""
    local_memory: Annotated[int, Field(ge=0, le=65536, multiple_of=4)]
    """Bytes of each engine; 0: it has none."""
    dram: StatedBus
    sram: StatedBus
    scratch: StatedScratch


class Port(Strict):
    """The time that a memory needs to serve references, in clocks of its bus; assumed."""

    keys_are: ClassVar[str] = "a key of an assumed memory"

    channels: Annotated[int, Field(ge=1, le=16)] = 1
    interleave: Annotated[int, Field(ge=0, le=65536, multiple_of=4)] = 0
    """Bytes after which the next channel begins; 0: a program's whole memory is in one channel."""
    command: _Cycles
    """Clocks for which each reference occupies its channel, in addition to its transfers."""
    transfer: _Cycles
    """Clocks of a transfer."""


class ScratchPort(Port):
    """The time that the scratch memory needs to serve references; the paper does not state its clock."""

    clock: Clock


class Assumed(Strict):
    """The properties that the paper does not state, and that espbench assumes."""

    keys_are: ClassVar[str] = "an assumed key"

    instructions: Literal["rv32i", "rv32im", "rv32im_zbb"]
    """The instruction set that the kernels are compiled for."""
    store: Annotated[int, Field(ge=256, le=65536)]
    """Instructions that an engine's store holds."""
    stack: Annotated[int, Field(ge=256, le=65536, multiple_of=16)]
    """Bytes of a thread's stack; its accesses take as long as those of registers."""
    branch: _Cycles
    """Cycles lost by a branch that is taken."""
    swap: _Cycles
    """Cycles lost when a thread yields to another."""
    multiply: _Cycles
    """Cycles of a multiplication."""
    rotate: _Cycles
    """Cycles of a rotation by a register."""
    queue: _Count
    """References that wait in a channel's queue."""
    commands: _Count
    """References that an engine has issued and that no queue has accepted yet."""
    dram: Port
    sram: Port
    scratch: ScratchPort


class Processor(Strict):
    """The network processor that a profile with platform: ixp describes."""

    keys_are: ClassVar[str] = "a key of a processor"

    model: Name
    """Its name, as reports and published figures have it."""
    stated: Stated
    assumed: Assumed


def processor_problems(processor: Processor | None) -> Iterator[Problem]:
    """Find keys that a profile with platform: ixp lacks, and an interleave that splits a transfer."""
    if processor is None:
        remedy = "dut-profiles/ixp2800.yaml shows it line by line"
        yield Problem((), "processor: with platform: ixp", "none", remedy, involves=(("platform",),))
        return
    for key, port in (("dram", processor.assumed.dram), ("sram", processor.assumed.sram)):
        if port.channels > 1 and port.interleave % getattr(processor.stated, key).transfer:
            yield Problem(
                ("processor", "assumed", key, "interleave"),
                f"a multiple of {key}'s transfer",
                shown(port.interleave),
                "no transfer is of two channels",
            )
