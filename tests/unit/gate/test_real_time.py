# SPDX-License-Identifier: Apache-2.0
"""A difference in real time must be shown and beyond the limit; without a verdict there is no green."""

from __future__ import annotations

from dataclasses import replace

import pytest

from espbench.comparison.sorting.model import Estimate, FixedLoadVerdict, PointVerdict
from espbench.gate import real_time
from espbench.gate.limits import DEFAULTS
from espbench.gate.verdict import Check
from support.synthetic import comparison as synthetic

WORDS = {"A faster": 0.9, "B faster": 1.1, "no difference shown": 0.9, "no verdict": 0.9}


def check(point: PointVerdict, fixed: FixedLoadVerdict | None = None) -> Check:
    """The verdict on one point of a comparison, and on one at fixed loads."""
    made = synthetic.comparison(sizes=(64,))
    (panel,) = made.panels
    pair = replace(panel.pairs[0], points=[point])
    made = replace(made, panels=[replace(panel, pairs=[pair])], fixed_loads=[fixed] if fixed else [])
    rows = real_time.rows(made, pair.b, DEFAULTS)
    return Check("plan", "base", [], "run", "1", False, rows, [], {}, [], [])


def ratio(value: float) -> Estimate:
    return Estimate(value, value - 0.01, value + 0.01, 5)


@pytest.mark.parametrize(
    ("word", "value", "verdict", "code"),
    [
        ("A faster", 0.9, "regressed", 5),
        ("A faster", 0.99, "moved", 0),
        ("B faster", 1.1, "improved", 0),
        ("no difference shown", 0.9, "same", 0),
        ("no verdict", 0.9, "no verdict", 3),
    ],
)
def test_a_verdict_of_the_searches(word: str, value: float, verdict: str, code: int) -> None:
    """The limit is 2 %."""
    made = check(PointVerdict(64, ratio(value), word, "five repeats"))  # type: ignore[arg-type]
    assert [row.word for row in made.rows] == [verdict]
    assert made.exit_code == code


def test_a_bound_has_no_size_that_would_excuse_it() -> None:
    made = check(PointVerdict(64, None, "A faster", "a bound", at_most=0.995))
    assert made.exit_code == 5


@pytest.mark.parametrize(
    ("cpu_word", "cpu", "word", "words"),
    [
        ("B costs more", 1.05, "no difference shown", ["regressed", "same"]),
        ("B costs more", 1.0005, "no difference shown", ["moved", "same"]),
        ("B costs less", 0.9, "B faster", ["improved", "improved"]),
        ("no verdict", 1.05, "A faster", ["no verdict", "regressed"]),
    ],
)
def test_a_verdict_of_pairs_at_the_same_loads(cpu_word: str, cpu: float, word: str, words: list[str]) -> None:
    verdict = FixedLoadVerdict(
        {}, 64, synthetic.REFERENCE, synthetic.OTHER, ratio(cpu), cpu_word, ratio(WORDS[word]), word,  # type: ignore[arg-type]
        [], 12, 0, 24, 6, True, "twelve pairs",
    )  # fmt: skip
    made = check(PointVerdict(64, ratio(1.0), "no difference shown", ""), verdict)
    assert [row.word for row in made.rows[1:]] == words
