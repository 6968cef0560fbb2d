# SPDX-License-Identifier: Apache-2.0
"""Leaves out points whose arms were measured on different machines: their ratio would also compare the machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from espbench.comparison.sorting.axes import Group, Layout, X, size_name
from espbench.comparison.sorting.samples import Sample
from espbench.errors import UsageError


def of_one_machine(plan: Layout) -> Layout:
    """Return the layout with the points that every arm and baseline has of the same machines as the reference.

    Repeats may be of several machines, if each arm was measured as often on each. A machine that is not recorded is
    not held against a point. UsageError if no point is left.
    """
    reference = plan.arms[0].name
    left_out: list[str] = []
    groups = []
    for group in plan.groups:
        measured = group.arms.get(reference, {})
        arms = {name: _alike(by_x, measured) for name, by_x in group.arms.items()}
        apart = {
            x: None
            for name, by_x in group.arms.items()
            for x in by_x
            if x in measured and x not in arms[name]
        }
        left_out += [_words(group, x) for x in apart]
        kept = replace(
            group,
            arms={name: by_x for name, by_x in arms.items() if by_x},
            baselines={name: _alike(by_x, measured) for name, by_x in group.baselines.items()},
        )
        if any(name != reference and set(by_x) & set(measured) for name, by_x in kept.arms.items()):
            groups.append(kept)
    if not groups:
        raise UsageError(_nothing(plan, left_out))
    return replace(plan, groups=groups, left_out=[*plan.left_out, *left_out])


def _alike(by_x: dict[X, list[Sample]], measured: dict[X, list[Sample]]) -> dict[X, list[Sample]]:
    return {x: samples for x, samples in by_x.items() if x not in measured or _same(samples, measured[x])}


def _same(mine: Sequence[Sample], theirs: Sequence[Sample]) -> bool:
    a, b = Counter(s.machine for s in mine), Counter(s.machine for s in theirs)
    if "" in a or "" in b:
        return True
    return a == b or (len(a) == 1 and a.keys() == b.keys())  # a run that was interrupted lacks repeats


def _words(group: Group, x: X) -> str:
    return f"{size_name(x)}, measured on different machines: {', '.join(group.conditions.values())}"


def _nothing(plan: Layout, left_out: Sequence[str]) -> str:
    machines: dict[str, dict[str, None]] = {}
    for group in plan.groups:
        for name, by_x in group.arms.items():
            of_arm = machines.setdefault(name, {})
            of_arm.update(dict.fromkeys(s.machine for samples in by_x.values() for s in samples))
    lines = "\n".join(f"    {name}: on {', '.join(of_arm)}" for name, of_arm in machines.items())
    return (
        f"nothing to compare by {plan.axis}: the figures are of different machines\n"
        f"  expected: points that were measured on one machine each\n  got:\n{lines}\n"
        "  what to do: put what is to be compared into the plan (compare: by), so that one machine measures it; or "
        "compare the machines too with --allow-different"
    )
