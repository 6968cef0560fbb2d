# SPDX-License-Identifier: Apache-2.0
"""Extracts the conditions of a run: those that must be equal in a series, and those that may explain a change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache

from espbench.comparison.sorting.comparability import READERS, flat
from espbench.comparison.sorting.samples import VERSION_OPTIONS, kind_of, options_of
from espbench.gate import conditions
from espbench.terms import MACHINE, OF_EACH_MACHINE, PAIRED, Finding, Manifest, Outcome

_DIGITS = 10
_HOST = "host: "
# These keys differ in each run, and are no conditions.
_FLUCTUATING = ("cpu_mhz", "load average at start", "note")


def is_exact(manifest: Manifest) -> bool:
    """Return whether the run was made in virtual time."""
    return manifest.is_virtual


def merged(by_machine: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the facts of a run from those of each of its machines; where these differ, each value with its machine."""
    facts: dict[str, str] = {}
    for key in dict.fromkeys(key for known in by_machine.values() for key in known):
        values = {machine: known[key] for machine, known in sorted(by_machine.items()) if key in known}
        one, *others = dict.fromkeys(values.values())
        facts[key] = "; ".join(f"{machine}: {value}" for machine, value in values.items()) if others else one
    return facts


def of_machine(manifest: Manifest, machine: str) -> dict[str, str]:
    """Return all facts, as text, that could explain why a figure of this machine differs from another run's.

    machine: as in `Manifest.machine_of`. In virtual time figures do not depend on the machine, so facts about the
    machine are left out.
    """
    exact = is_exact(manifest)
    manifest = _as_seen_on(manifest, machine)
    recorded = conditions.of_run(manifest, virtual=exact)
    known = {**recorded.instrument, **recorded.subject, "platform": manifest.platform}
    known.pop("espbench.code", None)  # a part of the digest that follows
    # The commit is left out, since most commits do not change the code that measures.
    known |= {
        f"espbench's {key}": manifest.code[key] for key in ("code", "generator") if key in manifest.code
    }
    tools = {name: version for name, version in manifest.tools.items() if name not in READERS}
    known |= {f"tool: {name}": version for name, version in flat(tools)}
    if not exact:
        known |= {
            f"{_HOST}{key.removeprefix('host.')}": value
            for key, value in flat({"host": manifest.host})
            if key.removeprefix("host.") not in _FLUCTUATING
        }
        # The gate has other names for the same facts: `host.cpu`, `tools.generator`.
        known = {key: value for key, value in known.items() if not key.startswith(("host.", "tools."))}
    return known


def _as_seen_on(manifest: Manifest, machine: str) -> Manifest:
    """Return the manifest with only this machine's cases and tables; unchanged unless it lists several machines.

    The manifest's own tables have the values of all machines, and nested tables only what all machines share.
    """
    own = (manifest.machines or {}).get(machine)
    if own is None:
        return manifest
    tables = {key: own[key] for key in OF_EACH_MACHINE if key in own}
    cases = [entry for entry in manifest.cases if manifest.machine_of_case.get(entry.case) == machine]
    return manifest.model_copy(update=tables | {"cases": cases})


def by_conditions(
    manifest: Manifest, results: Iterable[Outcome | Finding]
) -> dict[tuple[str, str], list[Outcome | Finding]]:
    """Sort results by the machine that measured them and the digest of their conditions.

    Figures of one series, from run to run, have the same digest. The machine is part of it in real time.
    """
    entries = {entry.case: entry for entry in manifest.cases}

    @cache  # most results of a run have the same
    def digest(machine: str, kind: str, options: str) -> str:
        return _digest(manifest, machine, kind, options)

    sorted_: dict[tuple[str, str], list[Outcome | Finding]] = {}
    for result in results:
        if result.test == PAIRED:  # it has no figure over time
            continue
        entry = entries.get(result.case)
        options = options_of(entry.options if entry else {}, VERSION_OPTIONS)
        machine = manifest.machine_of(result.case)
        conditions_of = digest(machine, kind_of(entry, result.stack), options)
        sorted_.setdefault((machine, conditions_of), []).append(result)
    return sorted_


def _digest(manifest: Manifest, machine: str, kind: str, options: str) -> str:
    """Return a digest of the conditions that must be equal if the figures of two runs belong to one series.

    machine: the one that measured them; empty if that is not known, or does not matter. kind, options: of the stack.
    The other conditions are the plan's settings, the platform and, in real time, the machine and its CPU. Versions of
    espbench, kernels and daemons may differ, since a series shows their effect.
    """
    known = conditions.of_plan("", manifest.topology, manifest.line_rate_bps, manifest.conditions)
    own = conditions.own_kernels(known)
    kept = {key: value for key, value in known.items() if key not in own}
    kept |= {"platform": manifest.platform, "kind of the stack": kind, "options of the stack": options}
    if not is_exact(manifest):
        host = _as_seen_on(manifest, machine).host
        kept |= {key: str(host.get(key)) for key in ("cpu", "cpus usable")}
        kept |= {MACHINE: machine} if machine else {}
    text = json.dumps(kept, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def differences(was: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return (what, was, now) for each fact that differs; `nothing` if a run does not have it."""
    return conditions.differences(was, now)
