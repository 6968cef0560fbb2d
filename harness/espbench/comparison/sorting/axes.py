# SPDX-License-Identifier: Apache-2.0
"""Sorts outcomes into arms (the values of the axis that is compared) and panels (equal conditions otherwise)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from espbench.comparison.sorting.model import IP_VERSIONS, Arm, Axis, Name
from espbench.comparison.sorting.samples import Sample
from espbench.errors import UsageError
from espbench.terms import goal_name

AXES: tuple[Axis, ...] = get_args(Axis)
X = int | str
# The arms of these axes are compared with the baselines plain and null. On the axes dut, kernel and run, each baseline
# has arms and panels of its own.
OVER_STACKS: tuple[Axis, ...] = ("stack", "version", "suite")


@dataclass
class Group:
    """The samples of one panel: arm → x → samples; baselines by their stack's name.

    baseline: the stack's name if all arms are of the same baseline (measured in two runs, on two DUTs, …); or empty.
    """

    conditions: dict[str, str]
    loss_goal: float
    baseline: str = ""
    arms: dict[str, dict[X, list[Sample]]] = field(default_factory=dict)
    baselines: dict[str, dict[X, list[Sample]]] = field(default_factory=dict)

    def xs(self) -> list[X]:
        """Return the values of x: frame sizes in rising order, then names (such as of mixes) in their first order."""
        values = dict.fromkeys(x for by_x in self.arms.values() for x in by_x)
        return sorted(x for x in values if isinstance(x, int)) + [x for x in values if isinstance(x, str)]


@dataclass(frozen=True)
class Layout:
    """A comparison before any arithmetic."""

    axis: Axis
    arms: list[Arm]  # the reference first
    x_name: Name
    groups: list[Group]
    left_out: list[str]  # conditions under which no arm can be compared with the reference, in words
    # The arms by the names that a plan has for them, where these differ: kernels are planned by their devices' names.
    arm_of: Mapping[str, str] = field(default_factory=dict)


def layout(samples: Sequence[Sample], axis: Axis, reference: str | None = None) -> Layout:
    """Sort samples into arms and panels; the reference is the first arm unless one is named.

    Raise UsageError if there are fewer than two arms, if no arm has that name, or if no arm has a point in common with
    the reference.
    """
    usable = _of_axis(samples, axis, reference)
    name_of = _names(usable, axis)
    baselines = _baselines(usable, axis, reference)
    own = [s for s in usable if s.outcome.stack not in baselines]
    names = list(dict.fromkeys(map(name_of, own)))
    if len(names) < 2:
        raise UsageError(_one_arm(samples, axis, names))
    # A plan names the kernels it compares by their profiles, before any kernel is read back.
    aliases = {s.outcome.dut: name_of(s) for s in own} if axis == "kernel" else {}
    first = _reference(names, aliases.get(reference or "", reference))
    names = [first, *(name for name in names if name != first)]
    x_is_stack = axis == "frame_size" and len({s.outcome.suite for s in own}) == 1 < len(
        {s.outcome.stack for s in own}
    )
    x_of = _x(axis, x_is_stack)
    # A baseline that is an arm has a suite of its own or none: it is compared with every suite of the other arms.
    odd = [s for s in own if axis == "stack" and s.is_baseline]
    ordinary = [s for s in own if not (axis == "stack" and s.is_baseline)]
    groups: dict[tuple[tuple[str, str], ...], Group] = {}
    for sample in ordinary or odd:
        fixed = _conditions(sample, axis, x_is_stack)
        if not ordinary:
            fixed.pop("suite")
        group = groups.setdefault(tuple(fixed.items()), _new(fixed, sample, axis))
        group.arms.setdefault(name_of(sample), {}).setdefault(x_of(sample), []).append(sample)
    for group in groups.values():
        if ordinary:
            _add(group.arms, group, odd, axis)
        if axis != "frame_size":
            _add(group.baselines, group, [s for s in usable if s.outcome.stack in baselines], axis)
    shared = [g for g in groups.values() if _is_shared(g, first)]
    shared.sort(key=lambda group: group.baseline != "")  # stable: panels of baselines come last
    if not shared:
        raise UsageError(_nothing_shared(axis, names, groups.values()))
    return Layout(
        axis=axis,
        arms=[Arm(name, _detail([s for s in own if name_of(s) == name])) for name in names],
        x_name=Name.FRAME_SIZE if axis != "frame_size" else Name.STACK if x_is_stack else Name.SUITE,
        groups=shared,
        left_out=[
            f"{' and '.join(g.arms)} {'alone' if len(g.arms) == 1 else f'without {first}'}: "
            f"{', '.join(g.conditions.values())}"
            for g in groups.values()
            if not _is_shared(g, first)
        ],
        arm_of=aliases,
    )


def _new(fixed: dict[str, str], sample: Sample, axis: Axis) -> Group:
    of_baseline = sample.is_baseline and axis not in (*OVER_STACKS, "frame_size")
    return Group(fixed, sample.outcome.loss_goal, sample.outcome.stack if of_baseline else "")


def differing(samples: Sequence[Sample]) -> list[Axis]:
    """Return the axes on which these samples have more than one value."""
    arms = [s for s in samples if not s.is_baseline]
    values: dict[Axis, set[object]] = {
        "stack": {s.outcome.stack for s in arms} or {s.outcome.stack for s in samples},
        "suite": {s.outcome.suite for s in arms},
        "dut": {s.outcome.dut for s in samples},
        "kernel": {s.kernel for s in samples if s.kernel},
        "version": set(max(_versions(samples).values(), key=len, default=())),
        "frame_size": {s.outcome.frame_size for s in samples},
        "run": {s.run for s in samples},
    }
    return [axis for axis in AXES if len(values[axis]) > 1]


def _of_axis(samples: Sequence[Sample], axis: Axis, reference: str | None) -> list[Sample]:
    """Return the samples to compare: all; on the axis `version` those of the stack with several, and the baselines."""
    if axis != "version":
        return list(samples)
    versions = _versions(samples)
    several = [kind for kind, of_stack in versions.items() if len(of_stack) > 1]
    if reference is not None and len(several) > 1:
        several = [k for k in several if any(reference.startswith(label) for label, _ in versions[k])]
    if len(several) > 1:
        raise UsageError(
            f"--by version: {', '.join(several)} have several versions each\n"
            "  expected: one stack whose versions are compared\n"
            "  what to do: name one of its labels with --reference"
        )
    return [s for s in samples if s.kind in several or s.is_baseline]


def _versions(samples: Sequence[Sample]) -> dict[str, set[tuple[str, str]]]:
    """Return the set of (label, version) of each kind of stack.

    An empty version (it was not read back) counts only if its label has no other.
    """
    versions: dict[str, set[tuple[str, str]]] = {}
    for s in samples:
        if not s.is_baseline:
            versions.setdefault(s.kind, set()).add((s.outcome.stack, s.version))
    return {
        kind: labelled - {(label, "") for label, version in labelled if version}
        for kind, labelled in versions.items()
    }


def _names(samples: Sequence[Sample], axis: Axis) -> Callable[[Sample], str]:
    """Return a function that gives the name of a sample's arm."""
    if axis == "version":
        of_label: dict[str, set[str]] = {}
        for s in samples:
            of_label.setdefault(s.outcome.stack, set()).update({s.version} - {""})

        def version(s: Sample) -> str:
            label = s.outcome.stack
            return label if len(of_label[label]) <= 1 else f"{label} ({s.version or 'version unknown'})"

        return version
    if axis == "kernel":
        of_kernel: dict[str, set[str]] = {}
        for s in samples:
            of_kernel.setdefault(s.kernel, set()).add(s.outcome.dut)

        def kernel(s: Sample) -> str:
            # Two builds may have the same release, such as the user's own with and without a patch.
            release = s.kernel or "kernel not recorded"
            return release if len(of_kernel[s.kernel]) == 1 else f"{release} ({s.outcome.dut})"

        return kernel
    by_axis: dict[Axis, Callable[[Sample], str]] = {
        "stack": lambda s: s.outcome.stack,
        "suite": lambda s: s.outcome.suite,
        "dut": lambda s: s.outcome.dut,
        "frame_size": lambda s: size_name(s.outcome.frame_size),
        "run": lambda s: s.run,
    }
    return by_axis[axis]


def _baselines(samples: Sequence[Sample], axis: Axis, reference: str | None) -> list[str]:
    """Return the labels of the baselines that are drawn beside the arms."""
    labels = list(dict.fromkeys(s.outcome.stack for s in samples if s.is_baseline))
    if axis not in (*OVER_STACKS, "frame_size"):
        return []
    others = {s.outcome.stack for s in samples if not s.is_baseline}
    if axis == "stack":
        return [label for label in labels if label != reference] if len(others) > 1 else []
    return labels if others else []


def _reference(names: list[str], reference: str | None) -> str:
    if reference is None:
        return names[0]
    if f"{reference} B" in names:
        return f"{reference} B"
    if reference not in names:
        raise UsageError(
            f"--reference {reference}: not one of the things compared\n"
            f"  expected: one of {', '.join(names)}\n  got: {reference}"
        )
    return reference


def _x(axis: Axis, x_is_stack: bool) -> Callable[[Sample], X]:
    if axis != "frame_size":
        return lambda s: s.outcome.frame_size
    return (lambda s: s.outcome.stack) if x_is_stack else (lambda s: s.outcome.suite)


def _conditions(s: Sample, axis: Axis, x_is_stack: bool) -> dict[str, str]:
    """Return the conditions that are the same in a whole panel, in words."""
    o = s.outcome
    fixed = {
        Name.TEST: o.test,
        Name.DUT: o.dut,
        Name.STACK: s.kind if axis == "version" else o.stack,
        Name.SUITE: o.suite,
        Name.DIRECTION: o.direction,
        Name.IP_VERSION: IP_VERSIONS[o.ip_version],
        Name.LOSS_GOAL: goal_name(o.loss_goal),
    }
    dropped = {
        "stack": [Name.STACK],
        "suite": [Name.SUITE],
        "dut": [Name.DUT],
        "kernel": [Name.DUT],
        "frame_size": [Name.STACK if x_is_stack else Name.SUITE],
    }.get(axis, [])
    return {key: value for key, value in fixed.items() if key not in dropped}


def _add(
    into: dict[str, dict[X, list[Sample]]], group: Group, baselines: Iterable[Sample], axis: Axis
) -> None:
    """Add to a panel the baselines that are equal in everything but stack and suite.

    Each baseline is added with one suite only: the panel's, if the baseline has it.
    """
    for s in baselines:
        theirs = _conditions(s, axis, False)
        if any(
            theirs.get(k, v) != v for k, v in group.conditions.items() if k not in (Name.STACK, Name.SUITE)
        ):
            continue
        here = into.setdefault(s.outcome.stack, {}).setdefault(s.outcome.frame_size, [])
        wanted = group.conditions.get(Name.SUITE)
        if here and here[0].outcome.suite != s.outcome.suite:
            if s.outcome.suite != wanted:
                continue
            here.clear()
        here.append(s)


def _is_shared(group: Group, reference: str) -> bool:
    """Return whether some arm can be compared with the reference at some point."""
    measured = group.arms.get(reference, {})
    return any(name != reference and set(by_x) & set(measured) for name, by_x in group.arms.items())


def size_name(size: X) -> str:
    """Return `64 B`, or the name of a mix."""
    return f"{size} B" if isinstance(size, int) else size


def _detail(samples: Sequence[Sample]) -> str:
    """Return the versions that an arm's gateways reported and the options of its stack, each combination once."""
    details = dict.fromkeys(
        ", ".join(
            ([s.version] if s.version not in ("", "kernel") else [])
            + ([f"Linux {s.kernel}"] if s.kernel else [])
            + ([s.options] if s.options != "defaults" else [])
        )
        for s in samples
    )
    return "; ".join(text for text in details if text)


def _one_arm(samples: Sequence[Sample], axis: Axis, names: list[str]) -> str:
    others = [other for other in differing([*samples]) if other != axis] if samples else []
    got = f"only {names[0]}" if names else "nothing"
    todo = (
        f"compare by what does differ: --by {' or --by '.join(others)}"
        if others
        else "name a second run, or measure with a second stack"
    )
    return (
        f"nothing to compare by {axis}\n  expected: at least two different values of {axis}\n"
        f"  got: {got}\n  what to do: {todo}"
    )


def _nothing_shared(axis: Axis, names: list[str], groups: Iterable[Group]) -> str:
    lines = "\n".join(
        f"    {', '.join(g.arms)}: {', '.join(g.conditions.values())}, "
        f"{'sizes' if axis != 'frame_size' else 'at'} {', '.join(map(str, g.xs()))}"
        for g in list(groups)[:6]
    )
    return (
        f"nothing to compare by {axis}: {', '.join(names)} have no point in common\n"
        "  expected: cases that are equal in everything else (test, suite, frame size, direction, …)\n"
        f"  got:\n{lines}\n"
        "  what to do: measure the arms under the same conditions, or compare by another axis (--by)"
    )
