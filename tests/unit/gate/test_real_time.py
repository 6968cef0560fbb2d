# SPDX-License-Identifier: Apache-2.0
"""A difference in real time must be shown and beyond the limit; without a verdict there is no green."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from espbench.comparison.sorting.model import Estimate, FixedLoadVerdict, PointVerdict
from espbench.gate import real_time
from espbench.gate.limits import DEFAULTS
from espbench.gate.verdict import Check, Problem
from espbench.terms import PAIRED, Finding, Reason
from support.synthetic import comparison as synthetic
from support.synthetic.gate import World

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


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"status": "VIOLATED", "encryption": "not proven"}, "VIOLATED: seen in clear"),
        ({"status": "INVALID"}, "INVALID: seen in clear"),
        ({"encryption": "not proven"}, "encryption not proven"),
        ({"encryption": "baseline"}, ""),
    ],
)
def test_pairs_that_leaked_or_were_not_made_are_problems(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    """Their results belong to no case of the manifest, and those without pairs have no verdict of the comparison."""
    run = World().run(tmp_path)
    entry = run.manifest.cases[-1]
    pairs = Finding(
        **entry.model_dump(exclude={"case", "test", "stack_kind", "options", "tunnels"}), case=f"{entry.case}-at",
        test=PAIRED, status="OK", load_fps=None, quantities=[], trials=2, rfc2544=False, encryption="proven",
        reasons=[Reason.of_text("seen in clear")],
    )  # fmt: skip
    with run:
        run.save_results([*run.results(), pairs.model_copy(update=change)])
    expected = [Problem(f"{entry.case}-at", why)] if why else []
    assert real_time.problems(run) == expected
    assert real_time.problems(run, [entry.stack]) == expected
    assert real_time.problems(run, ["plain"]) == []
