# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in a plan's `compare`: too few arms or repeats, arms that differ in more than the axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from espbench.plan.duts.profiles import Profile
from espbench.plan.keys.model import Plan
from espbench.plan.reading.reader import KeyPath, Problem, did_you_mean, shown
from espbench.plan.resolved.arms import arms, versions
from espbench.plan.resolved.resolved_plan import ResolvedPlan

LEAST_REPEATS = 3
_BY: KeyPath = ("compare", "by")
_MORE = {
    "stack": "list another stack, such as stacks: [xfrm, strongswan]",
    "version": "list one stack twice, such as {stack: strongswan, label: old, version: …} and "
    "{stack: strongswan, label: new}",
    "suite": "add a suite, such as suites: [3des-sha1, aes128gcm16]",
    "frame_size": "add a frame size",
    "dut": "write dut as a list of profiles, such as dut: [./old.yaml, ./new.yaml]",
    "kernel": "write dut as a list of profiles with a kernel each, such as dut: [./old.yaml, ./new.yaml]",
}
# The reason why an axis has no rivals at a load, or what to do.
_NO_RIVALS = {
    "frame_size": (
        "compare: frame_size",
        "frame sizes are compared by their searches alone: one load in frames/s is not the same load for them",
    ),
    "stack": (
        "fewer than two stacks beside the baselines",
        "a baseline is compared by its searches alone, since it has no suite of the plan: list another stack",
    ),
}


def compare_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find every mistake in `compare`, and in a list of DUTs."""
    plan = resolved.plan
    by = plan.compare.by if plan.compare else None
    if isinstance(plan.dut, list):
        if by not in (None, "dut", "kernel"):
            yield Problem(
                ("dut",),
                f"one profile with compare: {by}",
                "a list",
                "keep one, or compare by dut or kernel",
                involves=(_BY,),
            )
            return
        yield from _duts(resolved.known_profiles or [], by)
    if plan.compare is None or by is None:
        return
    yield from _searches_alone(plan, by)
    compared = arms(resolved)
    if len(compared) < 2:
        yield Problem(
            _BY,
            f"at least two to compare by {by}",
            compared[0] if compared else "none",
            _MORE[by],
            involves=(("stacks",), ("suites",), ("frame_sizes",), ("dut",)),
        )
    elif plan.compare.reference is not None and plan.compare.reference not in compared:
        remedy = did_you_mean(plan.compare.reference, compared, "leave it out for the first")
        yield Problem(
            ("compare", "reference"),
            f"one of {', '.join(compared)}",
            shown(plan.compare.reference),
            remedy,
            involves=(("stacks",), ("suites",), ("frame_sizes",), ("dut",), _BY),
        )
    if by == "version":
        yield from _versions(plan)


def _searches_alone(plan: Plan, by: str) -> Iterator[Problem]:
    """Find what a comparison by searches alone cannot have: few repeats, and fixed loads that were asked for."""
    assert plan.compare is not None
    if plan.repeat < LEAST_REPEATS and plan.fixed_loads is None:
        yield Problem(
            ("repeat",),
            f"at least {LEAST_REPEATS} with compare by searches alone",
            str(plan.repeat),
            "fewer repeats tell no difference from noise; left out it is 5",
            involves=(("compare",),),
        )
    if not plan.has_rivals and plan.compare.at is not None and "at" in plan.compare.model_fields_set:
        compared, remedy = _NO_RIVALS[by]
        yield Problem(
            ("compare", "at"), f"at: false, or none, with {compared}", "fixed loads", remedy, involves=(_BY,)
        )


def _versions(plan: Plan) -> Iterator[Problem]:
    """Find versions of more than one stack, and entries that differ in more than version and prefix."""
    groups = versions(plan)
    if len(groups) > 1:
        names = ", ".join(entries[0].kind for entries in groups)
        remedy = "write one plan for each stack"
        yield Problem(_BY, "versions of one stack", f"of {names}", remedy, involves=(("stacks",),))
        return
    for entries in groups:
        first = {k: v for k, v in entries[0].options.items() if k not in ("version", "prefix")}
        for choice in entries[1:]:
            other = {k: v for k, v in choice.options.items() if k not in ("version", "prefix")}
            if differing := sorted(key for key in first | other if first.get(key) != other.get(key)):
                yield Problem(
                    ("stacks", plan.stacks.index(choice)),
                    f"the options of {entries[0].shown}, but for version or prefix (compare: version)",
                    f"another {', '.join(differing)}",
                    "make them equal, or use compare: stack",
                    involves=(_BY,),
                )


def _duts(profiles: Sequence[Profile], by: str | None) -> Iterator[Problem]:
    """Find profiles of a list that differ in properties of which a run has only one value."""
    for index, profile in enumerate(profiles[1:], 1):
        at: KeyPath = ("dut", index)
        if profile.name in [earlier.name for earlier in profiles[:index]]:
            remedy = "list each profile once; profiles of your own need names of their own"
            yield Problem(at, "a profile of another name", f"{shown(profile.name)} again", remedy)
            continue
        for key in ("platform", "line_rate", "mtu", *(("memory",) if by == "kernel" else ())):
            ours, first = getattr(profile, key), getattr(profiles[0], key)
            if ours != first:
                yield Problem(
                    at,
                    f"the {key} of {profiles[0].name}, {_shown(key, first)}",
                    _shown(key, ours),
                    f"profiles compared by {by} must share it" if by else "measure it in a plan of its own",
                    involves=(_BY,),
                )
        if by == "kernel" and _kernels(profile) in [_kernels(earlier) for earlier in profiles[:index]]:
            yield Problem(
                at,
                "a kernel that no profile before it has",
                _kernel(profile),
                "give each profile a kernel: of its own, or use compare: dut",
                involves=(_BY,),
            )


def _shown(key: str, value: object) -> str:
    if key == "line_rate":
        return f"{value / 1e9:g}Gbps" if isinstance(value, float) else "that of the ports"
    return str(value)


def _kernels(profile: Profile) -> object:
    """Return the key that distinguishes kernels; that of a guest includes the user's modules and overlays, which may
    extend the usual kernel.
    """
    return (profile.kernel, profile.modules, profile.overlay) if profile.emulated else profile.kernel


def _kernel(profile: Profile) -> str:
    if profile.platform not in ("uml", "qemu_x86", "qemu_e500"):
        return "the host's"
    if profile.platform == "qemu_e500" and profile.own_kernel is None:
        return "espbench's own"
    if profile.platform == "qemu_x86" and profile.own_kernel is None:
        return "Debian's"
    home, office = profile.kernel.home, profile.kernel.office
    return home if home == office else f"{home} and {office}"
