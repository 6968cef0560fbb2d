# SPDX-License-Identifier: Apache-2.0
"""Compares two arms at the same loads: makes ratios of CPU per frame and of throughput from pairs of short trials.

**CPU per frame.** Each pair of trials gives log(B / A). Two pairs in the order A B B A are averaged, which cancels a
steady drift of the host. Where void trials left no A B B A at a load, single pairs count. Each round has its own
gateways. The value of a round is the mean over the loads of the Hodges-Lehmann centres (the median of all means of
two), so that with several blocks a single pair that a neighbour disturbed decides nothing.

**Throughput.** Each arm tries the loads (rungs) of a ladder; the ladders of both arms have the same step. Two equal
arms pass different numbers of rungs only by chance. The load at which half the trials pass is the middle of the ladder
plus the step times the number of rungs passed beyond half of them (C. Spearman 1908, G. Kärber 1931). So log(B / A) is
the step times the difference in rungs passed, plus the difference between the middles of the two ladders. Rounds in
which an arm passed all rungs or none are left out. But an arm that passed the highest rung at the tester's maximum in
half of the rounds may be faster than any ladder. Its rungs are a lower bound in every round, and of B / A only one end
is known.

**The interval** is that of the mean over rounds (Student's t), so it includes the differences from one boot to the
next. The scatter is moderated as in statistics.py. It is at least what the ladder's step leaves open (throughput), or
what the differences between the pairs of the rounds make it (CPU). All verdicts hold together (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from statistics import fmean, median
from types import MappingProxyType
from typing import Any, Literal

from espbench.comparison.deciding import statistics, student_t
from espbench.comparison.deciding.statistics import CONFIDENCE, Prior, Reading, Term
from espbench.comparison.sorting.axes import size_name
from espbench.comparison.sorting.model import IP_VERSIONS, Estimate, FixedLoad, FixedLoadVerdict, Name, Word
from espbench.terms import PAIRED, Finding, goal_name

FEWEST_ROUNDS = 3
# An arm that meets its goal at this share of the tester's maximum, on the highest rung, may be faster than the tester.
NEAR_MAXIMUM = 0.95
FEWEST_DEVIATIONS = 6  # of single pairs, to know their scatter
# The standard deviation of a normal distribution ÷ the median of its absolute deviations.
_SIGMA_OF_MEDIAN = 1.4826
CpuWord = Literal["B costs less", "B costs more", "no difference shown", "no verdict"]
_Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Measured:
    """The log ratios B / A at one point: of CPU per frame and of throughput, one value for each round."""

    finding: Finding
    limited: frozenset[str]  # the arms ("a", "b") that met the tester's limit
    cpu: Term
    throughput: Term
    # The least variance of a round's value: what the pairs of a round show (CPU), what the step resolves (throughput).
    cpu_floor: float
    throughput_floor: float


def judge(
    findings: Sequence[Finding], axis: str, tests: Mapping[str, str] = MappingProxyType({})
) -> list[FixedLoadVerdict]:
    """Return one verdict for each finding of a comparison at fixed loads, in their order.

    tests: case of a finding → the throughput test whose figures its loads come from. Without it, no condition names a
    test: the plan has only one. The probability that any of these verdicts is wrong is at most 1 - CONFIDENCE.
    """
    measured = [_measured(f) for f in findings if f.test == PAIRED and f.paired]
    alpha = (1 - CONFIDENCE) / max(1, 2 * len(measured))  # each finding has two verdicts: CPU and throughput
    of_cpu = common_scatter(m.cpu for m in measured)
    # Points at which the tester limits an arm are left out: their rounds are alike because of the tester.
    of_rate = common_scatter(m.throughput for m in measured if not m.limited)
    return [_verdict(m, of_cpu, of_rate, alpha, _conditions(m.finding, axis, tests)) for m in measured]


def common_scatter(terms: Iterable[Term]) -> Prior:
    """Return the common scatter of the points that have a verdict; a point with too few rounds lends none."""
    judged = [term for term in terms if len(term.readings) >= FEWEST_ROUNDS]
    return statistics.prior(judged, len(judged))


def _measured(finding: Finding) -> _Measured:
    rows: list[_Row] = finding.paired["rows"]
    step = float(finding.paired["step"])
    by_round = _by_round(rows)
    cpu, cpu_floor = _cpu_of_rounds(by_round, list(finding.paired["loads"]), ladder=True)
    limited, rungs = _limited(finding), finding.paired["rungs"]
    throughput = [
        t for of_round in by_round if (t := throughput_of_round(of_round, step, rungs, limited)) is not None
    ]
    return _Measured(finding, limited, _term(cpu), _term(throughput), cpu_floor, step**2 / 6)


def _limited(finding: Finding) -> frozenset[str]:
    """Return the arms that met the goal in half of the rounds or more in which the highest rung was at the tester's
    maximum, or nearly.
    """
    p = finding.paired
    least_fps = NEAR_MAXIMUM * p.get("maximum_fps", math.inf)
    highest = [row for row in p["rows"] if row["rung"] == p["rungs"] - 1]
    met = {
        arm: [row[arm]["met"] for row in highest if row[arm]["intended_fps"] >= least_fps]
        for arm in ("a", "b")
    }
    return frozenset(arm for arm, of_arm in met.items() if of_arm and 2 * sum(of_arm) >= len(of_arm))


def _by_round(rows: Sequence[_Row]) -> list[list[_Row]]:
    return [[row for row in rows if row["round"] == r] for r in sorted({row["round"] for row in rows})]


def _cpu_of_rounds(
    by_round: Sequence[Sequence[_Row]], loads: Sequence[float], *, ladder: bool
) -> tuple[list[float], float]:
    """Return log(B / A) of CPU per frame of each round that has each of these loads, and the least variance of such a
    value. ladder: the shared loads of the ladder count as one load more, in the rounds that have them.
    """
    of_pair = variance_of_a_pair(by_round)
    values, shares = [], []
    for of_round in by_round:
        each = [cpu_of_load(of_round, load, singles=of_pair is not None) for load in loads]
        known = [one for one in each if one is not None]
        if not known or len(known) < len(each):
            continue
        if ladder and (beside := cpu_of_load(of_round, None)) is not None:
            known.append(beside)
        values.append(fmean(value for value, _ in known))
        shares.append(sum(share for _, share in known) / len(known) ** 2)
    return values, (of_pair or 0.0) * fmean(shares) if shares else 0.0


def cpu_of_load(
    of_round: Sequence[_Row], load: float | None, *, singles: bool = True
) -> tuple[float, float] | None:
    """Return log(B / A) of CPU per frame at one load of one round, and its variance if that of a single pair is 1.

    None if there are too few pairs of trials. load None: use the pairs of trials on the ladder in which both arms had
    the same load. singles: without a whole block, use single pairs.
    """
    pairs = _cpu_pairs(of_round, load)
    values = [value for _, value in pairs]
    if load is None:
        return (hodges_lehmann(values), 1 / len(values)) if len(values) > 1 else None
    blocks = [
        fmean(here)
        for block in dict.fromkeys(block for block, _ in pairs)
        if len(here := [value for b, value in pairs if b == block]) == 2  # A B and B A
    ]
    if blocks:
        return hodges_lehmann(blocks), 1 / (2 * len(blocks))
    return (hodges_lehmann(values), 1 / len(values)) if values and singles else None


def variance_of_a_pair(by_round: Sequence[Sequence[_Row]]) -> float | None:
    """Return the variance of log(B / A) of a single pair of trials at one load of one round.

    It is that of all rounds and loads together, from the median of the absolute deviations, because single pairs that a
    neighbour disturbed hardly move it. None if there are fewer than FEWEST_DEVIATIONS.
    """
    apart = []
    for of_round in by_round:
        for load in dict.fromkeys(row["load"] for row in of_round):
            values = [value for _, value in _cpu_pairs(of_round, load)]
            n = len(values)
            apart += [abs(value - fmean(values)) * math.sqrt(n / (n - 1)) for value in values if n > 1]
    return (_SIGMA_OF_MEDIAN * median(apart)) ** 2 if len(apart) >= FEWEST_DEVIATIONS else None


def _cpu_pairs(of_round: Sequence[_Row], load: float | None) -> list[tuple[int, float]]:
    """Return (block, log(B / A) of CPU per frame) of each pair of trials at a load; None: on the ladder, same load."""
    return [
        (row["block"], math.log(row["b"]["cpu_us"] / row["a"]["cpu_us"]))
        for row in of_round
        if row["load"] == load
        and row["a"]["cpu_us"]
        and row["b"]["cpu_us"]
        and row["a"]["intended_fps"] == row["b"]["intended_fps"]
    ]


def throughput_of_round(
    of_round: Sequence[_Row], step: float, rungs: int, limited: Collection[str] = ()
) -> float | None:
    """Return log(B / A) of the throughput from the rungs that each arm passed.

    None if several rungs were not measured, or if an arm passed all rungs or none. An arm that is limited by the tester
    may have passed all: then its throughput counts as the least that it can be.
    """
    rows = [row for row in of_round if row["rung"] is not None]
    if len(rows) < rungs - 1:
        return None
    passed = {arm: _rungs_passed({row["rung"]: row[arm]["met"] for row in rows}, rungs) for arm in ("a", "b")}
    if not all(0 < n < rungs or (n and arm in limited) for arm, n in passed.items()):
        return None
    apart = fmean(math.log(row["b"]["intended_fps"] / row["a"]["intended_fps"]) for row in rows)
    return float(apart + step * (passed["b"] - passed["a"]))


def _rungs_passed(met: Mapping[int, bool], rungs: int) -> float:
    """Return how many rungs an arm passed; a rung that was not measured counts as the mean of those beside it.

    Without it, the arm that passed the rung's neighbours would lose a rung, and the arms would look more alike.
    """
    beside = [[met[n] for n in (rung - 1, rung + 1) if n in met] for rung in range(rungs) if rung not in met]
    return sum(met.values()) + sum(fmean(neighbours) for neighbours in beside)


def hodges_lehmann(values: Sequence[float]) -> float:
    """Return the median of the means of all pairs of values, also of a value with itself; values must not be empty."""
    return median((x + y) / 2 for x, y in combinations_with_replacement(values, 2))


def _term(values: Sequence[float]) -> Term:
    return Term(tuple(Reading(value, value, value) for value in values))


def _verdict(
    m: _Measured, of_cpu: Prior, of_rate: Prior, alpha: float, conditions: dict[str, str]
) -> FixedLoadVerdict:
    p = m.finding.paired
    cpu = _interval(m.cpu, of_cpu, alpha, m.cpu_floor)
    rate = None if len(m.limited) > 1 else _interval(m.throughput, of_rate, alpha, m.throughput_floor)
    at_least, at_most = _bounds(rate, m.limited)
    rows: list[_Row] = p["rows"]
    return FixedLoadVerdict(
        conditions=conditions,
        x=m.finding.frame_size,
        a=p["a"],
        b=p["b"],
        cpu=_estimate(cpu, len(m.cpu.readings)),
        cpu_word=_cpu_word(cpu),
        throughput=None if m.limited else _estimate(rate, len(m.throughput.readings)),
        word=_word(rate, m.limited),
        loads=[_at(rows, load, p["bounds_fps"]) for load in p["loads"]],
        pairs=len(rows),
        void=p["void"],
        trials=m.finding.trials,
        rounds=p["rounds"],
        together=p["together"],
        why=_why(m),
        at_least=at_least,
        at_most=at_most,
        loss_goal=p.get("loss_goal"),
        proven=m.finding.encryption != "not proven",
    )


def _interval(term: Term, prior: Prior, alpha: float, floor: float = 0.0) -> Reading | None:
    """Return the mean of the rounds and its interval; None if there are too few rounds."""
    n = len(term.readings)
    if n < FEWEST_ROUNDS:
        return None
    moderated, df = prior.moderated(term)
    middle = fmean(r.value for r in term.readings)
    half = student_t.two_sided(alpha, df) * math.sqrt(max(moderated, floor) / n)
    return Reading(middle - half, middle, middle + half)


def _estimate(reading: Reading | None, n: int) -> Estimate | None:
    return None if reading is None else statistics.ratio(reading, n)


def _cpu_word(reading: Reading | None) -> CpuWord:
    if reading is None:
        return "no verdict"
    return (
        "B costs less" if reading.high < 0 else "B costs more" if reading.low > 0 else "no difference shown"
    )


def _bounds(rate: Reading | None, limited: Collection[str]) -> tuple[float | None, float | None]:
    """Return (at least, at most) of B / A if the tester limited one arm; None: not known, or there is an interval."""
    if rate is None or not limited:
        return None, None
    return (math.exp(rate.low), None) if "b" in limited else (None, math.exp(rate.high))


def _word(reading: Reading | None, limited: Collection[str]) -> Word:
    if reading is None:
        return "no verdict"
    if reading.low > 0 and "a" not in limited:
        return "B faster"
    if reading.high < 0 and "b" not in limited:
        return "A faster"
    return "no verdict" if limited else "no difference shown"


def _at(rows: Sequence[_Row], load: float, bounds_fps: Mapping[str, float]) -> FixedLoad:
    """Return the table's row of one load: its CPU with the interval of this load alone, and the losses."""
    here = [row for row in rows if row["load"] == load]
    cpu, floor = _cpu_of_rounds(_by_round(here), [load], ladder=False)
    used = {arm: [row[arm]["cpu_us"] for row in here if row[arm]["cpu_us"]] for arm in ("a", "b")}
    speeds = [row[arm]["speed_pct"] for row in here for arm in ("a", "b") if "speed_pct" in row[arm]]
    return FixedLoad(
        share=load,
        fps=load * min(bounds_fps.values()),
        cpu=_estimate(_interval(_term(cpu), Prior(), 1 - CONFIDENCE, floor), len(cpu)),
        cpu_a_us=median(used["a"]) if used["a"] else None,
        cpu_b_us=median(used["b"]) if used["b"] else None,
        loss_a=fmean(row["a"]["loss"] for row in here) if here else None,
        loss_b=fmean(row["b"]["loss"] for row in here) if here else None,
        pairs=len(here),
        speeds_pct=(min(speeds), max(speeds)) if speeds else None,
    )


def _why(m: _Measured) -> str:
    """Say on which measurements the verdicts are based, or why there is no verdict."""
    p = m.finding.paired
    parts = [
        f"{len(p['rows'])} pairs of trials of {p['trial_s']:g} s on {p['rounds']} pairs of gateways for each arm"
    ]
    parts.append(f"{p['void']} of {m.finding.trials} trials void")
    rounds = len(m.throughput.readings)
    for arm in sorted(m.limited):
        parts.append(
            f"{p[arm]} met loads of up to {p['maximum_fps']:,.0f} frames/s, the most that the tester sends: "
            "it may be faster"
        )
    if rounds < p["rounds"] and len(m.limited) < 2:
        parts.append(
            f"throughput from {rounds} rounds: in the others the ladder of loads did not hold both arms'"
        )
    if not p["together"]:
        parts.append(
            "one arm's gateways after the other's: drift of the host within a round is in the interval"
        )
    return "; ".join(parts)


def _conditions(finding: Finding, axis: str, tests: Mapping[str, str]) -> dict[str, str]:
    """Return what is the same for all of this point's trials, except the frame size, in words."""
    fixed = {Name.TEST: tests[finding.case]} if finding.case in tests else {}
    fixed |= {
        Name.DUT: finding.dut,
        Name.STACK: finding.stack,
        Name.SUITE: finding.suite,
        Name.DIRECTION: finding.direction,
        Name.IP_VERSION: IP_VERSIONS[finding.ip_version],
    }
    varied = {
        "stack": Name.STACK, "version": Name.STACK, "suite": Name.SUITE, "dut": Name.DUT, "kernel": Name.DUT,
    }.get(axis)  # fmt: skip
    return {key: value for key, value in fixed.items() if key != varied}


def not_made(findings: Sequence[Finding]) -> list[str]:
    """Say for each point that was not compared at fixed loads why it was not; a sentence each."""
    return [
        f"{f.dut}, {f.stack}, {f.suite}, {size_name(f.frame_size)}, {f.direction}, {IP_VERSIONS[f.ip_version]}: "
        f"{f.words}"
        for f in findings
        if not f.paired.get("rows")
    ]


def verdict_words(verdicts: Sequence[FixedLoadVerdict]) -> list[str]:
    """Return each verdict as a sentence, which names the conditions that the verdicts do not share."""
    varying = {
        key
        for v in verdicts
        for key, value in v.conditions.items()
        if value != verdicts[0].conditions.get(key)
    }
    sentences = []
    for v in verdicts:
        where = [value for key, value in v.conditions.items() if key in varying]
        where += [] if v.loss_goal is None else [f"{Name.LOSS_GOAL} {goal_name(v.loss_goal)}"]
        at = f"{size_name(v.x)} ({', '.join(where)})" if where else size_name(v.x)
        sentences.append(f"At the same loads, {at}: {_cpu_words(v)}; {_rate_words(v)}.")
    return sentences


def _cpu_words(v: FixedLoadVerdict) -> str:
    if v.cpu is None:
        return f"no verdict on the CPU per frame of {v.b} and {v.a}"
    if v.cpu_word == "no difference shown":
        shown = f"no difference in CPU per frame between {v.b} and {v.a} is shown"
        return f"{shown}; one of up to {_unseen(v.cpu)} would not have been seen"
    more = "more" if v.cpu_word == "B costs more" else "less"
    return f"{v.b} takes {_per_cent(v.cpu)} {more} CPU per frame than {v.a}"


def _rate_words(v: FixedLoadVerdict) -> str:
    for bounded, bound in (("at least", v.at_least), ("at most", v.at_most)):
        if bound is not None:
            return f"the throughput of {v.b} is {bounded} {bound:.3f} times that of {v.a}"
    if v.throughput is None:
        return "no verdict on the throughput"
    if v.word == "no difference shown":
        return f"no difference in throughput is shown; one of up to {_unseen(v.throughput)} would not have been seen"
    more_or_less = "higher" if v.word == "B faster" else "lower"
    return f"the throughput of {v.b} is {_per_cent(v.throughput)} {more_or_less} than that of {v.a}"


def _per_cent(e: Estimate) -> str:
    ends = sorted(abs(100 * (end - 1)) for end in (e.low, e.high))
    return f"{abs(100 * (e.value - 1)):.1f} % [{ends[0]:.1f}, {ends[1]:.1f}]"


def _unseen(e: Estimate) -> str:
    """Return the largest difference in either direction that the interval does not exclude, in per cent, rounded up."""
    most = 100 * (max(e.high, 1 / e.low) - 1)
    return f"{math.ceil(round(10 * most, 6)) / 10:.1f} %"
