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
from espbench.terms import MACHINE, Finding, Manifest, Outcome

_DIGITS = 10
_HOST = "host: "
# These keys differ in each run, and are no conditions.
_FLUCTUATING = ("cpu_mhz", "load average at start", "note")


def is_exact(manifest: Manifest) -> bool:
    """Return whether the run was made in virtual time."""
    return manifest.is_virtual


def facts(manifest: Manifest) -> dict[str, str]:
    """Return all facts, as text, that could explain why a figure differs from another run's.

    In virtual time figures do not depend on the machine, so facts about the machine are left out.
    """
    exact = is_exact(manifest)
    recorded = conditions.of_run(manifest, virtual=exact)
    known = {**recorded.instrument, **recorded.subject, "platform": manifest.platform}
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


def by_conditions(
    manifest: Manifest, results: Iterable[Outcome | Finding]
) -> dict[str, list[Outcome | Finding]]:
    """Sort results by the digest of their conditions; figures of one series, from run to run, have the same digest."""
    entries = {entry.case: entry for entry in manifest.cases}

    @cache  # most results of a run have the same
    def digest(machine: str, kind: str, options: str) -> str:
        return _digest(manifest, machine, kind, options)

    sorted_: dict[str, list[Outcome | Finding]] = {}
    for result in results:
        entry = entries.get(result.case)
        options = options_of(entry.options if entry else {}, VERSION_OPTIONS)
        conditions_of = digest(manifest.machine_of(result.case), kind_of(entry, result.stack), options)
        sorted_.setdefault(conditions_of, []).append(result)
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
        host = (manifest.machines or {}).get(machine, {}).get("host", manifest.host)
        kept |= {key: str(host.get(key)) for key in ("cpu", "cpus usable")}
        kept |= {MACHINE: machine} if machine else {}
    text = json.dumps(kept, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def differences(was: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return (what, was, now) for each fact that differs; `nothing` if a run does not have it."""
    return conditions.differences(was, now)
