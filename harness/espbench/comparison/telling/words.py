# SPDX-License-Identifier: Apache-2.0
"""Writes verdicts in plain sentences: which arm is faster, where, by how much, and at what CPU cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from espbench.comparison.sorting.model import Name, PairVerdicts, Panel, PointVerdict
from espbench.comparison.telling.numbers import factor

X = int | str


def pair_words(a: str, b: str, points: Sequence[PointVerdict], x_is_size: bool) -> str:
    """Return some sentences about B against A in one panel."""
    sentences = []
    for fast, slow, word in ((b, a, "B faster"), (a, b, "A faster")):
        if of_word := [p for p in points if p.word == word]:
            unit = "" if x_is_size else " in frames/s"
            where = _where(of_word, points, x_is_size)
            sentences.append(
                f"{fast} is faster than {slow}{unit} {where}: {_by_how_much(of_word, a, b, x_is_size)}."
            )
    if none := [p for p in points if p.word == "no difference shown"]:
        sentences.append(_no_difference(a, b, none, points, x_is_size))
    if unknown := [p for p in points if p.word == "no verdict"]:
        sentences.append(_no_verdict(a, b, unknown, points, x_is_size))
    if x_is_size:
        sentences += crossovers(a, b, points)
    return " ".join(sentences + _cpu(a, b, points, x_is_size))


def crossovers(a: str, b: str, points: Sequence[PointVerdict]) -> list[str]:
    """Say from which frame sizes on the other arm is the faster one: `B passes A from 512 B.`; mixes are left out."""
    shown = [p for p in points if isinstance(p.x, int) and p.word in ("A faster", "B faster")]
    sentences = []
    for before, after in pairwise(shown):
        if before.word != after.word:
            passing, passed = (b, a) if after.word == "B faster" else (a, b)
            sentences.append(f"{passing} passes {passed} from {after.x} B.")
    return sentences


def _by_how_much(points: Sequence[PointVerdict], a: str, b: str, x_is_size: bool) -> str:
    """Return `B is 1.35× [1.28, 1.43] as fast at 512 B`: the lowest and the highest ratio, then the bounds."""
    known = sorted((p for p in points if p.ratio), key=lambda p: p.ratio.value if p.ratio else 0.0)
    ends = list(dict.fromkeys(p.x for p in (known[:1] + known[-1:])))
    parts = [f"{factor(p.ratio)} as fast{at([p.x], x_is_size)}" for p in points if p.ratio and p.x in ends]
    text = [f"{b} is {' and '.join(parts)}"] if parts else []
    for p in points:
        if p.ratio is None:
            side, bound = ("at least", p.at_least) if p.at_least is not None else ("at most", p.at_most)
            text.append(f"{b} is {side} {factor(bound)} as fast{at([p.x], x_is_size)}")
    if missed := [p.x for p in points if p.bound_by == "minimum"]:
        slow = a if points[0].word == "B faster" else b
        text.append(f"{slow} misses the goal even at its minimum{at(missed, x_is_size)}")
    return "; ".join(text)


def _no_difference(
    a: str, b: str, points: Sequence[PointVerdict], of: Sequence[PointVerdict], x_is_size: bool
) -> str:
    text = f"No difference between {b} and {a} is shown {_where(points, of, x_is_size, negated=True)}"
    limits = []
    if measured := [p.ratio for p in points if p.ratio]:
        widest = max(max(ratio.high, 1 / ratio.low) for ratio in measured)
        limits.append(f"a difference of up to a factor of {factor(widest)[:-1]} would not have been seen")
    limits += [
        f"{b} is {bounded} {factor(bound)} as fast{at([p.x], x_is_size)}"
        for p in points
        for bounded, bound in (("at least", p.at_least), ("at most", p.at_most))
        if bound is not None
    ]
    return f"{'; '.join([text, *limits])}."


def _no_verdict(
    a: str, b: str, points: Sequence[PointVerdict], of: Sequence[PointVerdict], x_is_size: bool
) -> str:
    reasons = list(dict.fromkeys(p.why for p in points))
    why = "; ".join(reasons) if len(reasons) < 3 else "no figures to judge by"
    return f"There is no verdict on {b} and {a} {_where(points, of, x_is_size, negated=True)}: {why}."


def _cpu(a: str, b: str, points: Sequence[PointVerdict], x_is_size: bool) -> list[str]:
    """Say how much CPU time B takes for a frame, as a multiple of A's."""
    known = sorted(
        (p for p in points if p.cpu_ratio), key=lambda p: p.cpu_ratio.value if p.cpu_ratio else 0.0
    )
    if not known:
        return []
    ends = [known[0]] if len(known) == 1 else [known[0], known[-1]]
    ratios = " to ".join(f"{factor(p.cpu_ratio)}{at([p.x], x_is_size)}" for p in ends)
    return [f"CPU per frame of {b}: {ratios} that of {a}."]


def _where(
    points: Sequence[PointVerdict], of: Sequence[PointVerdict], x_is_size: bool, *, negated: bool = False
) -> str:
    if len(points) == len(of) > 1:
        every = "any" if negated else "every"
        return f"at {every} size" if x_is_size else f"{every}where"
    return at([p.x for p in points], x_is_size).strip()


def at(xs: Sequence[X], is_size: bool) -> str:
    """Return ` at 64, 128 and 512 B`, or ` with aes128gcm16`; empty if there are no values."""
    if not xs:
        return ""
    names = listed([str(x) for x in xs])
    return f" at {names}{' B' if isinstance(xs[-1], int) else ''}" if is_size else f" with {names}"


def listed(names: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def title(panel: Panel) -> str:
    """Return a panel's conditions, to head a table: `aes128gcm16, loss goal 0 %: `; empty if it has none."""
    text = ", ".join(f"{k} {v}" if k == Name.LOSS_GOAL else v for k, v in panel.conditions.items())
    return f"{text}: " if text else ""


def opening(panel: Panel, goals: Sequence[str] = ()) -> str:
    """Return the conditions that begin a sentence: `At a loss goal of 0 % (aes128gcm16): `.

    goals: all loss goals at which the sentence holds (default: the panel's).
    """
    rest = ", ".join(v for k, v in panel.conditions.items() if k != Name.LOSS_GOAL)
    goals = goals or [v for k, v in panel.conditions.items() if k == Name.LOSS_GOAL]
    if not goals:
        return f"With {rest}: " if rest else ""
    of = f"At a loss goal of {goals[0]}" if len(goals) == 1 else f"At loss goals of {listed(goals)}"
    return f"{of} ({rest}): " if rest else f"{of}: "


def repeats_earlier(panels: Sequence[Panel]) -> list[bool]:
    """Return for each panel whether an earlier panel, which differs only in the loss goal, has the same verdicts."""
    again = []
    before: dict[tuple[tuple[str, str], ...], list[PairVerdicts]] = {}
    for panel in panels:
        rest = tuple((k, v) for k, v in panel.conditions.items() if k != Name.LOSS_GOAL)
        first = before.setdefault(rest, panel.pairs)
        again.append(first is not panel.pairs and _verdicts(first) == _verdicts(panel.pairs))
    return again


def paragraph(panels: Sequence[Panel]) -> list[str]:
    """Return the verdicts of every panel as text that begins with the panel's conditions.

    If an earlier panel differs only in the loss goal and has the same verdicts at every point, one sentence says so
    in place of the verdicts.
    """
    paragraphs: list[str] = []
    for panel, again in zip(panels, repeats_earlier(panels), strict=True):
        if again:
            paragraphs.append(f"{opening(panel)[:-2]} every verdict is the same.")
        else:
            paragraphs += [f"{opening(panel)}{pair.words}" for pair in panel.pairs]
    return paragraphs


def _verdicts(pairs: Sequence[PairVerdicts]) -> list[tuple[str, str, list[tuple[X, str]]]]:
    return [(p.a, p.b, [(v.x, v.word) for v in p.points]) for p in pairs]
