# SPDX-License-Identifier: Apache-2.0
"""Builds a whole comparison from runs: arms, panels, verdicts, overheads and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from espbench.comparison.deciding import overheads, paired_ratios
from espbench.comparison.deciding.points import are_in_turns, arm_point, side
from espbench.comparison.deciding.statistics import CONFIDENCE
from espbench.comparison.deciding.verdicts import Point, verdicts
from espbench.comparison.sorting import comparability
from espbench.comparison.sorting.axes import AXES, Group, Layout, X, differing, layout
from espbench.comparison.sorting.model import (
    ArmPoint,
    Axis,
    Comparison,
    FixedLoadVerdict,
    Name,
    PairVerdicts,
    Panel,
)
from espbench.comparison.sorting.one_machine import of_one_machine
from espbench.comparison.sorting.samples import Run, Sample, read, samples
from espbench.comparison.telling import costs, remarks, words
from espbench.errors import UsageError
from espbench.results import RunDirectory
from espbench.terms import Finding, at_fixed_loads

# A run that is interleaved over one axis of a pair is interleaved over the other too: the arms are the same.
_SAME_ORDER = ({"stack", "version"}, {"dut", "kernel"})


def of_run(directory: RunDirectory) -> Comparison | None:
    """Make the comparison that a run's own plan asks for; None if it asks for none, or nothing is measured yet.

    If the measurements cannot be compared, the comparison contains only the reason.
    """
    by = directory.manifest.compare.get("by")
    if not by or not directory.outcomes():
        return None
    try:
        return compare([directory])
    except UsageError as error:
        why = "; ".join(line.strip() for line in str(error).splitlines())
        return Comparison(
            axis=by, arms=[], confidence=CONFIDENCE, family=0, method="", runs=[directory.manifest.name],
            common={}, panels=[], overheads=[], words=[f"No comparison: {why}."],
        )  # fmt: skip


def compare(
    directories: Sequence[RunDirectory],
    by: str | None = None,
    reference: str | None = None,
    allow_different: bool = False,
) -> Comparison:
    """Compare finished runs over an axis (default: the axis of the plan; `run` for several runs).

    Raise UsageError if there is nothing to compare, if conditions other than the axis differ, or if some runs are in
    virtual time and others are not. allow_different permits different conditions only.
    """
    return of(read(directories), by, reference, allow_different)


def of(
    runs: Sequence[Run], by: str | None = None, reference: str | None = None, allow_different: bool = False
) -> Comparison:
    """Compare runs that were read already."""
    comparability.refuse_mixed_time(runs)
    measured = samples(runs)
    axis = _axis(runs, measured, by)
    differences = comparability.differences(runs, axis)
    if differences and not allow_different:
        raise UsageError(comparability.refusal(differences, axis, differing(measured)))
    plan = layout(measured, axis, reference or _planned_reference(runs, axis))
    plan = plan if allow_different else of_one_machine(plan)
    names = [arm.name for arm in plan.arms]
    interleaved = {run.name for run in runs if _is_interleaved(run, axis)}
    panels, family = _panels(plan, names, interleaved)
    common, panels = _common(panels)
    mhz = overheads.cpu_mhz(runs)
    beside = overheads.overheads(plan.groups, mhz, interleaved)
    is_paired = {pair.b: pair.paired for panel in panels for pair in panel.pairs}
    seed = runs[0].compare.get("seed") if len(runs) == 1 and any(is_paired.values()) else None
    at_loads = _fixed_loads(runs, axis, plan)
    fixed = _by_arm(paired_ratios.judge(at_loads, axis, _tests(runs)), plan.arm_of)
    return Comparison(
        axis=axis,
        arms=plan.arms,
        confidence=CONFIDENCE,
        family=family,
        method=remarks.method(family, is_paired, seed),
        runs=[run.name for run in runs],
        common=common,
        panels=panels,
        overheads=beside,
        words=[
            *remarks.violated(measured),
            *remarks.allowed(differences),
            *paired_ratios.verdict_words(fixed),
            *words.paragraph(panels),
            *costs.cost_words(panels, beside),
            *remarks.load(panels, beside),
            *remarks.short(measured),
        ],
        differences=differences,
        warnings=[
            *paired_ratios.not_made(at_loads),
            *remarks.arms(plan.groups, axis),
            *remarks.order(plan.groups, is_paired, axis, runs),
            *remarks.runs(runs),
            *remarks.figures(panels),
            *comparability.unchecked(runs),
            *(f"Not compared: {text}." for text in plan.left_out),
        ],
        is_virtual=all(run.manifest.is_virtual for run in runs),
        is_short=any(s.outcome.is_short for s in measured),
        seed=seed if isinstance(seed, int) else None,
        facts=remarks.facts(runs, axis),
        cpu_mhz=mhz,
        fixed_loads=fixed,
    )


def _planned_reference(runs: Sequence[Run], axis: Axis) -> str | None:
    """Return the reference that the plan of the only run names, if that run is compared over the axis of its plan."""
    if len(runs) != 1 or runs[0].compare.get("by") != axis:
        return None
    planned = runs[0].compare.get("reference")
    return str(planned) if planned else None


def _panels(plan: Layout, names: Sequence[str], interleaved: set[str]) -> tuple[list[Panel], int]:
    """Return the panels with the verdicts of their pairs, and the number of all verdicts."""
    bare = [_panel(group, plan.x_name, names[0], interleaved) for group in plan.groups]
    pairs, family = _pairs(names, plan.groups, interleaved, plan.x_name == Name.FRAME_SIZE)
    return [replace(panel, pairs=of_panel) for panel, of_panel in zip(bare, pairs, strict=True)], family


def _by_arm(verdicts: Sequence[FixedLoadVerdict], arm_of: Mapping[str, str]) -> list[FixedLoadVerdict]:
    return [replace(v, a=arm_of.get(v.a, v.a), b=arm_of.get(v.b, v.b)) for v in verdicts]


def _fixed_loads(runs: Sequence[Run], axis: Axis, plan: Layout) -> list[Finding]:
    """Return the findings at fixed loads, if a single run interleaved this axis and compared with this reference."""
    if len(runs) != 1 or not _is_interleaved(runs[0], axis):
        return []
    reference = plan.arms[0].name
    named = [(finding, finding.paired.get("a", reference)) for finding in runs[0].paired]
    return [finding for finding, a in named if plan.arm_of.get(a, a) == reference]


def _tests(runs: Sequence[Run]) -> dict[str, str]:
    """Return the throughput test of each comparison at fixed loads, by its case; none if the runs have a single one."""
    tests = {at_fixed_loads(case.case): case.test for run in runs for case in run.compared_cases}
    return tests if len(set(tests.values())) > 1 else {}


def _axis(runs: Sequence[Run], measured: Sequence[Sample], by: str | None) -> Axis:
    wanted = by or (str(runs[0].compare.get("by", "")) if len(runs) == 1 else "run")
    for axis in AXES:
        if axis == wanted:
            return axis
    differ = differing(measured)
    raise UsageError(
        (
            f"--by {wanted}: not an axis"
            if wanted
            else f"{runs[0].where}: its plan does not say what to compare"
        )
        + f"\n  expected: --by and one of {', '.join(AXES)}"
        + (f"\n  what to do: this run differs in {', '.join(differ)}: name one" if differ else "")
    )


def _is_interleaved(run: Run, axis: Axis) -> bool:
    by = run.compare.get("by")
    return by == axis or any({by, axis} == same for same in _SAME_ORDER)


def _panel(group: Group, x_name: Name, reference: str, interleaved: set[str]) -> Panel:
    xs = group.xs()
    curves: dict[str, dict[X, list[Sample]]] = {**group.arms, **group.baselines}

    def point(name: str, x: X) -> ArmPoint:
        """Return the point of a curve, as a bound if it is one in some verdict or cost."""
        beside = (
            [other for other in group.arms if other != name]
            if name == reference or name in group.baselines
            else [reference]
        )
        others = [curves[other][x] for other in beside if x in curves.get(other, {})]
        in_turns = all(are_in_turns(curves[name][x], other, interleaved) for other in others)
        return arm_point(curves[name][x], in_turns=in_turns)

    return Panel(
        conditions=group.conditions,
        loss_goal=group.loss_goal,
        x_name=x_name,
        x=xs,
        curves={name: {x: point(name, x) for x in xs if x in by_x} for name, by_x in curves.items()},
        pairs=[],
        baselines=list(group.baselines),
    )


def _pairs(
    names: Sequence[str], groups: Sequence[Group], interleaved: set[str], x_is_size: bool
) -> tuple[list[list[PairVerdicts]], int]:
    """Return the verdicts of each panel's pairs (A is the reference), and the number of verdicts of all panels."""
    a = names[0]
    points: dict[str, list[tuple[int, Point]]] = {}
    paired: dict[str, bool] = {}
    for b in names[1:]:
        for index, group in enumerate(groups):
            mine, theirs = group.arms.get(b, {}), group.arms.get(a, {})
            case = tuple(v for k, v in group.conditions.items() if k != Name.LOSS_GOAL)
            for x in group.xs():
                if x in mine and x in theirs:
                    # Repeats form pairs only if one run measured both arms in turns.
                    in_turns = are_in_turns(mine[x], theirs[x], interleaved)
                    first, second = (side(arm[x], in_turns=in_turns) for arm in (theirs, mine))
                    points.setdefault(b, []).append((index, Point(x, (case, x), first, second, (a, b))))
                    paired[b] = paired.get(b, True) and in_turns
    family = sum(map(len, points.values()))
    panels: list[list[PairVerdicts]] = [[] for _ in groups]
    for b, of_arm in points.items():
        judged = verdicts([point for _, point in of_arm], paired=paired[b], family=family)
        for index, of_panel in enumerate(panels):
            here = [v for (where, _), v in zip(of_arm, judged, strict=True) if where == index]
            if here:
                sentences = words.pair_words(a, b, here, x_is_size)
                of_panel.append(PairVerdicts(a, b, here, sentences, paired[b]))
    return panels, family


def _common(panels: Sequence[Panel]) -> tuple[dict[str, str], list[Panel]]:
    """Return the conditions that all panels share, and the panels without these."""
    first = panels[0].conditions
    common = {k: v for k, v in first.items() if all(p.conditions.get(k) == v for p in panels)}
    own = [{k: v for k, v in p.conditions.items() if k not in common} for p in panels]
    return common, [replace(p, conditions=left) for p, left in zip(panels, own, strict=True)]
