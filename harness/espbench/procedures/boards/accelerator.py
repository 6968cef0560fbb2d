# SPDX-License-Identifier: Apache-2.0
"""The driver-level accelerator test: the guest of one gateway runs it, for each suite, block size and variant.

It follows Waters, "Understanding Crypto Performance in Embedded Systems", part 2, figure 1: one key, all blocks
different, and two runs: each operation after the one before, and all operations at once. The article's variables are
in `Variant`. Each figure begins in the same state of the guest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import product
from typing import Any, Protocol

from espbench.generators.base import Generator
from espbench.plan.keys.model import Accelerator, Throughput
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import Testbed
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.procedures.boards.crypto_api import UmlGuest
from espbench.procedures.boards.kept import File, Kept
from espbench.results import RunDirectory, accelerator
from espbench.results.accelerator import AcceleratorResult, Figure, Variant, key

_VIRTUAL_TIMEOUT_S = 3600.0


class Builder(Protocol):
    """Makes test beds."""

    def build(self, case: Case) -> Testbed: ...


def measure(
    asked: Accelerator,
    duts: list[str],
    beds: Builder,
    new_generator: Callable[[], Generator],
    directory: RunDirectory,
    note: Callable[[str], None],
) -> list[AcceleratorResult]:
    """Measure every figure that the run lacks, and return all. Each figure is on disk before the next is begun."""
    figures = kept(asked, duts, directory, note)
    for dut in duts:
        for crypto in asked.crypto:
            wanted = [figure[2:] for figure in figures.missing() if figure[:2] == (dut, crypto)]
            if wanted:
                measure_dut(dut, crypto, wanted, asked.operations, beds, new_generator, figures.take)
    return figures.results


def points(asked: Accelerator, duts: Sequence[str]) -> list[Figure]:
    """Return every figure of a test, in the plan's order."""
    variants = [Variant.model_validate(variant.model_dump()) for variant in asked.variants]
    return [*product(duts, asked.crypto, asked.suites, asked.sizes, variants)]


class Guest(Protocol):
    """A guest that runs the test. `ask` returns the fields of AcceleratorResult that only the guest knows."""

    def ask(self, suite: str, size: int, operations: int, variant: Variant) -> dict[str, Any]: ...
    def close(self) -> None: ...


class BoardGuest:
    """Asks a board's kernel; each figure begins in the same state."""

    def __init__(self, bed: Testbed, gateway: E500Gateway) -> None:
        self._bed = bed
        self._gateway = gateway

    def ask(self, suite: str, size: int, operations: int, variant: Variant) -> dict[str, Any]:
        """Run one test and return the guest's answer."""
        self._bed.begin_trial()
        request = " ".join(["accel", suite, str(size), str(operations), *variant.words])
        return self._gateway.request(request, timeout_s=_VIRTUAL_TIMEOUT_S)

    def close(self) -> None:
        """Do nothing: the board ends with its test bed."""


def kept(
    asked: Accelerator, duts: Sequence[str], directory: RunDirectory, note: Callable[[str], None]
) -> Kept[AcceleratorResult, Figure]:
    """Return the store of the run's figures."""
    return Kept(_FILE, points(asked, duts), asked.operations, directory, note)


def _wording(result: AcceleratorResult) -> str:
    what = ", ".join([result.dut, result.crypto, result.suite, f"{result.size} B", *result.variant.words])
    if result.disturbed_pct is not None:
        return (
            f"accelerator test: {what}: INVALID: in each attempt the host took too much of the guest's time, "
            f"in the last {result.disturbed_pct:.0f} %"
        )
    return f"accelerator test: {what}: all at once {result.gain:.2f} times as fast"


_FILE = File(
    accelerator.FILE,
    accelerator.read_to_resume,
    accelerator.save,
    key,
    _wording,
    lambda result: result.is_valid,
)


def measure_dut(
    dut: str,
    crypto: str,
    wanted: Sequence[tuple[str, int, Variant]],
    operations: int,
    beds: Builder,
    new_generator: Callable[[], Generator],
    take: Callable[[AcceleratorResult], None],
) -> None:
    """Measure figures of one device with one use of its crypto engine (`crypto`); each is passed to `take` when it is
    made.
    """
    generator = new_generator()
    bed = beds.build(_case(dut, crypto))
    try:
        generator.open(list(bed.ports.values()), [])
        bed.attached(generator)
        with closing(_guest(bed)) as guest:
            _measure_all(dut, crypto, wanted, operations, guest, take)
    finally:
        bed.close()
        generator.close()


def _measure_all(
    dut: str,
    crypto: str,
    wanted: Sequence[tuple[str, int, Variant]],
    operations: int,
    guest: Guest,
    take: Callable[[AcceleratorResult], None],
) -> None:
    for suite, size, variant in wanted:
        answer = guest.ask(suite, size, operations, variant)
        asked = {
            "dut": dut, "suite": suite, "size": size, "operations": operations, "crypto": crypto,
            "variant": variant,
        }  # fmt: skip
        said = {key: value for key, value in answer.items() if key in AcceleratorResult.model_fields}
        take(AcceleratorResult.model_validate(said | asked))


def _guest(bed: Testbed) -> Guest:
    gateway = bed.gateways["home"]
    return BoardGuest(bed, gateway) if isinstance(gateway, E500Gateway) else UmlGuest(bed)


def _case(dut: str, crypto: str) -> Case:
    """Return the case for which a test bed is built: the board with this use of its crypto engine."""
    return Case(
        id=f"accelerator-{dut}-{crypto}",
        test="accelerator",
        settings=Throughput(),
        stack=StackChoice.model_validate({"stack": "xfrm", "crypto": crypto}),
        suite="3des-sha1",
        frame_size=64,
        sizes=((64, 1),),
        mean_frame_size=64.0,
        direction="one-way",
        ip_version=4,
        repeat=1,
        dut=dut,
    )
