# SPDX-License-Identifier: Apache-2.0
"""Finds conditions other than the axis that differ between runs.

Figures from unequal conditions say nothing about the axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from espbench.comparison.sorting.model import Axis, Condition, Difference, Part
from espbench.comparison.sorting.samples import BASELINES, VERSION_OPTIONS, Run, options_of, said
from espbench.errors import UsageError
from espbench.terms import LIBRARIES_OF_HOST, MACHINE, Manifest, kind_of_test

# Values that differ between any two runs on one machine are not compared.
_FLUCTUATING = {"cpu_mhz", "load average at start"}
# Programs that only read results, or run the controller: their versions may differ.
READERS = {"python", "pydantic", "pandas", "vl-convert-python"}
# Points are matched by the values of these keys: one run may have more of them than another.
_OF_POINTS = {"loss_goals", "stacks", "suites", "frame_sizes", "directions", "ip_versions", "repeat"}
_TOLD_ELSEWHERE = ("topology", "line_rate")
_TESTS, _UNSET = "tests", "not set"
Places = tuple[tuple[Part, str], ...]  # part, and a key within it; empty: the whole part
# Conditions that differ whenever the axis does.
_FOLLOWS: dict[Axis, Places] = {
    "dut": (("platform", ""), ("placement", ""), ("queues", ""), ("profile", "")),
    "kernel": (("tools", "linux.uml"), ("profile", "kernel"), ("profile", "modules")),
    "version": (("version", ""),),
}
# The parts of emulated gateways that depend on the stack, by their names in the Security Context. The last is of the
# user's own daemons.
_OF_STACKS = ("x86-userland", "e500-strongswan", LIBRARIES_OF_HOST)
_CEILINGS_DIFFER = 1.1
GENERATOR: tuple[Part, str] = ("tools", "generator")
_PIN = (
    "by its default the generator takes the way that suits the ports; name one in every plan, such as "
    "generator: {native: {tx: af_packet, rx: af_packet}}, and measure again"
)


def refuse_mixed_time(runs: Sequence[Run]) -> None:
    """Raise UsageError if some runs are in virtual time and others in real time, whatever is compared."""
    virtual = [run for run in runs if run.manifest.is_virtual]
    real = [run for run in runs if not run.manifest.is_virtual]
    if not virtual or not real:
        return
    by_kind = (("virtual", virtual), ("real", real))
    got = "; ".join(f"in {kind} time: {', '.join(run.name for run in of_kind)}" for kind, of_kind in by_kind)
    odd = (virtual if runs[0] in real else real)[0]
    raise UsageError(
        f"{odd.where or odd.name}: cannot be compared with {runs[0].where or runs[0].name}\n"
        "  expected: runs that are all in virtual time, or all in real time\n"
        f"  got: {got}\n"
        "  what to do: compare the runs of each kind with each other. --allow-different does not change this: a clock "
        "that counts instructions knows no caches, so a ratio to real time says nothing"
    )


def differences(runs: Sequence[Run], axis: Axis) -> list[Difference]:
    """Return every condition that two runs record with different values, and that is not the axis.

    A key that one of two plans sets and the other leaves at its default is a difference. Any other condition that a run
    does not record (an older run, another platform) is no difference.
    """
    follows = _follows(runs, axis)
    return [difference for difference in _unequal(runs, axis) if not is_within(difference, follows)]


def following(runs: Sequence[Run], axis: Axis) -> list[Difference]:
    """Return the differences that follow from the axis: they are part of what is compared, and are reported."""
    follows = _follows(runs, axis)
    return [difference for difference in _unequal(runs, axis) if is_within(difference, follows)]


def is_within(difference: Difference, places: Places) -> bool:
    """Return whether a difference belongs to one of these places."""
    condition = difference.condition
    return condition is not None and any(condition.is_within(part, key) for part, key in places)


def unchecked(runs: Sequence[Run]) -> list[str]:
    """Say which conditions could not be compared, and which ceilings of the generator are far apart."""
    sentences = []
    if any(run.manifest.conditions for run in runs):
        sentences += [
            f"{run.name} records no settings: trial lengths, resolution and flows could not be checked."
            for run in runs
            if not run.manifest.conditions
        ]
    ceilings: dict[str, dict[str, float]] = {}
    for run in runs:
        for c in run.manifest.calibration:
            size = f"{c.frame_size} B" if isinstance(c.frame_size, int) else c.frame_size
            ceilings.setdefault(f"{size}, {c.direction}, IPv{c.ip_version}", {})[run.name] = c.offered_fps
    far = {
        where: by_run
        for where, by_run in ceilings.items()
        if max(by_run.values()) > _CEILINGS_DIFFER * min(by_run.values())
    }
    if far:
        where, by_run = next(iter(far.items()))
        figures = "; ".join(f"{name}: {fps:,.0f} frames/s" for name, fps in by_run.items())
        more = f" (and at {len(far) - 1} more)" if len(far) > 1 else ""
        sentences.append(
            f"The generator's own ceiling differs between the runs by more than 10 % at {where}{more}: {figures}."
        )
    return sentences


def refusal(differing: Sequence[Difference], axis: Axis, others: Sequence[Axis]) -> str:
    """Return the message for runs that differ in more than the axis."""
    lines = "\n".join(f"    {in_words(d)}" for d in differing)
    if any(is_within(d, (GENERATOR,)) for d in differing):
        lines += f"\n      {_PIN}"
    rest = [other for other in others if other != axis]
    instead = f"; or compare by what differs: --by {' or --by '.join(rest)}" if rest else ""
    return (
        f"these runs differ in more than the {axis.replace('_', ' ')}\n"
        "  expected: runs with equal conditions, so that a ratio is the axis's doing\n"
        f"  got:\n{lines}\n"
        "  what to do: measure again under equal conditions, or take the difference into the report with "
        f"--allow-different{instead}"
    )


def in_words(difference: Difference) -> str:
    """Return a difference as text: `line rate: first: 1e+09 bit/s; second: 1e+10 bit/s`."""
    return f"{difference.what}: " + "; ".join(f"{run}: {value}" for run, value in difference.values.items())


def _unequal(runs: Sequence[Run], axis: Axis) -> list[Difference]:
    named = _profiles_are_named(runs, axis)
    facts = {run.name: dict(_facts(run, axis, named)) for run in runs}
    unequal = []
    for condition in dict.fromkeys(key for of_run in facts.values() for key in of_run):
        values = {
            run.name: value
            for run in runs
            if (value := facts[run.name].get(condition) or _unset(run, facts[run.name], condition, named))
        }
        if len(set(values.values())) > 1:
            unequal.append(Difference(condition.title, values, condition))
    return unequal


def _unset(run: Run, facts: Mapping[Condition, str], condition: Condition, named: bool) -> str:
    """Return what stands for a key that the plan or profile of this run does not set.

    It is empty for what this run cannot have: a profile or a test of the other run, or any key if the run is older than
    the recording of settings.
    """
    recorded = run.manifest.conditions
    if not recorded or condition.part not in ("settings", "profile"):
        return ""
    if condition.part == "profile":
        profiles = recorded.get("profiles") or {}
        is_here = not named or any(condition.is_within("profile", name) for name in profiles)
        return _UNSET if is_here else ""
    test = ".".join(condition.key.split(".")[:2])
    of_test = condition.is_within("settings", _TESTS)
    return _UNSET if not of_test or any(fact.is_within("settings", test) for fact in facts) else ""


def _profiles_are_named(runs: Sequence[Run], axis: Axis) -> bool:
    """Return whether the conditions of DUT profiles carry the profiles' names.

    They do not if DUTs or kernels are compared and each run has a single profile: the names then differ, and everything
    else must be equal.
    """
    several = any(len(run.manifest.conditions.get("profiles") or {}) > 1 for run in runs)
    return axis not in ("dut", "kernel") or several


def _follows(runs: Sequence[Run], axis: Axis) -> Places:
    # Namespaces run the host's kernel, so it follows from the axis. A guest or a box has its own kernel, and then the
    # host's kernel must be equal.
    of_host = axis == "kernel" and all(run.manifest.platform == "netns" for run in runs)
    own: Places = (("host", "kernel"),) if of_host else ()
    return _FOLLOWS.get(axis, ()) + own


def _facts(run: Run, axis: Axis, named: bool) -> Iterator[tuple[Condition, str]]:
    """Yield everything that must be equal, with its value as text."""
    m = run.manifest
    yield _whole("espbench"), m.espbench
    yield _whole("platform"), m.platform
    yield _whole("topology"), m.topology
    yield _whole("line rate"), f"{m.line_rate_bps:g} bit/s" if m.line_rate_bps else "not known"
    if not m.is_virtual:
        yield from of_machine(m)
    elif axis not in ("dut", "kernel"):
        yield from of_guests(m)
    if m.conditions:
        yield from _of_plan({**m.conditions, "tests": _tests(run)}, named)
    else:
        # Older runs record no settings, but their outcomes show how long the final trials were.
        lengths = [round(o.final_trial_s, 1) for o in run.outcomes if o.final_trial is not None]
        if lengths:
            yield Condition("final trial", "", "shortest final trial"), f"{min(lengths):g} s"
    yield from _of_stacks(run, axis)


def of_machine(m: Manifest) -> Iterator[tuple[Condition, str]]:
    """Yield the conditions of the machine that measured: on these, figures in real time depend.

    They are its hardware and its fingerprint, the CPUs and queues of each role, and the versions of programs, with the
    generator's way to the wire.
    """
    sections: dict[Part, Mapping[str, Any]] = {
        "host": {key: value for key, value in m.host.items() if key not in (*_FLUCTUATING, MACHINE)},
        "placement": m.placement,
        "queues": m.queues,
        "tools": {name: version for name, version in m.tools.items() if name not in READERS},
    }
    for section, values in sections.items():
        for key, value in flat(values):
            yield Condition(section, key, f"{section}: {key}"), value
    if machines := sorted({m.machine_of(entry.case) for entry in m.cases} - {""}):
        yield Condition("host", MACHINE, "host: machine"), ", ".join(machines)


def of_guests(m: Manifest) -> Iterator[tuple[Condition, str]]:
    """Yield the parts of emulated gateways, by their digests: figures in virtual time depend on these alone.

    Parts that a guest has for the sake of its stack are left out: the stack's version says what differs.
    """
    found: dict[Condition, set[str]] = {}
    for entry in m.cases:
        context = m.contexts.get(m.context_of_case.get(entry.case, ""), {})
        for key, value in flat(context.get("emulation", {})):
            if key.partition(".")[0] not in _OF_STACKS:
                condition = Condition("guests", f"{entry.dut}.{key}", f"guests of {entry.dut}: {key}")
                found.setdefault(condition, set()).add(value)
    for condition, values in found.items():
        yield condition, " / ".join(sorted(values))


def _tests(run: Run) -> list[Any]:
    """Return the settings of the tests whose figures are compared; the settings of other tests may differ."""
    others = {kind_of_test(entry.test) for entry in run.other_cases}
    return [
        {name: settings for name, settings in test.items() if kind_of_test(name) not in others}
        for test in run.manifest.conditions.get("tests", [])
    ]


def _whole(part: Part) -> Condition:
    return Condition(part, "", part)


def _of_plan(recorded: Mapping[str, Any], named: bool) -> Iterator[tuple[Condition, str]]:
    """Yield the plan's conditions; named: those of DUT profiles carry the profiles' names."""
    for name, profile in (recorded.get("profiles") or {}).items():
        for key, value in flat(profile):
            if named:
                yield Condition("profile", f"{name}.{key}", f"profile {name}: {key}"), value
            else:
                yield Condition("profile", key, f"profile: {key}"), value
    for key, value in flat({k: v for k, v in recorded.items() if k not in (*_TOLD_ELSEWHERE, "profiles")}):
        yield Condition("settings", key, key), value


def _of_stacks(run: Run, axis: Axis) -> Iterator[tuple[Condition, str]]:
    """Yield the kind, version and options of each stack, by its label, and the gateways' kernels, by DUT."""
    m = run.manifest
    facts: dict[Condition, set[str]] = {}
    for entry in m.cases:
        context = said(m, entry.case)
        named = {
            Condition("kind", entry.stack, f"kind of {entry.stack}"): entry.stack_kind,
            Condition("version", entry.stack, f"version of {entry.stack}"): context["stack_version"],
        }
        if entry.stack_kind:  # otherwise the run is older than the recording of options
            # Each version of a stack has a label of its own, but their options must be equal.
            label, without = (entry.stack_kind, VERSION_OPTIONS) if axis == "version" else (entry.stack, ())
            named[Condition("options", label, f"options of {label}")] = options_of(entry.options, without)
            if axis == "stack" and entry.stack_kind not in BASELINES:
                of_stacks = Condition("options", "", "options of the stacks")
                named[of_stacks] = options_of(entry.options, VERSION_OPTIONS)
        if axis not in ("dut", "kernel"):
            kernel = Condition("kernel", entry.dut, f"kernel of the gateways ({entry.dut})")
            named[kernel] = context["kernel"]
        for condition, value in named.items():
            if value:
                facts.setdefault(condition, set()).add(value)
    for condition, values in facts.items():
        yield condition, " / ".join(sorted(values))


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of nested tables as (`outer.inner`, text), except empty ones and those that match points."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if key in _OF_POINTS:
            continue
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            met: Counter[tuple[str, ...]] = Counter()
            for item in value:
                met[tuple(item)] += 1
                again = met[tuple(item)]
                yield from flat(item, f"{name}." if again == 1 else f"{name}.{again}.")
        elif isinstance(value, Mapping):
            yield from flat(value, f"{name}.")
        elif value not in (None, "", [], ()):
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            yield name, text
