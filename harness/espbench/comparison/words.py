# SPDX-License-Identifier: Apache-2.0
"""A comparison in plain sentences: who is faster, where, by how much, what it costs against plain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from espbench.comparison.model import Estimate, Overhead, PairVerdicts, Panel, PointVerdict

_MOST_DECIMALS = 4
ALIKE = 1.05  # a slowdown no larger is told as none: baselines carry no verdict of their own


def pair_words(a: str, b: str, points: Sequence[PointVerdict], x_is_size: bool) -> str:
    """One or more sentences about B against A in one panel."""
    faster = [p for p in points if p.word == "B faster"]
    slower = [p for p in points if p.word == "A faster"]
    none = [p for p in points if p.word == "no difference shown"]
    told = []
    if not faster and not slower:
        return f"{_no_difference(a, b, none, x_is_size, everywhere=True)}"
    if faster:
        told.append(
            f"{b} is faster than {a} {_where(faster, points, x_is_size)}: {_by_how_much(faster, a, b, x_is_size)}."
        )
    if slower:
        told.append(
            f"{a} is faster than {b} {_where(slower, points, x_is_size)}: {_by_how_much(slower, a, b, x_is_size)}."
        )
    if none:
        told.append(_no_difference(a, b, none, x_is_size, everywhere=False))
    if x_is_size:
        told += crossovers(a, b, points)
    return " ".join(told)


def crossovers(a: str, b: str, points: Sequence[PointVerdict]) -> list[str]:
    """`B passes A from 512 B.`: where a shown verdict turns into the other, sizes rising; mixes have no place."""
    shown = [p for p in points if isinstance(p.x, int) and p.word != "no difference shown"]
    told = []
    for before, after in pairwise(shown):
        if before.word != after.word:
            passing, passed = (b, a) if after.word == "B faster" else (a, b)
            told.append(f"{passing} passes {passed} from {after.x} B.")
    return told


def cost_words(panels: Sequence[Panel], overheads: Sequence[Overhead]) -> list[str]:
    """One sentence for each arm, panel and baseline: the range of slowdowns and of extra CPU."""
    told = []
    for index, panel in enumerate(panels):
        here = [o for o in overheads if o.panel == index]
        for arm, baseline in dict.fromkeys((o.arm, o.baseline) for o in here):
            found = [o for o in here if (o.arm, o.baseline) == (arm, baseline)]
            is_size = panel.x_name == "frame size"
            parts = _slowdown(found, baseline, is_size) + _extra(found, baseline, is_size)
            if parts:
                told.append(f"{title(panel)}{arm} {' and '.join(parts)}.")
    return told


def _slowdown(found: Sequence[Overhead], baseline: str, is_size: bool) -> list[str]:
    known = [o for o in found if o.slowdown is not None]
    if not known:
        return []
    least, most = (pick(known, key=lambda o: o.slowdown or 0.0) for pick in (min, max))
    if all(1 / ALIKE < (o.slowdown or 0.0) < ALIKE for o in known) and not any(o.bound for o in known):
        return [f"is about as fast as {baseline}"]
    if (least.slowdown or 0.0) < 1 / ALIKE:
        return [f"is between {_factor(least)} and {_factor(most)} slower than {baseline} (below 1: faster)"]
    if _factor(least) == _factor(most):
        where = _at([most.x], is_size) if len(known) == 1 else ""
        return [f"is {_factor(most)} slower than {baseline}{where}"]
    span = f"{_factor(least)} ({_x(least.x, is_size)}) to {_factor(most)} ({_x(most.x, is_size)})"
    return [f"is {span} slower than {baseline}"]


def _factor(overhead: Overhead) -> str:
    bound = f"{overhead.bound} " if overhead.bound else ""
    return f"{bound}{_number(overhead.slowdown or 0.0)}×"


def _extra(found: Sequence[Overhead], baseline: str, is_size: bool) -> list[str]:
    known = [o for o in found if o.extra_us is not None]
    if not known:
        return []
    least, most = (pick(known, key=lambda o: o.extra_us or 0.0) for pick in (min, max))
    low, high = (f"{o.extra_us:.3g}" for o in (least, most))
    if low == high:
        return [f"takes {high} µs of CPU a frame more than {baseline}"]
    return [
        f"takes {low} ({_x(least.x, is_size)}) to {high} ({_x(most.x, is_size)}) µs of CPU a frame more than {baseline}"
    ]


def _no_difference(
    a: str, b: str, points: Sequence[PointVerdict], x_is_size: bool, *, everywhere: bool
) -> str:
    measured = [p for p in points if p.ratio is not None and p.ratio.n > 1]
    beginning = (
        "No difference between {b} and {a} is shown" if measured else "There is no verdict on {b} and {a}"
    )
    told = beginning.format(a=a, b=b)
    if not everywhere:
        told += _at([p.x for p in points], x_is_size)
    elif len(points) > 1:
        told += " at any size" if x_is_size else " anywhere"
    else:
        told += _at([p.x for p in points], x_is_size)
    if not measured:
        reasons = dict.fromkeys(p.why for p in points)
        return f"{told}: {'; '.join(reasons) if len(reasons) < 3 else 'no figures that could show one'}."
    widest = max(max(p.ratio.high, 1 / p.ratio.low) for p in measured if p.ratio)
    rest = len(points) - len(measured)
    limit = f"; one of up to {_number(widest)}× could have gone unseen"
    return f"{told}{limit}{f', and {rest} of {len(points)} points bear no verdict' if rest else ''}."


def _by_how_much(points: Sequence[PointVerdict], a: str, b: str, x_is_size: bool) -> str:
    """The least and the most, each with its interval, as `fast is 1.35× [1.28, 1.43] as fast as slow at 512 B`."""
    known = [p for p in points if p.ratio is not None]
    if not known:
        return _bounds(points, a, b, x_is_size)
    ends = [min(known, key=lambda p: p.ratio.value if p.ratio else 0.0)]
    most = max(known, key=lambda p: p.ratio.value if p.ratio else 0.0)
    if most is not ends[0]:
        ends.append(most)
    ends.sort(key=lambda p: [q.x for q in points].index(p.x))
    told = " and ".join(f"{ratio_words(p.ratio)} as fast at {_x(p.x, x_is_size)}" for p in ends if p.ratio)
    return f"{b} is {told}"


def _bounds(points: Sequence[PointVerdict], a: str, b: str, x_is_size: bool) -> str:
    told = []
    for p in points:
        if p.at_least is not None:
            told.append(f"{b} is at least {_number(p.at_least)}× as fast at {_x(p.x, x_is_size)}")
        elif p.at_most is not None:
            told.append(f"{b} is at most {_number(p.at_most)}× as fast at {_x(p.x, x_is_size)}")
    slow = a if points[0].word == "B faster" else b
    return ", ".join(told) if told else f"{slow} misses the goal even at its minimum"


def _where(points: Sequence[PointVerdict], of: Sequence[PointVerdict], x_is_size: bool) -> str:
    if len(points) == len(of) > 1:
        return "at every size" if x_is_size else "everywhere"
    return _at([p.x for p in points], x_is_size).strip()


def _at(xs: Sequence[int | str], is_size: bool) -> str:
    """` at 64, 128 and 512 B`; empty for nothing."""
    if not xs:
        return ""
    names = [_x(x, False) for x in xs]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f" at {listed}{' B' if is_size and isinstance(xs[-1], int) else ''}" if is_size else f" with {listed}"
    )


def _x(x: int | str, is_size: bool) -> str:
    return f"{x} B" if is_size and isinstance(x, int) else str(x)


def ratio_words(ratio: Estimate) -> str:
    """`1.35× [1.28, 1.43]`; with more decimals where rounding would put an end on the wrong side of 1."""
    decimals = 2 if ratio.value < 10 else 1
    while decimals < _MOST_DECIMALS and any(
        end != 1 and round(end, decimals) == 1 for end in (ratio.low, ratio.high)
    ):
        decimals += 1
    if ratio.n <= 1:
        return f"{ratio.value:.{decimals}f}×"
    return f"{ratio.value:.{decimals}f}× [{ratio.low:.{decimals}f}, {ratio.high:.{decimals}f}]"


def _number(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def title(panel: Panel) -> str:
    """A panel's conditions, to stand in front of a sentence: `aes128gcm16, loss goal 0 %: `; empty if it has none."""
    told = ", ".join(f"{k} {v}" if k == "loss goal" else v for k, v in panel.conditions.items())
    return f"{told}: " if told else ""


def paragraph(panels: Sequence[Panel]) -> list[str]:
    """The verdicts of every panel, with its conditions in front; goals that agree told once.

    Where a panel differs from one before in the loss goal alone and its verdicts are the same at
    every point, it is named and not told again.
    """
    told: list[str] = []
    before: dict[tuple[tuple[str, str], ...], list[PairVerdicts]] = {}
    for panel in panels:
        rest = tuple((k, v) for k, v in panel.conditions.items() if k != "loss goal")
        first = before.setdefault(rest, panel.pairs)
        if first is not panel.pairs and _verdicts(first) == _verdicts(panel.pairs):
            told.append(f"{title(panel)}the same verdicts.")
        else:
            told += [f"{title(panel)}{pair.words}" for pair in panel.pairs]
    return told


def _verdicts(pairs: Sequence[PairVerdicts]) -> list[tuple[str, str, list[tuple[int | str, str]]]]:
    return [(p.a, p.b, [(v.x, v.word) for v in p.points]) for p in pairs]
