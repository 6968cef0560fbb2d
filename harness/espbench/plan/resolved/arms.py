# SPDX-License-Identifier: Apache-2.0
"""Names the arms that a plan compares, and shuffles the order in which its cases are then measured."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from espbench.catalogue.stack_names import BASELINES
from espbench.plan.keys.model import Plan
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_Point = tuple[Any, ...]
_Axis = tuple[str, ...]


def arms(resolved: ResolvedPlan) -> list[str]:
    """Return the names, as results show them, of the arms that `compare` compares; in the plan's order.

    By stack, the baselines that the plan names are arms only if there are fewer than two other stacks. By dut and
    kernel, arms are the profiles. Empty without `compare`.
    """
    plan = resolved.plan
    if plan.compare is None:
        return []
    match plan.compare.by:
        case "stack":
            others = [choice for choice in plan.stacks if choice.kind not in BASELINES]
            return [choice.shown for choice in (others if len(others) >= 2 else plan.stacks)]
        case "version":
            return [choice.shown for choice in next(iter(versions(plan)), [])]
        case "suite":
            return list(plan.suites) if plan.taking_suites else []
        case "frame_size":
            return [str(size) for size in plan.frame_sizes]
        case _:
            return resolved.dut_names


def versions(plan: Plan) -> list[list[StackChoice]]:
    """Return the entries of each stack that the plan lists in two or more versions or builds."""
    by_kind: dict[str, list[StackChoice]] = {}
    for choice in plan.stacks:
        by_kind.setdefault(choice.kind, []).append(choice)
    return [
        entries
        for entries in by_kind.values()
        if len({(choice.version, choice.prefix) for choice in entries}) > 1
    ]


def compare_settings(resolved: ResolvedPlan) -> dict[str, Any]:
    """Return `compare` as the manifest has it: by, reference, seed and, if arms are compared at fixed loads, at;
    else empty.
    """
    plan = resolved.plan
    if plan.compare is None:
        return {}
    reference = plan.compare.reference or arms(resolved)[0]
    settings = {"by": plan.compare.by, "reference": reference, "seed": plan.compare.seed}
    return settings | ({"at": plan.fixed_loads.model_dump(mode="json")} if plan.fixed_loads else {})


def execution_order(cases: Sequence[Case], resolved: ResolvedPlan) -> list[Case]:
    """Return the cases in the order of measuring: as they are or, with `compare`, shuffled by its seed.

    Repeats are outermost. Within one repeat, the points (cases that are equal except for the axis) are shuffled. At
    each point its arms follow one another, in an order drawn for this point and repeat alone. So slow changes of the
    host affect all arms alike, and which arm is first is random. The baselines plain and null, which have no suite
    of the plan, join one point of their frame size.
    """
    compare = resolved.plan.compare
    if compare is None:
        return list(cases)
    rng = random.Random(compare.seed)
    ordered: list[Case] = []
    by_repeat = sorted(cases, key=lambda case: case.repeat)
    for _, repeat in groupby(by_repeat, key=lambda case: case.repeat):
        ordered += _chained(_points(list(repeat), _AXES[compare.by], rng))
    return ordered


# These are the coordinates in which the cases of one point differ, by axis.
_AXES: dict[str, _Axis] = {
    "stack": ("stack",),
    "version": ("stack",),
    "suite": ("suite",),
    "frame_size": ("frame_size",),
    "dut": ("dut",),
    "kernel": ("dut",),
}


def _point(case: Case, without: _Axis) -> _Point:
    coordinates = {
        "dut": case.dut,
        "stack": case.stack.shown,
        "suite": case.suite,
        "frame_size": case.frame_size,
        "direction": case.direction,
        "ip_version": case.ip_version,
        "test": case.test,
    }
    return tuple(value for name, value in coordinates.items() if name not in without)


def _points(cases: list[Case], axis: _Axis, rng: random.Random) -> list[list[Case]]:
    """Return the points of one repeat, shuffled, each with its cases shuffled too."""
    points: dict[_Point, list[Case]] = {}
    for case in cases:
        if case.stack.kind not in BASELINES:
            points.setdefault(_point(case, axis), []).append(case)
    drawn = list(points.values())
    rng.shuffle(drawn)
    for case in cases:
        if case.stack.kind in BASELINES:
            drawn = _joined(drawn, case, axis)
    if not points:  # baselines alone
        rng.shuffle(drawn)
    for point in drawn:
        rng.shuffle(point)
    return drawn


def _joined(points: list[list[Case]], baseline: Case, axis: _Axis) -> list[list[Case]]:
    """Add a baseline to a point of its own suite or, if there is none, to the first point that differs only in it."""
    for free in (("stack", *axis), ("stack", "suite", *axis)):
        for point in points:
            if _point(point[0], free) == _point(baseline, free):
                point.append(baseline)
                return points
    return [*points, [baseline]]


def _chained(points: list[list[Case]]) -> list[Case]:
    """Return the points in such an order that neighbours share a gateway pair where possible.

    Only points change places, after the order inside each was drawn. So which arm comes first at a point stays
    random, and independent of every other point.
    """
    ordered: list[Case] = []
    left = list(points)
    while left:
        fits = (i for i, point in enumerate(left) if ordered and point[0].pair == ordered[-1].pair)
        ordered += left.pop(next(fits, 0))
    return ordered
