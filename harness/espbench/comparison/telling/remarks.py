# SPDX-License-Identifier: Apache-2.0
"""What a reader must know beside the verdicts: how they were reached, of what machine, and what limits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from espbench.comparison.deciding.statistics import PER_CENT
from espbench.comparison.sorting import comparability
from espbench.comparison.sorting.axes import Group, size_name
from espbench.comparison.sorting.model import Axis, Difference, Overhead, Panel
from espbench.comparison.sorting.samples import Run, Sample
from espbench.comparison.telling.words import listed
from espbench.terms import RFC2544_FINAL_TRIAL_S

_FACTS = {
    "cpu": "Host CPU",
    "cpus": "Host CPUs",
    "kernel": "Host kernel",
    "virtual machine": "Host is virtual",
}


def method(family: int, is_paired: dict[str, bool], seed: object) -> str:
    """How the verdicts were reached; is_paired: arm → whether its repeats were held against pairs."""
    paired = [b for b, is_so in is_paired.items() if is_so]
    if len(paired) == len(is_paired):
        order = "The cases were interleaved, and repeats are compared in pairs (paired t)."
    elif not paired:
        order = "The repeats of the arms are compared as independent samples (Welch's t)."
    else:
        order = (
            f"Repeats of {' and '.join(paired)} are compared with the reference's in pairs (paired t); "
            "those of the other arms as independent samples (Welch's t)."
        )
    if paired and seed is not None:
        order += f" The order was shuffled with seed {seed}."
    return (
        f"Ratios of geometric means of the throughput (frames/s) of the repeats. {order} "
        f"The intervals hold together at {PER_CENT} over {family} verdicts (Bonferroni). The resolution of "
        "the search is in them in full. The scatter of a point is drawn towards that of all points of the "
        "two arms as far as they agree (moderated t, Smyth 2004), and never below its own. Where an arm missed the "
        "goal even at its minimum, or has a lower bound in place of a figure, the ratio is a bound at the same "
        "confidence. "
        f"All other intervals are {PER_CENT} for each point alone."
    )


def allowed(differences: Sequence[Difference]) -> list[str]:
    """What must be read before any verdict where runs of unequal conditions are compared."""
    if not differences:
        return []
    told = listed([found.what for found in differences])
    return [f"The runs also differ in {told}, which was allowed; this may be the cause of a difference."]


def load(panels: Sequence[Panel], overheads: Sequence[Overhead]) -> list[str]:
    """What every figure of CPU in the words is to be read with."""
    told = [v.cpu_ratio for panel in panels for pair in panel.pairs for v in pair.points]
    if not any(told) and not any(o.extra_us for o in overheads):
        return []
    return [
        "CPU per frame is of Home and Office together, each arm at its own throughput; it depends on the load."
    ]


def violated(found: Sequence[Sample]) -> list[str]:
    """What comes before any verdict: arms that let frames pass in clear."""
    leaks = Counter(
        (s.outcome.stack, s.outcome.suite, s.outcome.frame_size)
        for s in found
        if s.outcome.status == "VIOLATED"
    )
    if not leaks:
        return []
    told = [f"{stack} {suite} {size_name(size)} ({n}×)" for (stack, suite, size), n in leaks.items()]
    return [
        f"VIOLATED: frames crossed without encryption with {listed(told)}: no figure, and no verdict there."
    ]


def short(found: Sequence[Sample]) -> list[str]:
    """Final trials shorter than RFC 2544 24 wants, with their lengths, s."""
    final = [s.outcome for s in found if s.outcome.final_trial is not None]
    lengths = sorted({round(o.final_trial_s, 1) for o in final if o.is_short})
    if not lengths:
        return []
    span = f"{lengths[0]:g} s" if len(lengths) == 1 else f"{lengths[0]:g} to {lengths[-1]:g} s"
    which = "All" if all(o.is_short for o in final) else "Some"
    return [f"{which} final trials ({span}) are shorter than the {RFC2544_FINAL_TRIAL_S:g} s of RFC 2544."]


def arms(groups: Sequence[Group], axis: Axis) -> list[str]:
    """Arms of different stacks that were given different options too: whose doing a ratio is, nobody can tell."""
    of_arm: dict[str, set[str]] = {}
    kinds = set()
    for group in groups:
        for name, by_x in group.arms.items():
            for s in (s for found in by_x.values() for s in found if not s.is_baseline):
                of_arm.setdefault(name, set()).add(s.options)
                kinds.add(s.kind)
    told = {name: " / ".join(sorted(found)) for name, found in of_arm.items()}
    # Arms of one stack differ in nothing but options: these are what is compared, and stand beside each arm.
    if (
        axis not in ("stack", "version")
        or len(set(told.values())) < 2
        or (axis == "stack" and len(kinds) < 2)
    ):
        return []
    each = "; ".join(f"{name}: {options}" for name, options in told.items())
    return [f"The arms differ in more than the {axis}: {each}."]


def order(groups: Sequence[Group], is_paired: dict[str, bool], axis: Axis, runs: Sequence[Run]) -> list[str]:
    """Arms that were not measured in turns."""
    apart = [b for b, is_so in is_paired.items() if not is_so]
    if not apart:
        return []
    which = "" if len(apart) == len(is_paired) else f" ({', '.join(apart)})"
    by = runs[0].compare.get("by") if len(runs) == 1 else None
    if by:
        return [
            f"Interleaved by repeat, not side by side{which}: the run was planned by {by}, and within a repeat the "
            f"arms by {axis} were measured apart; they are compared without pairs."
        ]
    return [
        f"Not interleaved{which}: what changed between the arms' measurements (a warmer or busier machine) "
        "looks like a difference between them, and the intervals do not include this."
    ]


def runs(found: Sequence[Run]) -> list[str]:
    """Cases without outcome, tests that are not compared, shared CPUs, guests."""
    told = []
    for run in found:
        cases = run.compared_cases
        missing = len({e.case for e in cases} - {o.case for o in run.outcomes})
        if missing:
            told.append(f"{run.name}: {missing} of {len(cases)} cases have no outcome yet.")
        if others := run.other_cases:
            names = [test.replace("_", " ") for test in dict.fromkeys(e.test for e in others)]
            told.append(
                f"{run.name}: only throughputs are compared; {listed(names)} ({len(others)} cases) "
                f"{'is' if len(names) == 1 else 'are'} left out."
            )
    shared = dict.fromkeys(text for run in found for text in run.manifest.placement.get("shared", []))
    told += [f"{text[:1].upper()}{text[1:]}." for text in shared]
    if any(run.manifest.platform == "uml" for run in found):
        told.append(
            "The gateways are User-Mode Linux guests: the ratios belong to this host and say nothing about hardware."
        )
    return told


def figures(panels: Sequence[Panel]) -> list[str]:
    """Figures nobody can vouch for, and figures that are bounds."""
    points = [point for p in panels for curve in p.curves.values() for point in curve.values()]
    told = []
    if not all(point.proven for point in points):
        told.append("Encryption not proven: some figures are of boxes whose counters espbench may not read.")
    if any(point.at_least for point in points):
        told.append(
            "Some figures are lower bounds (they met the limit of the tester or of the search, or the loads above "
            "could not be judged): those DUTs may be faster than shown."
        )
    return told


def facts(found: Sequence[Run], axis: Axis) -> dict[str, str]:
    """The machine the figures are of, each fact once where the runs agree; and what follows from the axis."""
    told: dict[str, dict[str, None]] = {}
    for run in found:
        of_run = {"Platform": run.manifest.platform}
        of_run |= {
            name: str(run.manifest.host[key]) for key, name in _FACTS.items() if key in run.manifest.host
        }
        for name, value in (of_run | {"espbench": run.manifest.made_by}).items():
            told.setdefault(name, {})[value] = None
    shown = {name: " / ".join(values) for name, values in told.items()}
    if follows := comparability.following(found, axis):
        name = {"dut": "DUT"}.get(axis, axis)
        shown[f"Follows from the {name}"] = ". ".join(map(comparability.in_words, follows))
    return shown
