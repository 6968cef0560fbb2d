# SPDX-License-Identifier: Apache-2.0
"""`--limit`: a share, a number, or the larger of both."""

from __future__ import annotations

import pytest

from espbench.errors import UsageError
from espbench.gate.limits import DEFAULTS, Limit, limits


@pytest.mark.parametrize(
    ("text", "limit", "of_10000"),
    [
        ("instructions=0.1%", Limit(share=0.001), 10.0),
        ("instructions=50", Limit(number=50.0), 50.0),
        ("instructions=0.1%|50", Limit(0.001, 50.0), 50.0),
        ("instructions=0", Limit(), 0.0),
    ],
)
def test_a_limit_is_read(text: str, limit: Limit, of_10000: float) -> None:
    instructions = limits([text])["instructions"]
    assert instructions == limit
    assert instructions.allowance(10_000.0) == pytest.approx(of_10000)
    assert limits([f"instructions={instructions}"])["instructions"].allowance(1e4) == pytest.approx(of_10000)


def test_what_is_not_named_has_its_default() -> None:
    assert limits(["throughput=5%"]) == {**DEFAULTS, "throughput": Limit(share=0.05)}


@pytest.mark.parametrize(
    "text",
    ["", "instructions", "instructions=", "instructions=x", "instructions=-1", "cpu=1%", "instructions=100%",
     "instructions=1%|", "instructions=nan", "instructions=1e400",
     "instructions=0.1%|10%", "instructions=10%|0.1%", "instructions=50|5", "instructions=0%|1%|5"],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text: str) -> None:
    """A limit that nobody understood would let everything pass."""
    with pytest.raises(UsageError, match="--limit: expected"):
        limits([text])


def test_two_limits_of_one_quantity_are_refused() -> None:
    with pytest.raises(UsageError, match="expected one limit of instructions"):
        limits(["instructions=1", "instructions=2"])
