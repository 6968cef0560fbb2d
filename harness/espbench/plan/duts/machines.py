# SPDX-License-Identifier: Apache-2.0
"""`machine:` of a DUT profile with platform: qemu_x86: the processor, its speed, and its network ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import Field, PlainSerializer, PlainValidator

from espbench.plan.duts.boards import NsPerInstruction, link_problems
from espbench.plan.keys.values import text
from espbench.plan.reading.reader import Problem, Strict
from espbench.plan.reading.units import Expected

_CPU_PATTERN = r"^[A-Z][A-Za-z0-9_.-]*(,[+-][a-z0-9_.-]+|,[a-z][a-z0-9-]*=[a-z0-9]+)*$"
_MOST_INTERRUPTS = 100_000  # the driver's own limit
ADAPTING = 3  # value of InterruptThrottleRate: "dynamic conservative", the driver's own default


def _cpu(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_CPU_PATTERN, value):
        raise Expected(
            "one of QEMU's named models of a CPU, such as Haswell-noTSX",
            "max, host and base are what each QEMU and machine make of them, and so no device to compare",
        )
    return value


def _interrupts(value: object) -> int:
    if value == "adaptive":
        return ADAPTING
    if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= _MOST_INTERRUPTS:
        return value
    raise Expected(
        "adaptive, or how many interrupts a second a port raises at most",
        f"from 100 to {_MOST_INTERRUPTS}: InterruptThrottleRate of Linux's driver",
    )


class Rings(Strict):
    """The number of frames that a port's rings hold."""

    keys_are: ClassVar[str] = "a ring: receive or transmit"

    receive: Annotated[int, Field(ge=80, le=4096, multiple_of=8)] = 256
    transmit: Annotated[int, Field(ge=80, le=4096, multiple_of=8)] = 256


class Machine(Strict):
    """The x86-64 machine that a profile with platform: qemu_x86 emulates."""

    keys_are: ClassVar[str] = "a key of a machine"

    cpu: Annotated[str, PlainValidator(_cpu), text(_CPU_PATTERN, "Haswell-noTSX")]
    """One of QEMU's named models; features are added and taken away as in Haswell-noTSX,-avx2."""
    ns_per_instruction: NsPerInstruction = Fraction(1)
    """The time of each instruction, the same for all: 0.75, or a fraction such as 5/3."""
    rings: Rings = Rings()
    """The number of frames that a port's rings hold."""
    interrupts: Annotated[
        int,
        PlainValidator(_interrupts),
        PlainSerializer(lambda value: "adaptive" if value == ADAPTING else value),
        Field(json_schema_extra={"default": "adaptive", "examples": ["adaptive", 8000]}),
    ] = ADAPTING
    """Gathering of frames before a port interrupts: adaptive, or the highest number of interrupts a second."""


def machine_problems(machine: Machine | None, line_rate: float, mtu: int) -> Iterator[Problem]:
    """Find keys that a profile with platform: qemu_x86 lacks, and links that are impossible."""
    if machine is None:
        remedy = "dut-profiles/virt-x86.yaml shows it line by line"
        yield Problem((), "machine: with platform: qemu_x86", "none", remedy, involves=(("platform",),))
    yield from link_problems("qemu_x86", line_rate, mtu)
