# SPDX-License-Identifier: Apache-2.0
"""Real code on the machine: known answers of every kernel and level, and figures that can be computed by hand.

Ports, queues and instructions by themselves are tested in Rust, harness/network_processor/machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from espbench.errors import EspbenchError
from espbench.npcrypt import compilers, machine, measure, prices
from espbench.npcrypt.ciphers import KERNELS
from espbench.npcrypt.compilers import Compilation
from espbench.npcrypt.measure import Configuration, Programs
from espbench.npcrypt.processes import Processes
from espbench.plan import load_profile
from espbench.plan.duts.processors import Processor
from espbench.plan.keys.kernel_test import FasterMemory, KernelName
from espbench.this_machine.registry import Registry
from support.session.slow import slow_but

NAMES: tuple[KernelName, ...] = get_args(KernelName)
built = pytest.mark.needs("ixp", "gcc-riscv64-unknown-elf", "clang")


def processor(name: str = "ixp2800") -> Processor:
    described = load_profile(name).processor
    assert described is not None
    return described


def configuration(kernel: KernelName, level: int = 0, **changes: object) -> Configuration:
    fields = {
        "dut": "ixp2800", "kernel": kernel, "engines": 1, "threads": 1, "data": 256,
        "compilation": Compilation(level, "gcc", "O2"),  # type: ignore[arg-type]
        "faster_dram": 0.0, "faster_sram": 0.0,
    }  # fmt: skip
    return Configuration(**fields | changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Return those of a registry with a journal of its own."""
    with Registry("unit", tmp_path_factory.mktemp("state") / "journals") as registry:
        yield Processes(registry)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory, processes: Processes) -> Programs:
    """Each program is compiled for all tests once."""
    return Programs(tmp_path_factory.mktemp("programs"), processes)


def test_the_plan_names_the_kernels_there_are() -> None:
    assert set(NAMES) == set(KERNELS)


@built
@pytest.mark.parametrize("dut", slow_but(["ixp2800"], ["ixp1200", "ixp2800"]))
@pytest.mark.parametrize("levels", slow_but([[0, 3]], [[0, 3], [1, 2]]), ids=str)
@pytest.mark.parametrize("kernel", NAMES)
def test_known_answers_come_out_of_the_machine(
    kernel: KernelName, levels: list[int], dut: str, programs: Programs
) -> None:
    """They do so at every level, with and without multiplication, rotation and local memory, to the byte."""
    for level in levels:
        result = measure.measure(configuration(kernel, level, dut=dut), processor(dut), programs)
        assert result.checked == KERNELS[kernel].output_bytes(256)
        assert result.executing + result.aborted + result.idle + result.stalled == pytest.approx(1)


@built
@pytest.mark.parametrize(("compiler", "option"), [("gcc", "O0"), ("clang", "O0"), ("clang", "O2")])
def test_the_other_compilers_code_computes_the_same(compiler: str, option: str, programs: Programs) -> None:
    for kernel in ("idea", "rc4"):
        compilation = Compilation(0, compiler, option)  # type: ignore[arg-type]
        measure.measure(configuration(kernel, compilation=compilation), processor(), programs)


@built
def test_a_kernel_that_computes_something_else_gives_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: Processes
) -> None:
    """One wrong word among the tables."""
    rc5 = KERNELS["rc5"]
    wrong = rc5.tables(rc5.key)["rc5_key"]
    broken = Programs(tmp_path, processes)
    broken.of(configuration("rc5"), processor())
    tables = {"rc5_key": [*wrong[:-1], wrong[-1] ^ 1]}
    monkeypatch.setitem(
        KERNELS, "rc5", type(rc5)(**{**vars(rc5), "tables": lambda key: tables})
    )  # fmt: skip
    with pytest.raises(EspbenchError, match="RC5 computed something else"):
        measure.measure(configuration("rc5"), processor(), broken)


@built
def test_c_that_does_not_compile_is_told_in_the_compilers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilers, "_FLAGS", (*compilers._FLAGS, "-DCHUNK_WORDS=oops"))
    with pytest.raises(EspbenchError, match=r"CHUNK_WORDS"):
        compilers.compiled(KERNELS["rc5"], Compilation(0, "gcc", "O2"), processor(), tmp_path)


@built
def test_eight_engines_without_congestion_do_eight_times_the_work(programs: Programs) -> None:
    """DES keeps its tables in local memory and seldom asks for data."""
    one, eight = (measure.measure(configuration("des", 2, engines=n), processor(), programs) for n in (1, 8))
    assert eight.mbps == pytest.approx(8 * one.mbps, rel=0.01)


@built
def test_a_processor_whose_dram_has_no_room_congests(programs: Programs) -> None:
    """SEAL on 64 threads: the ports are busy all the time, and throughput is what they serve."""
    c = configuration("seal", 2, engines=8, threads=8, data=2048)
    result = measure.measure(c, processor(), programs)
    dram = processor().assumed.dram
    # Each 16 bytes are read and written: two references of (8 + 4) clocks of 400 MHz on one of three channels.
    clocks = 2 * (dram.command + dram.transfer) / dram.channels
    served = 16 * 8 * processor().stated.dram.clock / clocks / 1e6
    assert result.memories["dram"].busy > 0.85
    assert result.mbps == pytest.approx(served * result.memories["dram"].busy, rel=0.07)
    assert result.mbps < served


def test_latencies_and_prices_are_in_cycles_of_an_engine() -> None:
    """Table III as it is; clocks of a bus as cycles, in thousandths."""
    asked = prices.machine(processor(), FasterMemory())
    assert (asked["dram"]["read"], asked["dram"]["write"], asked["dram"]["unit"]) == (291, 54, 16)
    assert (asked["dram"]["command"], asked["dram"]["transfer"]) == (28_000, 14_000)  # 8 and 4 of 3.5 cycles
    assert (asked["sram"]["read"], asked["sram"]["transfer"]) == (100, 7_000)
    assert (asked["scratch"]["read"], asked["scratch"]["write"], asked["scratch"]["transfer"]) == (
        56,
        40,
        2_000,
    )
    assert asked["local"] == 2560


def test_faster_memories_have_shorter_latencies_and_prices() -> None:
    asked = prices.machine(processor(), FasterMemory.model_validate({"dram": "16.5%", "sram": "33.5%"}))
    assert (asked["dram"]["read"], asked["dram"]["transfer"]) == (round(291 / 1.165), round(14_000 / 1.165))
    assert (asked["sram"]["read"], asked["sram"]["transfer"]) == (round(100 / 1.335), round(7_000 / 1.335))
    assert asked["scratch"] == prices.machine(processor(), FasterMemory())["scratch"]


@built
def test_what_the_machine_refuses_is_told(processes: Processes) -> None:
    with pytest.raises(EspbenchError, match="espbench-ixp: the request: "):
        machine.run(Path("/dev/null"), {}, processes)
