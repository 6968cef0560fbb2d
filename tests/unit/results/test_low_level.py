# SPDX-License-Identifier: Apache-2.0
"""A computed accelerator without DMA against the measured one: with which times of an access a claim holds."""

from __future__ import annotations

import pytest

from espbench.claims import Claim, Points, claims
from espbench.claims.measures import our_value
from espbench.results.accelerator import AcceleratorResult, Variant

(CROSSOVER,) = [claim for claim in claims() if claim.id == "low-level"]
(NONE,) = [claim for claim in claims() if claim.id == "low-level-no-crossover"]


def points(after_64: int, after_256: int, at_once_64: int = 1000) -> Points:
    """Results of the accelerator test with these ns for an operation."""
    made = [
        AcceleratorResult(
            dut="mpc8548e", suite="3des-sha1", size=size, operations=10, driver="made-up",
            after_ns=10 * after, at_once_ns=10 * at_once_64, full=0,
        )
        for size, after in ((64, after_64), (256, after_256))
    ]  # fmt: skip
    return Points((), tuple(made))


@pytest.mark.parametrize(
    ("after_64", "after_256", "holds", "text"),
    [
        # 44 accesses and 659 ns of its units for 64 B; 116 and 2,637 ns for 256 B.
        (659 + 44 * 80, 2637 + 116 * 20, True, "with accesses of 20 to 80 ns"),
        (659 + 44 * 20, 2637 + 116 * 80, False, "with no time of an access"),
        (659 + 44 * 300, 2637 + 116 * 20, True, "with accesses of 20 to 200 ns"),
        (659 + 44 * 80, 2000, True, "with accesses of 0 to 80 ns"),
    ],
    ids=["between", "the wrong way round", "longer than any", "always later"],
)
def test_the_crossover_is_told_as_the_times_of_an_access(
    after_64: int, after_256: int, holds: bool, text: str
) -> None:
    ours = our_value(CROSSOVER, points(after_64, after_256))
    assert (ours.holds, ours.text) == (holds, text)


@pytest.mark.parametrize(("at_once", "holds"), [(659 + 44 * 35, True), (659 + 44 * 250, False)])
def test_without_the_drivers_time_the_measured_one_may_be_first_at_once(at_once: int, holds: bool) -> None:
    ours = our_value(NONE, points(9000, 9000, at_once))
    assert ours.holds is holds


@pytest.mark.parametrize("claim", [CROSSOVER, NONE], ids=["crossover", "none"])
def test_without_the_accelerator_test_there_is_no_answer(claim: Claim) -> None:
    assert "mpc8548e: accelerator test of 3des-sha1 at 64" in our_value(claim, Points(())).missing


def test_a_variant_of_the_test_is_no_answer() -> None:
    """A run with prebuilt descriptors, say, that is compared together with one of the test as it is."""
    usual = points(659 + 44 * 80, 2637 + 116 * 20)
    slow = [a.model_copy(update={"after_ns": 10**6, "variant": Variant(keys=16)}) for a in usual.accelerator]
    both = Points((), (*usual.accelerator, *slow))
    assert repr(our_value(CROSSOVER, both)) == repr(our_value(CROSSOVER, usual))  # no NaN is equal to itself
    assert our_value(CROSSOVER, Points((), tuple(slow))).missing


def test_of_several_runs_the_one_of_most_operations_answers() -> None:
    usual = points(659 + 44 * 80, 2637 + 116 * 20)
    short = [a.model_copy(update={"operations": 1, "after_ns": 1}) for a in usual.accelerator]
    both = Points((), (*usual.accelerator, *short))
    assert repr(our_value(CROSSOVER, both)) == repr(our_value(CROSSOVER, usual))
