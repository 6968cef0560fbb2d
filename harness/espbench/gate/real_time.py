# SPDX-License-Identifier: Apache-2.0
"""Judges a check in real time, where figures have noise: compares the verdicts of a comparison with the limits.

Two arms of one plan are compared in pairs (docs/comparison.md). Two runs are not compared, because pairs exist only
within a run. A figure is `regressed` if the comparison shows a difference, and its best estimate exceeds the limit's
share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from espbench.comparison.sorting.model import Comparison, Estimate, FixedLoadVerdict, PointVerdict
from espbench.gate.from_run import BASELINE
from espbench.gate.limits import Limit, Quantity
from espbench.gate.verdict import Figure, Problem, Row, Word
from espbench.results import RunDirectory
from espbench.terms import PAIRED, Finding, Outcome

_FIT = ("OK", "LOWER_BOUND", "BELOW_MINIMUM")


def rows(comparison: Comparison, arm: str, limits: Mapping[Quantity, Limit]) -> list[Row]:
    """Return a row for each verdict on this arm against the reference, by searches and by trials at fixed loads."""
    judged = []
    for panel in comparison.panels:
        for pair in panel.pairs:
            if pair.b == arm:
                judged += [_searched(point, panel.conditions, limits["throughput"]) for point in pair.points]
    for verdict in comparison.fixed_loads:
        if verdict.b == arm:
            judged += _at_fixed_loads(verdict, limits)
    return judged


def problems(run: RunDirectory, stacks: Iterable[str] = ()) -> list[Problem]:
    """Return a problem for each case without a valid figure or proof of encryption; stacks: only these, if any.

    A comparison at fixed loads has a problem too if it was not made, or if encryption is not proven.
    """
    wanted = set(stacks)
    entries = {e.case: e for e in run.manifest.cases if not wanted or e.stack in wanted}
    results = [result for result in run.results() if result.case in entries]
    unfit = [Problem(damage.case, f"trials.jsonl: {damage}") for damage in run.damage()]
    unfit += [Problem(case, "no result") for case in entries if case not in {r.case for r in results}]
    for result in results:
        if result.status not in _FIT:
            why = "; ".join(map(str, result.reasons))
            unfit.append(Problem(result.case, f"{result.status}: {why}"))
        elif entries[result.case].stack_kind != BASELINE and result.encryption != "proven":
            unfit.append(Problem(result.case, "encryption not proven"))
    # Their results belong to no case of the plan; each has the stack of the arm that is not the reference.
    of_pairs = [f for f in run.findings() if f.test == PAIRED and (not wanted or f.stack in wanted)]
    return [*unfit, *(Problem(f.case, why) for f in of_pairs if (why := _unfit_pairs(f)))]


def _unfit_pairs(finding: Finding) -> str:
    """Say why a comparison at fixed loads may not be judged; empty if it may."""
    if finding.status != "OK":
        return f"{finding.status}: {'; '.join(map(str, finding.reasons)) or finding.words}"
    return "encryption not proven" if finding.encryption == "not proven" else ""


def has_throughput(run: RunDirectory) -> bool:
    """Return whether the run has an outcome of a throughput test, which a comparison needs."""
    return any(isinstance(result, Outcome) for result in run.results())


def _searched(point: PointVerdict, conditions: Mapping[str, str], limit: Limit) -> Row:
    word = _word(point.word, point.ratio, limit, worse="A faster", better="B faster")
    return _row(_case(conditions, point.x), "throughput", point.ratio, limit, word, point.why)


def _at_fixed_loads(verdict: FixedLoadVerdict, limits: Mapping[Quantity, Limit]) -> Sequence[Row]:
    case = f"{_case(verdict.conditions, verdict.x)}, in pairs"
    of_cpu, of_rate = limits["instructions"], limits["throughput"]
    cpu = _word(verdict.cpu_word, verdict.cpu, of_cpu, worse="B costs more", better="B costs less")
    rate = _word(verdict.word, verdict.throughput, of_rate, worse="A faster", better="B faster")
    return [
        _row(case, "CPU per frame", verdict.cpu, of_cpu, cpu, verdict.why),
        _row(case, "throughput", verdict.throughput, of_rate, rate, verdict.why),
    ]


def _word(shown: str, ratio: Estimate | None, limit: Limit, *, worse: str, better: str) -> Word:
    """Return the check's word for a verdict of the comparison.

    ratio: the estimate of the difference. If it is None, only a bound is known, which is never within the limit.
    """
    if shown not in (worse, better):
        return "no verdict" if shown == "no verdict" else "same"
    if ratio is not None and abs(ratio.value - 1) <= limit.share:
        return "moved"
    return "regressed" if shown == worse else "improved"


def _row(case: str, quantity: Figure, ratio: Estimate | None, limit: Limit, word: Word, why: str) -> Row:
    return Row(
        case=case,
        goal=None,
        load_fps=None,
        quantity=quantity,
        side="",
        base=1.0,
        low=1.0,
        high=1.0,
        repeats=ratio.n if ratio else 0,
        now=ratio.value if ratio else None,
        change=ratio.value - 1 if ratio else None,
        limit=f"{100 * limit.share:g}%",
        allowed=limit.share,
        word=word,
        why=why,
    )


def _case(conditions: Mapping[str, Any], x: int | str) -> str:
    size = f"{x} B" if isinstance(x, int) else str(x)
    return ", ".join([*(f"{key} {value}" for key, value in conditions.items()), size])
