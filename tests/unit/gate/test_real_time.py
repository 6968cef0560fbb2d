# SPDX-License-Identifier: Apache-2.0
"""A difference in real time must be shown and beyond the limit; without a verdict there is no green."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from espbench.comparison.build import of
from espbench.comparison.sorting.model import Comparison, Estimate, FixedLoadVerdict, PointVerdict
from espbench.gate import real_time
from espbench.gate.limits import DEFAULTS, Limit, Quantity
from espbench.gate.telling import json_file, junit, markdown
from espbench.gate.verdict import Check, Problem
from espbench.terms import PAIRED, Finding, Reason, Status, at_fixed_loads
from support.simulated import comparisons as simulated
from support.simulated import pairs
from support.synthetic import comparison as synthetic
from support.synthetic.gate import World

WORDS = {"A faster": 0.9, "B faster": 1.1, "no difference shown": 0.995, "no verdict": 0.9}


def comparison_of(point: PointVerdict, fixed: FixedLoadVerdict | None = None) -> Comparison:
    """A comparison with one point, and perhaps one at fixed loads."""
    made = synthetic.comparison(sizes=(64,))
    (panel,) = made.panels
    pair = replace(panel.pairs[0], points=[point])
    return replace(made, panels=[replace(panel, pairs=[pair])], fixed_loads=[fixed] if fixed else [])


def check(
    point: PointVerdict,
    fixed: FixedLoadVerdict | None = None,
    limits: Mapping[Quantity, Limit] = DEFAULTS,
) -> Check:
    """The verdict on one point of a comparison, and on one at fixed loads."""
    made = comparison_of(point, fixed)
    rows = real_time.rows(made, made.panels[0].pairs[0].b, limits)
    return Check("plan", "base", [], "run", "1", False, rows, [], {}, [], [])


def ratio(value: float) -> Estimate:
    return Estimate(value, value - 0.01, value + 0.01, 5)


@pytest.mark.parametrize(
    ("word", "value", "verdict", "code"),
    [
        ("A faster", 0.9, "regressed", 5),
        ("A faster", 0.99, "moved", 0),
        ("B faster", 1.1, "improved", 0),
        ("no difference shown", 0.995, "same", 0),
        ("no verdict", 0.9, "no verdict", 3),
    ],
)
def test_a_verdict_of_the_searches(word: str, value: float, verdict: str, code: int) -> None:
    """The limit is 2 %."""
    made = check(PointVerdict(64, ratio(value), word, "five repeats"))  # type: ignore[arg-type]
    assert [row.word for row in made.rows] == [verdict]
    assert made.exit_code == code


@pytest.mark.parametrize(
    ("low", "limit", "word"),
    [(0.95, 0.02, "same"), (0.85, 0.02, "no verdict"), (0.85, 0.2, "same"), (0.6, 0.2, "no verdict")],
)
def test_what_could_hide_a_large_regression_is_no_green(low: float, limit: float, word: str) -> None:
    """The noisier a machine is, the less a check may say; a wide limit asks for less."""
    limits = {**DEFAULTS, "throughput": Limit(share=limit)}
    made = check(
        PointVerdict(64, Estimate(0.97, low, 1.05, 3), "no difference shown", "three repeats"), limits=limits
    )
    assert [row.word for row in made.rows] == [word]
    assert made.exit_code == (0 if word == "same" else 3)
    unseen = f"a figure that is worse by {100 * (1 - low):.0f} % would not have been seen; three repeats"
    assert made.rows[0].why == (unseen if word == "no verdict" else "three repeats")


@pytest.mark.parametrize(("at_least", "word"), [(0.98, "same"), (0.85, "no verdict"), (None, "no verdict")])
def test_a_bound_may_exclude_a_large_regression(at_least: float | None, word: str) -> None:
    """The build under test met the limit of the tester, just above the base."""
    made = check(PointVerdict(64, None, "no difference shown", "a bound", at_least=at_least))
    assert [row.word for row in made.rows] == [word]
    unseen = {0.98: "", 0.85: "15 %", None: "any size"}[at_least]
    before = f"a figure that is worse by {unseen} would not have been seen; " if unseen else ""
    assert made.rows[0].why == f"{before}a bound"


@pytest.mark.parametrize(
    ("of_pairs", "words"), [(0.96, ["same"] * 3), (None, ["no verdict", "same", "no verdict"])]
)
def test_where_pairs_have_a_verdict_the_scatter_of_searches_decides_nothing(
    of_pairs: float | None, words: list[str]
) -> None:
    rate = None if of_pairs is None else Estimate(1.0, of_pairs, 1.04, 6)
    verdict = FixedLoadVerdict(
        {}, 64, synthetic.REFERENCE, synthetic.OTHER, ratio(1.0), "no difference shown",
        rate, "no difference shown" if rate else "no verdict", [], 12, 0, 24, 6, True, "twelve pairs", 0.0,
    )  # fmt: skip
    blind = PointVerdict(64, Estimate(1.0, 0.8, 1.2, 5), "no difference shown", "five repeats")
    assert [row.word for row in check(blind, verdict).rows] == words


@pytest.mark.parametrize(
    ("tests", "goals", "seen"),
    [
        (["throughput"], [0.0], ["same"]),
        (["throughput"], [0.0, 1e-5], ["same", "no verdict"]),
        (["throughput", "throughput-2"], [0.0], ["same", "no verdict"]),
    ],
)
def test_pairs_say_nothing_about_another_loss_goal_or_test(
    tests: list[str], goals: list[float], seen: list[str]
) -> None:
    """Pairs are made for the first loss goal of a test; the figures scatter so much that a third less is not seen."""
    outcomes = [
        simulated.made(arm, 64, number, fps, test=test, loss_goal=goal, case=f"{test}-{arm}-{number}")
        for test in tests
        for goal in goals
        for arm, scattered in (("a", (3e4, 2e4, 4e4, 2.5e4, 3.5e4)), ("b", (2.5e4, 4e4, 2e4, 3.5e4, 3e4)))
        for number, fps in enumerate(scattered, start=1)
    ]
    identity = {**pairs.IDENTITY, "case": at_fixed_loads("throughput-b-1")}
    of_pairs = pairs.measured(pairs.QUIET, 1.0, random.Random(1)).finding(
        identity, {"a": "a", "b": "b"}, "proven", []
    )
    run = simulated.run_of(outcomes, {"by": "stack"})
    made = real_time.rows(of([replace(run, paired=[of_pairs])]), "b", DEFAULTS)
    assert [row.word for row in made] == [*seen, "same", "same"]
    assert ("test throughput" in made[-1].case) == (len(tests) > 1)


def test_of_several_arms_each_row_names_its_own() -> None:
    """Their conditions are the same, so nothing else would tell which of them regressed."""
    several = synthetic.comparison(others=(synthetic.OTHER, synthetic.THIRD), sizes=(64,))
    arms = [arm.name for arm in several.arms[1:]]
    found = [row for arm in arms for row in real_time.rows(several, arm, DEFAULTS)]
    assert len({row.case for row in found}) == len(found)
    assert [row.case.split(": ")[0] for row in found] == arms
    worse = [replace(row, word="regressed") for row in found]
    made = Check("plan", "base", [], "run", "1", False, worse, [], {}, [], [])
    for form in (markdown, junit, json_file):
        assert all(row.case in form.text_of(made) for row in made.regressed)
    alone = synthetic.comparison(sizes=(64,))
    assert not any(
        arm.name in row.case for arm in alone.arms for row in real_time.rows(alone, arm.name, DEFAULTS)
    )


@pytest.mark.parametrize(
    ("test", "status", "why"),
    [
        ("throughput", "OK", "encryption not proven"),
        ("throughput-2", "OK", "encryption not proven"),
        ("failover", "OK", ""),
        ("rekey_loss-2", "OK", ""),
        ("reset", "INVALID", "INVALID: seen in clear"),
        ("failover", "VIOLATED", "VIOLATED: seen in clear"),
    ],
)
def test_only_what_is_gated_must_prove_its_encryption(
    tmp_path: Path, test: str, status: Status, why: str
) -> None:
    """A trial in which a gateway fails cannot prove it, and no check of such a plan would ever be green."""
    entry = World().entries[-1].model_copy(update={"case": "0005-more", "test": test})
    run = World(listed=[*World().entries, entry]).run(tmp_path)
    of_case = Finding(
        **entry.model_dump(exclude={"stack_kind", "options", "tunnels"}), status=status, load_fps=None,
        quantities=[], trials=2, rfc2544=False, encryption="not proven", reasons=[Reason.of_text("seen in clear")],
    )  # fmt: skip
    with run:
        run.save_results([of_case if result.case == entry.case else result for result in run.results()])
    assert real_time.problems(run) == ([Problem(entry.case, why)] if why else [])


def test_a_sentence_counts_what_has_no_verdict() -> None:
    made = check(PointVerdict(64, Estimate(1.0, 0.7, 1.2, 3), "no difference shown", "three repeats"))
    assert made.sentence == "not judged: 1 figures of 1 cases held against base: 1 no verdict"
    assert "would not have been seen; three repeats" in markdown.text_of(made)


def test_a_verdict_on_an_arm_that_is_not_there_is_a_problem() -> None:
    verdict = FixedLoadVerdict(
        {}, 64, synthetic.REFERENCE, "unknown", ratio(1.0), "no difference shown", ratio(1.0), "no difference shown",
        [], 12, 0, 24, 6, True, "twelve pairs",
    )  # fmt: skip
    made = comparison_of(PointVerdict(64, ratio(1.0), "no difference shown", ""), verdict)
    assert [p.why for p in real_time.unjudged(made, [synthetic.OTHER])] == [
        "the comparison has no arm unknown"
    ]


def test_more_cpu_per_frame_is_worse() -> None:
    verdict = FixedLoadVerdict(
        {}, 64, synthetic.REFERENCE, synthetic.OTHER, Estimate(1.0, 0.7, 1.05, 6), "no difference shown",
        Estimate(1.0, 0.96, 1.4, 6), "no difference shown", [], 12, 0, 24, 6, True, "twelve pairs",
    )  # fmt: skip
    same = PointVerdict(64, ratio(1.0), "no difference shown", "")
    assert [row.word for row in check(same, verdict).rows[1:]] == ["same", "same"]
    dearer = replace(verdict, cpu=Estimate(1.0, 0.7, 1.3, 6))
    assert [row.word for row in check(same, dearer).rows[1:]] == ["no verdict", "same"]


def test_a_note_says_how_much_worse_what_is_the_same_may_be() -> None:
    made = comparison_of(PointVerdict(64, Estimate(1.0, 0.953, 1.02, 5), "no difference shown", ""))
    arm = made.panels[0].pairs[0].b
    (note,) = real_time.unseen(made, [arm], DEFAULTS)
    expected = f"{arm}: a figure without a shown difference may be worse by up to 4.7 % (throughput, "
    assert note.startswith(expected)
    shown = comparison_of(PointVerdict(64, ratio(0.9), "A faster", ""))
    assert real_time.unseen(shown, [arm], DEFAULTS) == []


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
