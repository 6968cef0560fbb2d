# SPDX-License-Identifier: Apache-2.0
"""Judges a check in real time, where figures have noise: compares the verdicts of a comparison with the limits.

Two arms of one plan are compared in pairs (docs/comparison.md). Two runs are not paired, because pairs exist only
within a run; only their throughputs are judged. A figure is `regressed` if the comparison shows a difference, and its
best estimate exceeds the limit's share. A figure without a shown difference is `same` only if the comparison would have
shown a large one: its interval excludes that the figure is worse by more than LARGE, or by more than the limit if that
is larger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.comparison.sorting.comparability import in_words
from espbench.comparison.sorting.model import Comparison, Estimate, Panel
from espbench.gate.from_run import BASELINE, GATED
from espbench.gate.limits import Limit, Quantity
from espbench.gate.verdict import Figure, Problem, Row, Word
from espbench.results import RunDirectory
from espbench.terms import PAIRED, CaseEntry, Finding, Outcome, kind_of_test

_WORSE, _BETTER = ("A faster", "B costs more"), ("B faster", "B costs less")
# CPU per frame depends on the load: only trials of both at the same loads, in turns, show that it differs.
CPU_OF_TWO_RUNS = (
    "CPU per frame is not judged between two runs: each measured it at a throughput and a time of its own"
)
CPU_OF_SEARCHES = "CPU per frame is not judged by searches alone: each arm has it at a throughput of its own"
LARGE = 0.10  # the share by which verdicts on throughput should be right (docs/comparison.md)
_FIT = ("OK", "LOWER_BOUND", "BELOW_MINIMUM")


@dataclass(frozen=True)
class _Judged:
    """A figure as a comparison judged it: its word there, the ratio to the base, and why.

    ratio: None if only a bound is known; at_least: then, if known, the least ratio. in_pairs: pairs of trials at fixed
    loads judge the same throughput.
    """

    case: str
    quantity: Figure
    shown: str
    ratio: Estimate | None
    why: str
    at_least: float | None = None
    in_pairs: bool = False

    @property
    def worst(self) -> float:
        """The largest share by which the figure may be worse than the base's, as far as the interval tells."""
        if self.ratio is None:
            return math.inf if self.at_least is None else max(0.0, 1 - self.at_least)
        return self.ratio.high - 1 if self.quantity == "CPU per frame" else 1 - self.ratio.low

    def word(self, limit: Limit) -> Word:
        """Return the check's word. A difference of which only a bound is known is never within the limit."""
        if self.shown in _WORSE or self.shown in _BETTER:
            if self.ratio is not None and abs(self.ratio.value - 1) <= limit.share:
                return "moved"
            return "regressed" if self.shown in _WORSE else "improved"
        if self.shown == "no verdict":
            return "no verdict"
        return "no verdict" if self.is_blind(limit) and not self.in_pairs else "same"

    def is_blind(self, limit: Limit) -> bool:
        """Return whether a figure that is much worse might not have been shown."""
        return self.worst > max(limit.share, LARGE)


def rows(comparison: Comparison, arm: str, limits: Mapping[Quantity, Limit]) -> list[Row]:
    """Return a row for each verdict on this arm against the reference, by searches and by trials at fixed loads.

    The case of a row begins with the arm if there are several: their conditions are the same.
    """
    whose = f"{arm}: " if len(comparison.arms) > 2 else ""
    return [_row(judged, _limit(judged, limits), whose) for judged in _judged(comparison, arm)]


def unjudged(comparison: Comparison, arms: Sequence[str]) -> list[Problem]:
    """Return a problem for each verdict at fixed loads that is on none of these arms, so that no row has it."""
    return [
        Problem(_case(v.conditions, v.x), f"the comparison has no arm {v.b}")
        for v in comparison.fixed_loads
        if v.b not in arms
    ]


def unseen(comparison: Comparison, arms: Sequence[str], limits: Mapping[Quantity, Limit]) -> list[str]:
    """Return a note for each arm that has figures without a shown difference: how much worse these may be."""
    notes = []
    for arm in arms:
        same = [j for j in _judged(comparison, arm) if j.word(_limit(j, limits)) == "same" and not j.in_pairs]
        if same:
            worst = max(same, key=lambda judged: judged.worst)
            notes.append(
                f"{arm}: a figure without a shown difference may be worse by up to {100 * worst.worst:.1f} % "
                f"({worst.quantity}, {worst.case})"
            )
    return notes


def differing(comparison: Comparison) -> list[str]:
    """Return a note for each condition in which the run differs from its base, that under test included."""
    return [f"differs from the base: {in_words(difference)}" for difference in comparison.differences]


def _limit(judged: _Judged, limits: Mapping[Quantity, Limit]) -> Limit:
    return limits["instructions" if judged.quantity == "CPU per frame" else "throughput"]


def _judged(comparison: Comparison, arm: str) -> Iterator[_Judged]:
    for panel in comparison.panels:
        for pair in panel.pairs:
            for p in pair.points if pair.b == arm else ():
                yield _Judged(
                    _case(panel.conditions, p.x),
                    "throughput",
                    p.word,
                    p.ratio,
                    p.why,
                    p.at_least,
                    _has_pairs(comparison, arm, panel, p.x),
                )
    for v in comparison.fixed_loads:
        if v.b == arm:
            case = f"{_case(v.conditions, v.x)}, in pairs"
            yield _Judged(case, "CPU per frame", v.cpu_word, v.cpu, v.why)
            yield _Judged(case, "throughput", v.word, v.throughput, v.why, v.at_least)


def _has_pairs(comparison: Comparison, arm: str, panel: Panel, x: int | str) -> bool:
    """Return whether pairs at fixed loads have a verdict on this point's throughput, for the same loss goal.

    They tell smaller differences than the searches do, whose scatter then decides nothing. Pairs are made for the first
    loss goal of each throughput test, and say nothing about the throughput for another one.
    """
    conditions = {**comparison.common, **panel.conditions}
    return any(
        v.b == arm
        and v.x == x
        and v.loss_goal == panel.loss_goal
        and v.word != "no verdict"
        and all(conditions.get(key, value) == value for key, value in v.conditions.items())
        for v in comparison.fixed_loads
    )


def problems(run: RunDirectory, stacks: Iterable[str] = ()) -> list[Problem]:
    """Return a problem for each case without a valid figure or proof of encryption; stacks: only these, if any.

    A comparison at fixed loads has a problem too if it was not made, or if encryption is not proven. Of tests that are
    not gated, proof is not demanded: a trial in which a gateway fails or exchanges keys cannot have it.
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
        elif _demands_proof(entries[result.case]) and result.encryption != "proven":
            unfit.append(Problem(result.case, "encryption not proven"))
    # Their results belong to no case of the plan; each has the stack of the arm that is not the reference.
    of_pairs = [f for f in run.findings() if f.test == PAIRED and (not wanted or f.stack in wanted)]
    return [*unfit, *(Problem(f.case, why) for f in of_pairs if (why := _unfit_pairs(f)))]


def _demands_proof(entry: CaseEntry) -> bool:
    return kind_of_test(entry.test) == GATED and entry.stack_kind != BASELINE


def _unfit_pairs(finding: Finding) -> str:
    """Say why a comparison at fixed loads may not be judged; empty if it may."""
    if finding.status != "OK":
        return f"{finding.status}: {'; '.join(map(str, finding.reasons)) or finding.words}"
    return "encryption not proven" if finding.encryption == "not proven" else ""


def has_throughput(run: RunDirectory) -> bool:
    """Return whether the run has an outcome of a throughput test, which a comparison needs."""
    return any(isinstance(result, Outcome) for result in run.results())


def _row(judged: _Judged, limit: Limit, whose: str) -> Row:
    ratio, word, why = judged.ratio, judged.word(limit), judged.why
    if word == "no verdict" and judged.shown != word:
        unseen = "any size" if math.isinf(judged.worst) else f"{100 * judged.worst:.0f} %"
        why = f"a figure that is worse by {unseen} would not have been seen; {why}"
    return Row(
        case=f"{whose}{judged.case}",
        goal=None,
        load_fps=None,
        quantity=judged.quantity,
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
