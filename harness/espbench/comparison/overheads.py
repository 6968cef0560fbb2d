# SPDX-License-Identifier: Apache-2.0
"""What an arm costs beside plain and null at the same point: the seed articles' `3.2x`, µs and cycles per frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from espbench.comparison.axes import Group, X
from espbench.comparison.model import ArmPoint, Overhead, Panel
from espbench.comparison.samples import Run

Curves = Mapping[str, Mapping[X, ArmPoint]]


def overheads(
    groups: Sequence[Group], panels: Sequence[Panel], cpu_mhz: float | None = None
) -> list[Overhead]:
    """Every arm against every baseline at every point where both were measured."""
    found = []
    for index, (group, panel) in enumerate(zip(groups, panels, strict=True)):
        for arm in group.arms:
            if arm in panel.baselines or group.baseline:
                continue
            for baseline, theirs in _baselines(index, arm, groups, panels).items():
                found += _of_arm(index, arm, baseline, panel.curves[arm], theirs, cpu_mhz)
    return found


def cpu_mhz(runs: Sequence[Run]) -> float | None:
    """The clock rate of the hosts' CPUs; None where it is not recorded, or not the same."""
    rates = {run.manifest.host.get("cpu_mhz") for run in runs}
    rate = rates.pop() if len(rates) == 1 else None
    return float(rate) if isinstance(rate, (int, float)) and rate > 0 else None


def _baselines(index: int, arm: str, groups: Sequence[Group], panels: Sequence[Panel]) -> Curves:
    """The baselines' curves for an arm: those of its panel, else (runs, DUTs, kernels) the arm's own."""
    panel = panels[index]
    if panel.baselines:
        return {name: panel.curves[name] for name in panel.baselines}
    return {
        other.baseline: panels[i].curves[arm]
        for i, other in enumerate(groups)
        if other.baseline and arm in panels[i].curves and _alike(groups[index], other)
    }


def _alike(group: Group, baseline: Group) -> bool:
    """Equal in everything but stack and suite."""
    return all(
        baseline.conditions.get(key) == value
        for key, value in group.conditions.items()
        if key not in ("stack", "suite")
    )


def _of_arm(
    panel: int,
    arm: str,
    baseline: str,
    own: Mapping[X, ArmPoint],
    theirs: Mapping[X, ArmPoint],
    cpu_mhz: float | None,
) -> list[Overhead]:
    found = []
    for x, point in own.items():
        if (beside := theirs.get(x)) is None:
            continue
        slowdown, bound = _slowdown(point, beside)
        extra = point.cpu_us.value - beside.cpu_us.value if point.cpu_us and beside.cpu_us else None
        if slowdown is None and extra is None:
            continue
        cycles = extra * cpu_mhz if extra is not None and cpu_mhz else None
        found.append(Overhead(panel, arm, baseline, x, slowdown, extra, cycles, bound))
    return found


def _slowdown(own: ArmPoint, theirs: ArmPoint) -> tuple[float | None, str]:
    """Baseline / arm, and whether it is a bound: a figure at the tester's limit may be larger in truth."""
    if own.fps is None or theirs.fps is None or (own.at_least and theirs.at_least):
        return None, ""
    bound = "at least" if theirs.at_least else "at most" if own.at_least else ""
    return theirs.fps.value / own.fps.value, bound
