# SPDX-License-Identifier: Apache-2.0
"""Rewording any sentence, label or title changes no behaviour: everything is done twice, once in other words."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from espbench import quantities, sentences
from espbench.comparison.build import of
from espbench.comparison.sorting import comparability
from espbench.comparison.sorting.model import Axis, Condition
from espbench.comparison.sorting.samples import Run
from espbench.plan.keys.rfc2544_tests import BackToBack, Flood, FrameLoss, Latency, SystemRecovery
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import CaseFacts
from espbench.procedures.rfc2544.throughput import ThroughputCase
from espbench.reporting.one_run.run_tables import losses
from espbench.reporting.one_run.trial_cases import TrialCase
from espbench.reporting.one_run.view import Report, view
from espbench.reporting.parts.statements import kind
from espbench.reporting.parts.trial_digest import TrialDigest, digest
from espbench.results import RunDirectory
from espbench.runs.procedure_kinds import procedure_for
from espbench.search import GoalResult
from espbench.sentences import Code, Place, place_text
from espbench.terms import Finding, Reason, Remark, problems_of, problems_recorded
from support.session.slow import slow_but
from support.simulated import comparisons as sim
from support.simulated import duts, procedures
from support.simulated.procedures import LINE, case_of, known
from support.simulated.queue import QueueDut
from support.simulated.throughput import MAXIMUM, case, maximum_after, short
from support.synthetic import findings as synthetic_findings
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(
    sizes=(64, 256, 512, 1024),
    suites=("3des-sha1", "aes128-sha1", "null-null"),
    tests=synthetic_findings.TESTS,
)


def garbage(text: str) -> str:
    """Other words for a template: with its values, and nothing else of it."""
    places = re.findall(r"\{[^{}]*\}", text)
    return " ".join([hashlib.sha256(text.encode()).hexdigest()[:12], *places])


@contextmanager
def reworded() -> Iterator[None]:
    """All that espbench says, in other words."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TEMPLATES", "FLAGS", "PLACES"):
            table = getattr(sentences, name)
            patch.setattr(sentences, name, {code: garbage(text) for code, text in table.items()})
        kinds = {
            key: dataclasses.replace(kind, label=garbage(kind.label))
            for key, kind in quantities.KINDS.items()
        }
        patch.setattr(quantities, "KINDS", kinds)
        patch.setattr(
            comparability, "Condition", lambda part, key, title: Condition(part, key, garbage(title))
        )
        yield


def same_in_other_words(compute: Callable[[], Any]) -> Any:
    """Return what is found, which must be the same however it is worded."""
    first = compute()
    with reworded():
        assert compute() == first
    return first


def test_other_words_are_other_words() -> None:
    """The tests below would prove nothing if it were not so."""
    plain = Remark.of(Code.AT_MAXIMUM, fps=5.0).text
    with reworded():
        assert Remark.of(Code.AT_MAXIMUM, fps=5.0).text != plain
        label = quantities.figure(quantities.Key.BURST, 1.0).name
    assert label != "back-to-back frames"


def test_every_code_has_a_sentence() -> None:
    """Each sentence has a code, too; who makes a statement errs if its template lacks one of the values."""
    assert set(sentences.TEMPLATES) == set(Code)
    assert set(sentences.FLAGS) <= set(Code)
    assert set(quantities.KINDS) == set(quantities.Key)
    assert set(sentences.PLACES) == set(Place) - {Place.XFRM_ERROR, Place.OTHER_ERROR}  # names of counters


def test_a_statement_that_was_read_again_is_the_one_written() -> None:
    """The values of a statement may be statements."""
    why = [Reason.of(Code.OFFERED_LESS), Reason.of(Code.CLOCK_STEPPED, ms=2.5)]
    reason = Reason.of(Code.GIVEN_UP, trials=4, fps=1e5, why=why)
    assert Reason.model_validate_json(reason.model_dump_json()) == reason
    assert reason.text == (
        "4 trials at 100,000 frames/s could not be judged: less was offered than was asked for; "
        "the system clock stepped by 2.5 ms during the trial"
    )


def _verdicts(results: list[GoalResult]) -> list[Any]:
    return [(r.status, r.throughput_fps, r.lower_fps, r.upper_fps, r.trials, r.void_finals) for r in results]


SEARCHES: dict[str, Callable[[], Any]] = {
    "bisection": duts.a_search,
    "mlr": partial(duts.an_mlr_search, "csit"),  # it takes seconds
}


@pytest.mark.parametrize(
    ("method", "seed"),
    slow_but([("bisection", 0), ("bisection", 1), ("mlr", 0)], product(SEARCHES, range(5))),
)
def test_searches_find_the_same(method: str, seed: int) -> None:
    """A DUT with bursts of loss, on a host that spoils trials."""

    def compute() -> list[Any]:
        search = SEARCHES[method]()
        duts.run(search, duts.Noisy(37_000, seed, bursts=0.3, invalid=0.4))
        return _verdicts(search.results())

    same_in_other_words(compute)


def test_a_generator_that_falls_short_lowers_the_maximum_all_the_same(tmp_path: Path) -> None:
    """Twice, by its own doing; in virtual time because of the link."""
    (tmp_path / "a").mkdir()
    assert same_in_other_words(lambda: maximum_after(tmp_path / "a", False, False)) < MAXIMUM

    def late() -> float:
        reason = Reason.of(Code.LATE_IN_VIRTUAL_TIME, most_us=9.0)
        measured = case(tmp_path / "a")
        trials = [
            short(measured, n).model_copy(update={"validity": "INVALID", "reasons": [reason]}) for n in (0, 1)
        ]
        limits = Limits(1000.0, MAXIMUM, MAXIMUM, None)
        return ThroughputCase(measured, limits, [512], trials).search.maximum_fps

    assert same_in_other_words(late) < MAXIMUM


def test_whose_part_a_reason_is_does_not_hang_on_its_words() -> None:
    """After a trial that the host spoilt, a run waits."""
    of_host = Reason.of(Code.HOST_STARVATION, starved_pct=9.0, stolen_pct=0.0)
    assert same_in_other_words(lambda: of_host.of_host)
    assert not same_in_other_words(lambda: Reason.of(Code.CLOCK_STEPPED, ms=2.0).of_host)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("latency", Latency(repeats=3)),
        ("frame_loss", FrameLoss()),
        ("back_to_back", BackToBack(searches=2)),
        ("system_recovery", SystemRecovery()),
        ("flood", Flood()),
    ],
)
@pytest.mark.parametrize("throughput_fps", [40_000.0, LINE, None])
def test_tests_answer_the_same(name: str, asked: Any, throughput_fps: float | None) -> None:
    """Status, figures by their keys, which clauses were kept, and whether it is short."""

    def compute() -> Any:
        procedure = procedure_for(case_of(asked, name), known(throughput_fps), [])
        procedures.run(procedure, QueueDut(50_000))
        (finding,) = procedure.results(CaseFacts("uml", "baseline", []))
        assert isinstance(finding, Finding)
        figures = [(q.key, q.value, q.n, q.better, q.way) for q in finding.quantities]
        said = [
            (s.code, s.values) for s in (*finding.reasons, *finding.warnings, *finding.rfc2544_deviations)
        ]
        return finding.status, finding.rfc2544, finding.is_short, figures, said

    same_in_other_words(compute)


def test_a_report_shows_the_same(tmp_path: Path) -> None:
    """Every figure, mark and label; only the words differ, those on disk too."""

    def compute() -> Any:
        run = RunDirectory.open(synthetic_run.build(tmp_path, SHAPE).path)
        outcomes = run.outcomes()
        report = view(run.manifest, outcomes, digest(run.trials(), 1), run.findings())
        bare = [o.model_copy(update={"final_trial": None}) for o in outcomes]
        return _shown(report), view(run.manifest, bare, digest([], 0)).is_short

    shown, planned_short = same_in_other_words(compute)
    assert shown["short"]
    assert planned_short
    assert any(flags for _, flags in shown["rows"])
    assert any(panels for panels in shown["panels"])


def test_a_leak_is_the_same_leak() -> None:
    """Codes and values in the record do not depend on wording, and two of a kind are one in any wording."""
    counts = {"way": "west-east", "gateway": "home", "did": "encrypted"}
    problems = [Reason.of(Code.LEFT_BESIDE_SAS, **counts, left=n, n=n - 3) for n in (412, 5)]
    other = Reason.of(Code.SEEN_IN_CLEAR, frames=3)

    def compute() -> Any:
        proof = {"proven": False, "violated": True, **problems_recorded([*problems, other])}
        read = problems_of(json.loads(json.dumps(proof)))
        groups = Counter(kind(Reason.of(Code.NOT_PROVEN, problem=problem)) for problem in read)
        return [(problem.code, problem.values) for problem in read], sorted(groups.values())

    codes, groups = same_in_other_words(compute)
    assert [code for code, _ in codes] == [Code.LEFT_BESIDE_SAS, Code.LEFT_BESIDE_SAS, Code.SEEN_IN_CLEAR]
    assert groups == [1, 2]


def test_why_it_is_not_proven_stands_in_the_report_in_todays_words() -> None:
    """The report does not show the words with which the record was written."""
    problem = Reason.of(Code.SEEN_IN_CLEAR, frames=3)
    with reworded():
        proof = problems_recorded([problem])
    assert str(problem) not in proof["problems"]
    assert [str(problem)] == [*map(str, problems_of(proof))]


def test_places_of_loss_are_identified_by_their_keys() -> None:
    """Frames that were not sent are no loss in any wording; a key with a counter's name is shown as it is."""
    places = Counter({place.at("office", "XfrmInError"): 10 for place in Place})
    case = TrialCase("case", "a case", "throughput", "d", "xfrm", "one-way", 4)

    def compute() -> list[str]:
        return [row[-1] for row in losses([case], TrialDigest(loss_of_case={case.case: places})).rows]

    assert Counter(same_in_other_words(compute))["not a loss"] == 1
    with reworded():
        as_they_are = [key for key in places if place_text(key) == key]
    assert as_they_are == ["office xfrm XfrmInError", "office XfrmInError"]


def _shown(report: Report) -> dict[str, Any]:
    """Return what a report shows beside words."""
    rows = [row for section in report.sections for row in section.rows]
    parts = [part for test in report.tests for part in test.parts]
    tables = [row for test in report.tests for part in test.parts for row in part.table.rows]
    return {
        "short": (report.is_short, report.is_shortened, report.labels, report.short),
        "counts": (report.verdicts, report.rfc2544_results, report.unproven, report.bounds),
        "notes": [(note.number, note.outcomes, note.common) for note in report.notes],
        "deviations": [n for _, n in report.deviations],
        "rows": [
            (
                (r.suite, r.size, r.goal, r.status, r.fps, r.rfc2544, bool(r.telling), len(r.reasons)),
                _flags(r),
            )
            for r in rows
        ],
        "as above": [r.telling == r.as_above for r in rows if r.telling],
        "tests": [
            (r.name, r.size, r.status, r.figures, r.rfc2544, bool(r.telling), _flags(r)) for r in tables
        ],
        "columns": [[(c.unit, c.strong) for c in part.table.columns] for part in parts],
        "panels": [[panel.anchor for panel in part.figure.panels] if part.figure else None for part in parts],
        "cells": [
            (cell.text, cell.status, cell.instead == "–")
            for answer in report.test_answers
            for row in answer.rows
            for cell in row.cells
        ],
        "invalid": [row[1:] for row in report.invalid.rows],
    }


def _flags(row: Any) -> list[tuple[int, bool]]:
    return [(flag.number, bool(flag.word)) for flag in row.flags]


def _compared(by: Axis, runs: Callable[[], list[Run]]) -> Any:
    comparison = of(runs(), by=by, allow_different=True)
    verdicts = [
        (p.x, p.word, p.ratio, p.at_least)
        for panel in comparison.panels
        for pair in panel.pairs
        for p in pair.points
    ]
    differing = [d.condition and (d.condition.part, d.condition.key) for d in comparison.differences]
    return verdicts, differing, comparison.is_short


def test_a_comparison_comes_to_the_same() -> None:
    """Verdicts, what is a bound, and which conditions follow from the axis."""

    def runs() -> list[Run]:
        capped = {"warnings": [Remark.of(Code.TESTER_LIMITED, ceiling_fps=9e4)]}
        all_runs = []
        for name, dut, fps, more in (("one", "uml", 5e4, {}), ("two", "netns", 8e4, capped)):
            outcomes = [
                sim.made("xfrm", 64, repeat, fps * (1 + repeat / 500), dut=dut, **more)
                for repeat in (1, 2, 3)
            ]
            made = sim.run_of(outcomes, None, name)
            manifest = made.manifest.model_copy(
                update={
                    "platform": dut,
                    "placement": {"policy": f"that of {dut}"},
                    "tools": {"generator": f"way {name}"},
                    "host": {"kernel": "Linux 6.1"},
                }
            )
            all_runs.append(Run(name, manifest, outcomes))
        return all_runs

    verdicts, differing, _ = same_in_other_words(lambda: _compared("dut", runs))
    assert differing == [("tools", "generator")]  # platform and placement follow from the DUT
    assert [(word, ratio) for _, word, ratio, _ in verdicts] == [
        ("B faster", None)
    ]  # a bound: the tester's limit
