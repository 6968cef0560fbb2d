# SPDX-License-Identifier: Apache-2.0
"""The settings of `cipher_kernels`: which kernels, their optimisation and compilers, and the numbers of engines and
threads.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PlainValidator

from espbench.plan.keys.values import Increase, text
from espbench.plan.reading.reader import Strict
from espbench.plan.reading.units import Expected

MOST_ENGINES, MOST_THREADS = 64, 8

KernelName = Literal["aes", "des", "rc5", "rc6", "blowfish", "idea", "rc4", "seal", "md5", "sha1"]
Level = Literal[0, 1, 2, 3]
_COMPILER_PATTERN = r"^(gcc|clang(-[1-9]\d)?)$"


def _compiler(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_COMPILER_PATTERN, value):
        raise Expected(
            "gcc, clang or a version of it such as clang-19", "Debian has some: apt-cache search ^clang-"
        )
    return value


CompilerName = Annotated[str, PlainValidator(_compiler), text(_COMPILER_PATTERN, "gcc", "clang", "clang-19")]
Option = Literal["O0", "O1", "O2"]
_ALL: list[KernelName] = ["aes", "des", "rc5", "rc6", "blowfish", "idea", "rc4", "seal", "md5", "sha1"]

_LEVELS: list[Level] = [0, 1, 2, 3]
_USUAL_COMPILER: list[CompilerName] = ["gcc"]
_USUAL_OPTION: list[Option] = ["O2"]


class FasterMemory(Strict):
    """Memories with higher clocks than in the paper, such as {dram: 16.5%, sram: 33.5%}, and so shorter latencies."""

    keys_are: ClassVar[str] = "a memory that can be faster"

    dram: Increase = 0.0
    """The share by which the clock of DRAM is higher, in %; 0: as in the paper."""
    sram: Increase = 0.0
    """The share by which the clock of SRAM is higher, in %; 0: as in the paper."""


class CipherKernels(Strict):
    """NPCryptBench: cipher and hash kernels on a network processor, in every combination of these lists."""

    keys_are: ClassVar[str] = "a key of a cipher_kernels test"

    duts: list[str] = Field(default_factory=list)
    """The names of those of the plan's DUTs that are used. Default: all."""
    kernels: Annotated[list[KernelName], Field(min_length=1)] = Field(
        default_factory=lambda: [*_ALL], json_schema_extra={"default": [*_ALL]}
    )
    """The names of the kernels to run, of the ten that there are."""
    levels: Annotated[list[Level], Field(min_length=1)] = Field(
        default_factory=lambda: [*_LEVELS], json_schema_extra={"default": [0, 1, 2, 3]}
    )
    """Levels of optimisation by hand (docs/npcryptbench.md)."""
    compilers: Annotated[list[CompilerName], Field(min_length=1)] = Field(
        default_factory=lambda: [*_USUAL_COMPILER], json_schema_extra={"default": ["gcc"]}
    )
    """The compilers. clang-N: that version, by Debian's package of this name."""
    options: Annotated[list[Option], Field(min_length=1)] = Field(
        default_factory=lambda: [*_USUAL_OPTION], json_schema_extra={"default": ["O2"]}
    )
    """The optimisation levels of the compiler."""
    engines: Annotated[list[Annotated[int, Field(ge=1, le=MOST_ENGINES)]], Field(min_length=1)] = Field(
        default_factory=lambda: [1], json_schema_extra={"default": [1]}
    )
    """Numbers of working engines."""
    threads: Annotated[list[Annotated[int, Field(ge=1, le=MOST_THREADS)]], Field(min_length=1)] = Field(
        default_factory=lambda: [1], json_schema_extra={"default": [1]}
    )
    """Numbers of threads on each engine."""
    data: Annotated[int, Field(ge=128, le=4096, multiple_of=128)] = 2048
    """Bytes that each thread encrypts or hashes."""
    faster: FasterMemory = FasterMemory()
    """Shares by which the clocks of the memories are higher than in the paper, in %."""
