# SPDX-License-Identifier: Apache-2.0
"""Converts a processor of a profile into the machine's input, with all times in cycles of an engine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from espbench.plan.duts.processors import Port, Processor, StatedBus, StatedMemory
from espbench.plan.keys.kernel_test import FasterMemory

_THOUSANDTHS = 1000
_LARGE = 8 << 20  # bytes of SRAM and DRAM: more than any kernel needs


def machine(processor: Processor, faster: FasterMemory) -> dict[str, Any]:
    """Return the `processor` of a request to espbench-ixp; faster: the parts by which memories are faster."""
    stated, assumed = processor.stated, processor.assumed

    def bus(memory: StatedBus, port: Port, faster_by: float) -> dict[str, Any]:
        factor = 1 + Fraction(str(faster_by))
        return _memory(memory, port, _LARGE, memory.clock * factor, factor)

    def _memory(
        memory: StatedMemory, port: Port, size: int, clock: Fraction, factor: Fraction
    ) -> dict[str, Any]:
        per_clock = stated.clock * _THOUSANDTHS / clock
        return {
            "bytes": size,
            "read": round(memory.read / factor),
            "write": round(memory.write / factor),
            "unit": memory.transfer,
            "channels": port.channels,
            "interleave": port.interleave,
            "command": round(port.command * per_clock),
            "transfer": round(port.transfer * per_clock),
            "queue": assumed.queue,
        }

    scratch = assumed.scratch
    return {
        "cycles": {key: getattr(assumed, key) for key in ("branch", "swap", "multiply", "rotate")},
        "local": stated.local_memory,
        "stack": assumed.stack,
        "instructions": assumed.store,
        "commands": assumed.commands,
        "scratch": _memory(
            stated.scratch, scratch, stated.scratch.bytes, Fraction(scratch.clock), Fraction(1)
        ),
        "sram": bus(stated.sram, assumed.sram, faster.sram),
        "dram": bus(stated.dram, assumed.dram, faster.dram),
    }
