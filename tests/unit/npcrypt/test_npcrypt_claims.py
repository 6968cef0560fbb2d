# SPDX-License-Identifier: Apache-2.0
"""Claims of NPCryptBench held against results that nobody measured: each can agree, differ, or lack a configuration."""

from __future__ import annotations

from typing import Any

import pytest

from espbench.claims import claims
from espbench.claims.kernel_measures import KERNELS, MEASURES, answer
from espbench.claims.model import Kernels
from espbench.claims.our_value import OurValue
from espbench.results.kernels import KINDS, KernelResult
from support.synthetic.kernels import everything, made

OURS = [c for c in claims() if c.document == "npcryptbench"]


def changed(**conditions: Any) -> list[KernelResult]:
    """Every configuration; those that meet the conditions, but for `to`, get its fields."""
    to = conditions.pop("to")

    def meets(r: KernelResult) -> bool:
        return all(
            getattr(r, key) in (value if isinstance(value, tuple) else (value,))
            for key, value in conditions.items()
        )

    return [r.model_copy(update=to) if meets(r) else r for r in everything()]


def held(what: str, results: list[KernelResult], dut: str = "ixp2800") -> OurValue:
    return answer(what, dut, results)


def test_every_measure_answers_a_claim_and_every_claim_has_its_measure() -> None:
    assert {c.ours.what for c in OURS if isinstance(c.ours, Kernels)} == set(MEASURES)


def test_every_claim_that_is_measured_was_predicted() -> None:
    """Before the first run; but for what follows from table III by itself."""
    given = [c for c in OURS if c.ours is not None and "follows from the profile" not in c.note]
    assert len(given) > 55
    assert [c.id for c in given if not c.predicted] == []


@pytest.mark.parametrize("what", sorted(set(MEASURES) - {"latency growth"}))
def test_a_measure_says_what_was_not_measured(what: str) -> None:
    """Nothing is judged by a part of the kernels."""
    assert held(what, everything()).exists
    assert held(what, []).missing.startswith("ixp")
    without = [r for r in everything() if r.kernel != "seal"]
    if what not in (
        "des more yet faster",
        "memory time of hashes",
        "branch time",
        "little for des and idea",
        "storage",
    ):
        assert held(what, without).missing, what


def count(**kinds: int) -> dict[str, int]:
    return dict.fromkeys(KINDS, 0) | kinds


FAST, SLOW = {"cycles": 10_000}, {"cycles": 2_000_000}


@pytest.mark.parametrize(
    ("what", "results"),
    [
        ("aes slowest", changed(kernel="aes", dut="ixp2800", to=SLOW)),
        ("rc6 and idea slowest", changed(kernel=("rc6", "idea"), dut="ixp2800", to=SLOW)),
        ("streams to blocks", changed(kernel=("rc4", "seal"), to=FAST)),
        ("gain of the clock", changed(kernel="seal", dut="ixp2400", to={"clock_hz": 600_000_000})),
        (
            "idle over half",
            changed(kernel=("aes", "rc4", "rc5", "rc6", "blowfish", "seal"), to={"idle": 0.6}),
        ),
        ("near linear", changed(kernel=("des", "idea", "sha1"), engines=8, to={"cycles": 160_000})),
        (
            "threads help",
            changed(kernel=("aes", "blowfish", "seal"), threads=4, engines=1, to={"cycles": 30_000}),
        ),
        ("level 3 against faster memory", changed(level=3, engines=8, to={"cycles": 10_000})),
        (
            "rc4, rc5, rc6 gain most",
            changed(kernel=("rc4", "rc5", "rc6"), level=3, engines=8, to={"cycles": 9_000}),
        ),
        ("hashes longer", changed(kernel=("md5", "sha1"), to={"code": count(simple=500)})),
        ("des longest", changed(kernel="des", to={"code": count(simple=500)})),
        ("small ciphers", changed(level=0, to={"code": count(simple=200)})),
        ("idle rises to 2800", changed(dut="ixp2400", to={"idle": 0.2})),
        ("rarely aborted", changed(dut="ixp1200", to={"aborted": 0.3})),
        ("by hand against compiler", changed(level=2, engines=1, threads=1, to=FAST)),
    ],
)
def test_a_statement_can_hold_and_can_fail(what: str, results: list[KernelResult]) -> None:
    """With figures that are all alike it does not hold, or with those it is about it does."""
    assert held(what, results).holds is True
    other_kernel = dict(zip(KERNELS, reversed(KERNELS), strict=True))
    opposite = [r.model_copy(update={"kernel": other_kernel[r.kernel]}) for r in results]
    longer = [r.model_copy(update={"code": count(simple=900)}) for r in results]
    others = (everything(), opposite, longer, reversed_figures(results))
    assert any(held(what, other).holds is False for other in others)


def reversed_figures(results: list[KernelResult]) -> list[KernelResult]:
    """The figures of the first configuration to the last one, and so on."""
    keys = (
        "dut",
        "kernel",
        "level",
        "compiler",
        "option",
        "engines",
        "threads",
        "faster_dram",
        "faster_sram",
    )
    return [
        other.model_copy(update={key: getattr(r, key) for key in keys})
        for r, other in zip(results, reversed(results), strict=True)
    ]


def test_gains_are_means_over_the_kernels() -> None:
    """One that is ten times as fast is +900 %, of ten +90 %."""
    results = changed(kernel="aes", level=2, engines=1, threads=1, to={"cycles": 2_048})
    assert held("by hand", results).low == pytest.approx(90)
    assert held("level 3", everything()).low == pytest.approx(3100)  # level 2 takes 32 times as long


def test_memory_time_has_waiting_in_it() -> None:
    """Two of nine equal kinds are of memory: two ninths of the 60 % not waited, and the 40 % waited."""
    assert made().memory_time == pytest.approx(0.4 + 0.6 * 2 / 9)
    assert held("memory time", everything()).low == pytest.approx(100 * made().memory_time)


def test_throughput_is_bytes_by_time() -> None:
    """2,048 bytes in 20,480 cycles of 1.4 GHz."""
    assert made().mbps == pytest.approx(2048 * 8 / (20_480 / 1.4e9) / 1e6)
    assert made(engines=8, threads=4).total_bytes == 2048 * 32
