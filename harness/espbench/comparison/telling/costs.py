# SPDX-License-Identifier: Apache-2.0
"""Says in plain sentences how much more the arms cost than the baselines; equal costs at several loss goals once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from espbench.comparison.sorting.model import Estimate, Name, Overhead, Panel
from espbench.comparison.telling.numbers import factor, microseconds
from espbench.comparison.telling.words import at, opening

ALIKE = 1.03  # figures of two loss goals within this factor are reported as one
Costs = list[Overhead]


def cost_words(panels: Sequence[Panel], overheads: Sequence[Overhead]) -> list[str]:
    """Return a sentence or two for each arm and baseline: the range of slowdowns and of extra CPU."""
    by_text: dict[tuple[object, ...], list[tuple[int, Costs, list[str]]]] = {}
    for index, panel in enumerate(panels):
        rest = tuple(item for item in panel.conditions.items() if item[0] != Name.LOSS_GOAL)
        goal = [v for k, v in panel.conditions.items() if k == Name.LOSS_GOAL]
        here = [o for o in overheads if o.panel == index]
        for arm, baseline in dict.fromkeys((o.arm, o.baseline) for o in here):
            mine = [o for o in here if (o.arm, o.baseline) == (arm, baseline)]
            before = by_text.setdefault((rest, arm, baseline), [])
            for _, costs, goals in before:
                if goal and _alike(costs, mine):
                    goals.extend(goal)
                    break
            else:
                before.append((index, mine, list(goal)))
    sentences = [(index, costs, goals) for same in by_text.values() for index, costs, goals in same]
    return [
        f"{opening(panels[index], goals)}{_sentence(costs, panels[index].x_name == Name.FRAME_SIZE)}"
        for index, costs, goals in sorted(sentences, key=lambda item: item[0])
    ]


def _alike(these: Costs, those: Costs) -> bool:
    if [o.x for o in these] != [o.x for o in those]:
        return False
    for one, other in zip(these, those, strict=True):
        if _kind(one) != _kind(other):
            return False
        figures = ((_slowdown(o), o.extra_us.value if o.extra_us else None) for o in (one, other))
        for a, b in zip(*figures, strict=True):
            if a is not None and b is not None and abs(a - b) > (ALIKE - 1) * min(abs(a), abs(b)):
                return False
    return True


def _kind(o: Overhead) -> tuple[bool, ...]:
    """Return which parts of an overhead are known, and whether they have intervals: a bound is not like a figure."""
    has_interval = (estimate is not None and estimate.n > 1 for estimate in (o.slowdown, o.extra_us))
    known = (part is not None for part in (o.slowdown, o.at_least, o.at_most, o.extra_us))
    return *known, *has_interval


def _sentence(costs: Costs, is_size: bool) -> str:
    arm, baseline = costs[0].arm, costs[0].baseline
    parts = []
    if known := [o for o in costs if _slowdown(o) is not None]:
        parts.append(
            f"{baseline} is {_span(known, _slowdown, _slower, is_size)} as fast as {arm}{_place(known, is_size)}"
        )
    if known := [o for o in costs if o.extra_us]:
        extra = _span(known, lambda o: o.extra_us.value if o.extra_us else None, _more, is_size)
        parts.append(f"{arm} takes {extra} CPU per frame than {baseline}{_place(known, is_size)}")
    estimates = [e for o in costs for e in (o.slowdown, o.extra_us) if e]
    without = " (too few repeats for an interval)" if any(e.n == 1 for e in estimates) else ""
    return f"{'; '.join(parts)}{without}."


def _span(
    known: Costs, value: Callable[[Overhead], float | None], text: Callable[[Overhead], str], is_size: bool
) -> str:
    """Return the least and the most, each with its interval and place."""
    ends = [pick(known, key=lambda o: value(o) or 0.0) for pick in (min, max)]
    if len(known) == 1:
        return text(ends[0])
    return " to ".join(f"{text(o)} ({at([o.x], is_size).split(maxsplit=1)[1]})" for o in ends)


def _place(known: Costs, is_size: bool) -> str:
    return at([known[0].x], is_size) if len(known) == 1 else ""


def _slowdown(o: Overhead) -> float | None:
    """Return the factor of an overhead, or its bound."""
    return o.slowdown.value if o.slowdown else o.at_least if o.at_least is not None else o.at_most


def _slower(o: Overhead) -> str:
    bound = "" if o.slowdown else "at least " if o.at_least is not None else "at most "
    return f"{bound}{factor(o.slowdown or _slowdown(o))}"


def _more(o: Overhead) -> str:
    extra = o.extra_us
    assert extra is not None
    if extra.value < 0:
        return f"{microseconds(Estimate(-extra.value, -extra.high, -extra.low, extra.n))} less"
    return f"{microseconds(extra)} more"
