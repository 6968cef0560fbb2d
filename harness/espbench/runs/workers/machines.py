# SPDX-License-Identifier: Apache-2.0
"""Splits and merges the manifest of a run on several machines: one machine's view of it, and the changes it sends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from espbench.errors import UsageError
from espbench.plan.resolved.cases import Case
from espbench.terms import MACHINE, OF_EACH_MACHINE, OF_SAME_MACHINE, Calibration, Manifest

_SEVERAL = "; or "


def as_seen_on(manifest: Manifest, machine: str, cases: Sequence[Case]) -> Manifest:
    """Return the manifest for a machine that measures these cases, with only this machine's own entries.

    It has the generator's ceilings only if there is one for each of the cases; otherwise they are measured anew.
    """
    own = (manifest.machines or {}).get(machine, {})
    contexts_of = {
        case: name.removesuffix(_suffix(machine))
        for case, name in manifest.context_of_case.items()
        if manifest.machine_of_case.get(case) == machine
    }
    contexts = {
        name.removesuffix(_suffix(machine)): context
        for name, context in manifest.contexts.items()
        if name.endswith(_suffix(machine))
    }
    wanted = {(case.frame_size, case.ip_version, case.direction) for case in cases}
    ceilings = [c for c in manifest.calibration if c.machine == machine and _point(c) in wanted]
    changes = {key: own.get(key, {}) for key in OF_EACH_MACHINE}
    return manifest.model_copy(
        update=changes
        | {
            "cases": [],
            "asked": {},
            "machines": None,
            "machine_of_case": {},
            "contexts": contexts,
            "context_of_case": contexts_of,
            "calibration": ceilings if {_point(c) for c in ceilings} == wanted else [],
            "compare": {**manifest.compare, **own.get("compare", {})},
        }
    )


def begun_on(manifest: Manifest, facts: Mapping[str, Any], cases: Collection[str]) -> dict[str, Any]:
    """Return the manifest's changes when a machine begins to measure cases.

    facts: the machine's `host` and `tools`. UsageError if it has changed since it measured other cases of the run.
    """
    machine = str(facts["host"][MACHINE])
    known = manifest.machines or {}
    own = known.get(machine, {})
    was, now = own.get("host", {}), facts["host"]
    if changed := [key for key in OF_SAME_MACHINE if key in was and was[key] != now.get(key)]:
        raise UsageError(
            f"machine {machine}: it is not as it was when it measured other cases of this run\n"
            f"  expected: {'; '.join(f'{key}: {was[key]}' for key in changed)}\n"
            f"  got: {'; '.join(f'{key}: {now.get(key)}' for key in changed)}\n"
            "  what to do: undo the change, or start a new run"
        )
    machines = {**known, machine: {**facts, **own}}
    of_case = {**manifest.machine_of_case, **dict.fromkeys(cases, machine)}
    return {"machines": machines, "machine_of_case": of_case} | _common(machines)


def merged(manifest: Manifest, machine: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest's changes for the changes that a machine sends (arguments of its `update_manifest`)."""
    machines = {name: dict(of_machine) for name, of_machine in (manifest.machines or {}).items()}
    own = machines.setdefault(machine, {})
    made: dict[str, Any] = {}
    for key, value in changes.items():
        if key in (*OF_EACH_MACHINE, "compare"):
            own[key] = {**own.get(key, {}), **value}
            if key == "compare":
                made[key] = {**manifest.compare, **value}
        elif key == "contexts":
            made[key] = manifest.contexts | {f"{name}{_suffix(machine)}": row for name, row in value.items()}
        elif key == "context_of_case":
            made[key] = manifest.context_of_case | {
                case: f"{name}{_suffix(machine)}"
                for case, name in value.items()
                if manifest.machine_of_case.get(case) == machine
            }
        elif key == "calibration":
            made[key] = _with_ceilings(manifest.calibration, machine, value)
        elif key == "warnings":
            made[key] = list(dict.fromkeys([*manifest.warnings, *value]))
        else:
            made[key] = {**getattr(manifest, key), **value} if isinstance(value, dict) else value
    return made | {"machines": machines} | _common(machines)


def without(manifest: Manifest, cases: Collection[str]) -> dict[str, Any]:
    """Return the manifest's changes when cases are to be begun anew, on any machine."""
    left = {case: name for case, name in manifest.context_of_case.items() if case not in cases}
    return {
        "machine_of_case": {
            case: machine for case, machine in manifest.machine_of_case.items() if case not in cases
        },
        "context_of_case": left,
        "contexts": {name: row for name, row in manifest.contexts.items() if name in left.values()},
        "search_hints": {case: row for case, row in manifest.search_hints.items() if case not in cases},
    }


def warned(manifest: Manifest, cases: Collection[str]) -> dict[str, Any]:
    """Return the manifest's changes at the end of a run: a warning if several machines measured its cases."""
    counts: dict[str, int] = {}
    for case in cases:
        if machine := manifest.machine_of_case.get(case):
            counts[machine] = counts.get(machine, 0) + 1
    if len(counts) < 2:
        return {}
    listed = "; ".join(f"{machine}: {number} cases" for machine, number in counts.items())
    text = (
        f"The cases were measured on {len(counts)} machines ({listed}). Figures of different "
        "machines are not comparable; manifest.json says which machine measured which case."
    )
    return {} if text in manifest.warnings else {"warnings": [*manifest.warnings, text]}


def _common(machines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's own copy of the tables that each machine has: the values that all machines share.

    Where machines differ, an entry has each different value once.
    """
    common: dict[str, Any] = {}
    for key in OF_EACH_MACHINE:
        tables = [of_machine.get(key) or {} for of_machine in machines.values()]
        names = dict.fromkeys(name for table in tables for name in table)
        common[key] = {
            name: _one_or_all([table[name] for table in tables if name in table]) for name in names
        }
    if len(machines) > 1:
        common["host"].pop(MACHINE, None)
        # If the clocks differ, none is recorded: costs in cycles would be wrong.
        if isinstance(common["host"].get("cpu_mhz"), str):
            del common["host"]["cpu_mhz"]
    return common


def _one_or_all(values: Sequence[Any]) -> Any:
    """Return the value that all share; otherwise the shared entries of tables, or each string of lists once.

    Other values that differ are joined to one text.
    """
    first = values[0]
    if all(value == first for value in values):
        return first
    if all(isinstance(value, Mapping) for value in values):
        return {
            key: inner for key, inner in first.items() if all(other.get(key) == inner for other in values)
        }
    if all(isinstance(value, list) and all(isinstance(text, str) for text in value) for value in values):
        return list(dict.fromkeys(text for value in values for text in value))
    return _SEVERAL.join(dict.fromkeys(map(str, values)))


def _with_ceilings(
    before: Sequence[Calibration], machine: str, new: Sequence[Calibration]
) -> list[Calibration]:
    of_machine = [c.model_copy(update={"machine": machine}) for c in new]
    measured = {_point(c) for c in of_machine}
    kept = [c for c in before if c.machine != machine or _point(c) not in measured]
    return [*kept, *of_machine]


def _point(ceiling: Calibration) -> tuple[int | str, int, str]:
    return ceiling.frame_size, ceiling.ip_version, ceiling.direction


def _suffix(machine: str) -> str:
    """Return the end of the names of Security Contexts that were read on a machine."""
    return f" on {machine}"
