# SPDX-License-Identifier: Apache-2.0
"""What differs between runs beside the axis: a ratio of figures from unequal conditions says nothing of the axis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from espbench.comparison.model import Axis, Difference
from espbench.comparison.samples import Run, read_back

# Differ between any two runs of one machine, and say nothing of it.
_PASSING = re.compile(r"\b(load|uptime|started|date|time|free|available)\b", re.IGNORECASE)
# Programs that only read what was measured, or run the controller.
_READERS = {"python", "pydantic", "pandas", "vl-convert-python"}
# Matched point by point: one run may have more of them than another.
_OF_POINTS = {"loss_goals", "stacks", "suites", "frame_sizes", "directions", "ip_versions", "repeat"}
_TOLD_ELSEWHERE = ("topology", "line_rate")
# What follows from the axis by its nature, by the start of a condition's name.
_FOLLOWS: dict[Axis, tuple[str, ...]] = {
    "dut": ("platform", "placement", "queues", "profile: ", "kernel of "),
    "kernel": ("host: kernel", "kernel of ", "tools: linux.uml", "profile: kernel"),
    "version": ("version of ",),
}
# A stack's options that choose its version.
_VERSION_OPTIONS = ("version", "prefix", "label")


def differences(runs: Sequence[Run], axis: Axis) -> list[Difference]:
    """Every condition that two runs record with different values, and that is not the axis.

    What a run does not record (an older one, another platform) is not held against it.
    """
    facts = {run.name: dict(_facts(run, axis)) for run in runs}
    found = []
    for what in dict.fromkeys(key for of_run in facts.values() for key in of_run):
        values = {name: of_run[what] for name, of_run in facts.items() if of_run.get(what)}
        if len(set(values.values())) > 1 and not what.startswith(_FOLLOWS.get(axis, ())):
            found.append(Difference(what, values))
    return found


def refusal(found: Sequence[Difference], axis: Axis, others: Sequence[Axis]) -> str:
    """The message for runs that differ in more than the axis."""
    told = "\n".join(
        f"    {d.what}: " + "; ".join(f"{run}: {value}" for run, value in d.values.items()) for d in found
    )
    rest = [other for other in others if other != axis]
    instead = f"; or compare by what differs: --by {' or --by '.join(rest)}" if rest else ""
    return (
        f"these runs differ in more than the {axis.replace('_', ' ')}\n"
        "  expected: runs with equal conditions, so that a ratio is the axis's doing\n"
        f"  got:\n{told}\n"
        "  what to do: measure again under equal conditions, or take the difference into the report with "
        f"--allow-different{instead}"
    )


def _facts(run: Run, axis: Axis) -> Iterator[tuple[str, str]]:
    """Name → value, as text, of everything that must be equal."""
    m = run.manifest
    yield "espbench", m.espbench
    yield "platform", m.platform
    yield "topology", m.topology
    yield "line rate", f"{m.line_rate_bps:g} bit/s"
    sections: dict[str, Mapping[str, Any]] = {
        "host": m.host,
        "placement": m.placement,
        "queues": m.queues,
        "tools": {name: version for name, version in m.tools.items() if name not in _READERS},
    }
    for section, values in sections.items():
        for key, value in _flat(values):
            if not _PASSING.search(key):
                yield f"{section}: {key}", value
    if m.conditions:
        yield from _of_plan(m.conditions)
    else:
        # Older runs record no settings; the length of their final trials shows in what they found.
        lengths = [round(o.final_trial_s, 1) for o in run.outcomes if o.final_trial is not None]
        if lengths:
            yield "shortest final trial", f"{min(lengths):g} s"
    yield from _of_stacks(run, axis)


def _of_plan(recorded: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The plan's conditions; one profile without its name, since a kernel or a DUT is one of another name."""
    profiles = recorded.get("profiles") or {}
    if len(profiles) == 1:
        profiles = next(iter(profiles.values()))
        for key, value in _flat(profiles):
            yield f"profile: {key}", value
    yield from _flat({k: v for k, v in recorded.items() if k not in (*_TOLD_ELSEWHERE, "profiles")})


def _of_stacks(run: Run, axis: Axis) -> Iterator[tuple[str, str]]:
    """What each stack, by its label, was told and said of itself."""
    m = run.manifest
    of_label: dict[str, dict[str, set[str]]] = {}
    for entry in m.cases:
        facts = of_label.setdefault(entry.stack, {})
        context = m.contexts.get(m.context_of_case.get(entry.case, ""), {})
        options = {k: v for k, v in entry.options.items() if axis != "version" or k not in _VERSION_OPTIONS}
        told = ", ".join(f"{k}={v}" for k, v in sorted(options.items())) or "defaults"
        # Without a kind, the run is of before options and tunnels were recorded.
        for name, value in (
            ("kind of", entry.stack_kind),
            ("options of", told if entry.stack_kind else ""),
            ("tunnels of", str(entry.tunnels) if entry.stack_kind else ""),
            ("version of", read_back(context.get("stack_version"))),
            ("kernel of", read_back(context.get("kernel"))),
        ):
            if value:
                facts.setdefault(name, set()).add(value)
    for label, facts in of_label.items():
        for name, values in facts.items():
            yield f"{name} {label}", " / ".join(sorted(values))


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested tables as `outer.inner` → text; empty values and what is matched point by point left out."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if key in _OF_POINTS:
            continue
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value, start=1):
                yield from _flat(item, f"{name}." if len(value) == 1 else f"{name}.{number}.")
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{name}.")
        elif value not in (None, "", [], ()):
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            yield name, text
