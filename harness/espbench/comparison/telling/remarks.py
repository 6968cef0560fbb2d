# SPDX-License-Identifier: Apache-2.0
"""Writes the remarks about the verdicts: how they were reached, on what machine, and what limits them."""

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
    """Say how the verdicts were reached; is_paired: by arm, whether its repeats were compared in pairs."""
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
    """Return the remark that is shown above all verdicts if runs of unequal conditions are compared."""
    if not differences:
        return []
    names = listed([difference.what for difference in differences])
    return [f"The runs also differ in {names}, which was allowed; this may be the cause of a difference."]


def load(panels: Sequence[Panel], overheads: Sequence[Overhead]) -> list[str]:
    """Return the remark that all CPU figures in the sentences depend on the load, if there are such figures."""
    ratios = [v.cpu_ratio for panel in panels for pair in panel.pairs for v in pair.points]
    if not any(ratios) and not any(o.extra_us for o in overheads):
        return []
    return [
        "CPU per frame is of Home and Office together, each arm at its own throughput; it depends on the load."
    ]


def violated(samples: Sequence[Sample]) -> list[str]:
    """Return the warning that is shown above all verdicts if arms let frames pass in clear."""
    leaks = Counter(
        (s.outcome.stack, s.outcome.suite, s.outcome.frame_size)
        for s in samples
        if s.outcome.status == "VIOLATED"
    )
    if not leaks:
        return []
    places = [f"{stack} {suite} {size_name(size)} ({n}×)" for (stack, suite, size), n in leaks.items()]
    return [
        f"VIOLATED: frames crossed without encryption with {listed(places)}: no figure, and no verdict there."
    ]


def short(samples: Sequence[Sample]) -> list[str]:
    """Say which final trials were shorter than RFC 2544 24 wants, with their lengths, s."""
    final = [s.outcome for s in samples if s.outcome.final_trial is not None]
    lengths = sorted({round(o.final_trial_s, 1) for o in final if o.is_short})
    if not lengths:
        return []
    span = f"{lengths[0]:g} s" if len(lengths) == 1 else f"{lengths[0]:g} to {lengths[-1]:g} s"
    which = "All" if all(o.is_short for o in final) else "Some"
    return [f"{which} final trials ({span}) are shorter than the {RFC2544_FINAL_TRIAL_S:g} s of RFC 2544."]


def arms(groups: Sequence[Group], axis: Axis) -> list[str]:
    """Say which arms have different stacks and different options: the ratio may come from either."""
    of_arm: dict[str, set[str]] = {}
    kinds = set()
    for group in groups:
        for name, by_x in group.arms.items():
            for s in (s for samples in by_x.values() for s in samples if not s.is_baseline):
                of_arm.setdefault(name, set()).add(s.options)
                kinds.add(s.kind)
    by_arm = {name: " / ".join(sorted(options)) for name, options in of_arm.items()}
    # Arms with the same stack differ only in its options. These are what is compared, and each arm shows its own.
    if (
        axis not in ("stack", "version")
        or len(set(by_arm.values())) < 2
        or (axis == "stack" and len(kinds) < 2)
    ):
        return []
    each = "; ".join(f"{name}: {options}" for name, options in by_arm.items())
    return [f"The arms differ in more than the {axis}: {each}."]


def order(groups: Sequence[Group], is_paired: dict[str, bool], axis: Axis, runs: Sequence[Run]) -> list[str]:
    """Say which arms were not measured in turns."""
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


def runs(compared: Sequence[Run]) -> list[str]:
    """Say which cases lack an outcome, which tests are left out, which CPUs were shared, and if gateways are guests."""
    sentences = []
    for run in compared:
        cases = run.compared_cases
        missing = len({e.case for e in cases} - {o.case for o in run.outcomes})
        if missing:
            sentences.append(f"{run.name}: {missing} of {len(cases)} cases have no outcome yet.")
        if others := run.other_cases:
            names = [test.replace("_", " ") for test in dict.fromkeys(e.test for e in others)]
            sentences.append(
                f"{run.name}: only throughputs are compared; {listed(names)} ({len(others)} cases) "
                f"{'is' if len(names) == 1 else 'are'} left out."
            )
    shared = dict.fromkeys(text for run in compared for text in run.manifest.placement.get("shared", []))
    sentences += [f"{text[:1].upper()}{text[1:]}." for text in shared]
    if any(run.manifest.platform == "uml" for run in compared):
        sentences.append(
            "The gateways are User-Mode Linux guests: the ratios belong to this host and say nothing about hardware."
        )
    return sentences


def figures(panels: Sequence[Panel]) -> list[str]:
    """Say which figures are not proven to be of encrypted traffic, and which are bounds."""
    points = [point for p in panels for curve in p.curves.values() for point in curve.values()]
    sentences = []
    if not all(point.proven for point in points):
        sentences.append(
            "Encryption not proven: some figures are of boxes whose counters espbench may not read."
        )
    if any(point.at_least for point in points):
        sentences.append(
            "Some figures are lower bounds (they met the limit of the tester or of the search, the loads above could "
            "not be judged, or slow CPUs may have lowered them at another time): those DUTs may be faster than shown."
        )
    return sentences


def facts(runs: Sequence[Run], axis: Axis) -> dict[str, str]:
    """Return facts of the machines by name, each once if the runs agree, and what differs because the axis does."""
    values_of: dict[str, dict[str, None]] = {}
    for run in runs:
        of_run = {"Platform": run.manifest.platform}
        of_run |= {
            name: str(run.manifest.host[key]) for key, name in _FACTS.items() if key in run.manifest.host
        }
        for name, value in (of_run | {"espbench": run.manifest.made_by}).items():
            values_of.setdefault(name, {})[value] = None
    shown = {name: " / ".join(values) for name, values in values_of.items()}
    if follows := comparability.following(runs, axis):
        name = {"dut": "DUT"}.get(axis, axis)
        shown[f"Follows from the {name}"] = ". ".join(map(comparability.in_words, follows))
    return shown
