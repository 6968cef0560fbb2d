# SPDX-License-Identifier: Apache-2.0
"""The test of the engine's public-key unit: the guest of one gateway runs each operation, at each clock.

It follows Short and Waters, "Understanding Public-Key Performance", table 1. Each figure begins in the same state of
the guest. The guest compares each result with a known answer before it reports a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from espbench.errors import EspbenchError
from espbench.generators.base import Generator
from espbench.plan.keys.board_tests import PublicKeyUnit
from espbench.plan.keys.model import Throughput
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import Testbed
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.procedures.boards.kept import File, Kept
from espbench.results import RunDirectory, accelerator
from espbench.results.accelerator import PublicKeyResult

By = Literal["unit", "software"]

_VIRTUAL_TIMEOUT_S = 3600.0
_BOTH: tuple[By, ...] = ("unit", "software")
_SMALL_EXPONENT_BITS = 3
_CURVES = (256, 384)


@dataclass(frozen=True)
class Operation:
    """One figure of a device at one clock of its engine."""

    clock_mhz: float
    by: By
    name: Literal["rsa", "rsa-crt", "ecdh", "ecdsa-verify"]
    bits: int
    exponent_bits: int = 0

    def request(self, count: int) -> str:
        """Return the guest's request for `count` of these operations (harness/emulator/init/PROTOCOL.md)."""
        return f"public_key {self.by} {self.name} {self.bits} {self.exponent_bits} {count}"


class Builder(Protocol):
    """Makes test beds."""

    def build(self, case: Case) -> Testbed: ...


def measure(
    asked: PublicKeyUnit,
    clocks: Mapping[str, float],
    beds: Builder,
    new_generator: Callable[[], Generator],
    directory: RunDirectory,
    note: Callable[[str], None],
) -> list[PublicKeyResult]:
    """Measure every figure that the run lacks, and return all. Each figure is on disk before the next is begun.

    clocks: for each device, its engine's own clock in MHz, at which the kernel's software is measured too.
    """
    listed = [(dut, operation) for dut, own in clocks.items() for operation in operations(asked, own)]
    figures = Kept(_FILE, listed, asked.operations, directory, note)
    for board in dict.fromkeys((dut, operation.clock_mhz) for dut, operation in listed):
        wanted = [o for dut, o in figures.missing() if (dut, o.clock_mhz) == board]
        if wanted:
            own_mhz = clocks[board[0]]
            _measure_board(board[0], own_mhz, wanted, asked.operations, beds, new_generator, figures.take)
    return figures.results


def operations(asked: PublicKeyUnit, own_mhz: float) -> list[Operation]:
    """Return the figures of one device: at its engine's own clock first, software included, then at the plan's
    clocks.
    """
    at_own: list[Operation] = []
    for by in _BOTH if asked.software else _BOTH[:1]:
        for bits in asked.sizes:
            at_own += [
                Operation(own_mhz, by, "rsa", bits, bits),
                Operation(own_mhz, by, "rsa", bits, _SMALL_EXPONENT_BITS),
                Operation(own_mhz, by, "rsa-crt", bits),
            ]
    if asked.software:
        at_own += [Operation(own_mhz, "software", "ecdh", bits) for bits in _CURVES]
        at_own += [Operation(own_mhz, "software", "ecdsa-verify", bits) for bits in _CURVES]
    of_unit = [o for o in at_own if (o.by, o.name) == ("unit", "rsa")]
    others = [replace(o, clock_mhz=float(mhz)) for mhz in asked.clocks_mhz if mhz != own_mhz for o in of_unit]
    return at_own + others


def _wording(result: PublicKeyResult) -> str:
    size = f"{result.bits}/{result.exponent_bits}" if result.exponent_bits else str(result.bits)
    where = f"unit at {result.clock_mhz:g} MHz" if result.by == "unit" else "software"
    return f"public keys: {result.dut}, {where}, {result.operation} {size}: {result.ms:.4f} ms"


def _measure_board(
    dut: str,
    own_mhz: float,
    wanted: list[Operation],
    count: int,
    beds: Builder,
    new_generator: Callable[[], Generator],
    keep: Callable[[PublicKeyResult], None],
) -> None:
    """Measure figures of one device at one clock of its engine; each is passed to `keep` when it is made."""
    clock = wanted[0].clock_mhz
    generator = new_generator()
    bed = beds.build(_case(dut, None if clock == own_mhz else round(clock)))
    try:
        generator.open(list(bed.ports.values()), [])
        bed.attached(generator)
        gateway = bed.gateways["home"]
        if not isinstance(gateway, E500Gateway):
            raise EspbenchError(f"{dut}: only an emulated board has the test of the public-key unit")
        for operation in wanted:
            bed.begin_trial()
            answer = gateway.request(operation.request(count), timeout_s=_VIRTUAL_TIMEOUT_S)
            asked = {
                "dut": dut, "clock_mhz": clock, "by": operation.by, "operation": operation.name,
                "bits": operation.bits, "exponent_bits": operation.exponent_bits, "operations": count,
            }  # fmt: skip
            said = {key: answer[key] for key in ("whole_ns", "idle_ns", "overhead_ns")}
            keep(PublicKeyResult.model_validate(said | asked))
    finally:
        bed.close()
        generator.close()


def _key(result: PublicKeyResult) -> tuple[str, Operation]:
    return result.dut, Operation(
        result.clock_mhz, result.by, result.operation, result.bits, result.exponent_bits
    )


_FILE = File(
    accelerator.PUBLIC_KEY_FILE,
    accelerator.read_public_key_to_resume,
    accelerator.save_public_key,
    _key,
    _wording,
)


def _case(dut: str, engine_mhz: int | None) -> Case:
    """Return the case for which a test bed is built: the board with its engine at this clock."""
    return Case(
        id=f"public-key-{dut}-{engine_mhz or 'own'}",
        test="public_key_unit",
        settings=Throughput(),
        stack=StackChoice.model_validate({"stack": "xfrm", "crypto": "async"}),
        suite="3des-sha1",
        frame_size=64,
        sizes=((64, 1),),
        mean_frame_size=64.0,
        direction="one-way",
        ip_version=4,
        repeat=1,
        dut=dut,
        engine_mhz=engine_mhz,
    )
