# SPDX-License-Identifier: Apache-2.0
"""Defines for what a base is valid: for one instrument, which must be the same, and for a subject, which is under test.

The subject is what a plan names of the user's own: a kernel by its path, a daemon by its prefix. Everything else
(espbench itself, the profile, QEMU, a kernel that is not the user's, the plan's settings) is the instrument. If the
instrument differs, a difference in instructions says nothing about the user's change.

A key names the device or stack that it is of, or none if it is of the whole run (`Key`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from espbench.comparison.sorting.comparability import flat
from espbench.comparison.sorting.samples import VERSION_OPTIONS, options_of
from espbench.terms import CaseEntry, Manifest

_SCOPE_ENDS = ": "
_KIND, _VERSION = "kind", "version"  # of a stack
_OF_KERNELS = ("kernel", "modules", "configuration of the kernel")
# Parts of a Security Context that belong to the device, and not to the stack on it.
_OF_DEVICES = ("kernel", "emulation")
_MACHINE = ("cpu", "kernel", "cpus usable", "memory_mib")
_PROFILE = re.compile(r"^profiles\.([^.]+)\.(.+)$")


class Key(NamedTuple):
    """The key of a condition: of which device or stack (empty: of the whole run), and its name there.

    In bases, and after --allow-different, it is text: `mpc8548e: profile.memory`. Only this class writes and reads it.
    """

    scope: str
    name: str

    def __str__(self) -> str:
        return f"{self.scope}{_SCOPE_ENDS}{self.name}" if self.scope else self.name

    @classmethod
    def read(cls, text: str) -> Key:
        """Return the key that this text is of."""
        scope, ends, name = text.partition(_SCOPE_ENDS)
        return cls(scope, name) if ends else cls("", text)

    @property
    def words(self) -> set[str]:
        """The words of its text, by which a user may name it."""
        return set(re.split(r"[.:]\s*", str(self)))


@dataclass(frozen=True)
class Recorded:
    """The conditions of a run by their keys, the subject's apart."""

    instrument: Mapping[str, str]
    subject: Mapping[str, str]


def of_plan(
    espbench: str, topology: str, line_rate_bps: float, conditions: Mapping[str, Any]
) -> dict[str, str]:
    """Return the conditions that are known before anything is measured; conditions: the plan's, as in the manifest."""
    known = {"espbench": espbench, "topology": topology, "line rate": f"{line_rate_bps:g} bit/s"}
    for key, value in flat({k: v for k, v in conditions.items() if k not in ("topology", "line_rate")}):
        of_profile = _PROFILE.match(key)
        known[str(Key(of_profile[1], f"profile.{of_profile[2]}")) if of_profile else key] = value
    return known


def of_run(manifest: Manifest, *, virtual: bool = True) -> Recorded:
    """Return everything that the run recorded, of its gateways too.

    In real time, the machine is part of the instrument.
    """
    recorded = of_plan(manifest.espbench, manifest.topology, manifest.line_rate_bps, manifest.conditions)
    if not virtual:
        host = {key: manifest.host[key] for key in _MACHINE if key in manifest.host}
        recorded |= dict(flat({"host": host, "placement": manifest.placement, "queues": manifest.queues}))
    of_gateways: dict[str, set[str]] = {}
    subject = set()
    for entry in manifest.cases:
        for key, value in _of_gateways(manifest, entry):
            of_gateways.setdefault(key, set()).add(value)
        if any(option in entry.options for option in VERSION_OPTIONS):
            subject.add(str(Key(entry.stack, _VERSION)))
    recorded |= {key: " / ".join(sorted(values)) for key, values in of_gateways.items()}
    subject = subject & recorded.keys() | {key for key in recorded if _is_own_kernel(manifest, key)}
    return Recorded(
        {key: value for key, value in recorded.items() if key not in subject},
        {key: recorded[key] for key in sorted(subject)},
    )


def differences(
    base: Mapping[str, str], now: Mapping[str, str], *, free: Collection[str] = ()
) -> list[tuple[str, str, str]]:
    """Return (key, base's value, value now) of each condition that differs; `nothing` where one of them has none.

    free: keys, or words of keys (`kernel`), that may differ. Devices and stacks that only one of them has are of cases
    that the other has not got, which is not said here.
    """
    differing = []
    for key in sorted(base.keys() | now.keys()):
        scope = Key.read(key).scope
        if scope and not all(any(Key.read(k).scope == scope for k in side) for side in (base, now)):
            continue
        was, is_ = base.get(key, "nothing"), now.get(key, "nothing")
        if was != is_ and not is_named(key, free):
            differing.append((key, was, is_))
    return differing


def is_named(key: str, names: Collection[str]) -> bool:
    """Return whether one of these names means a condition, by its key or by a word of it."""
    return key in names or bool(Key.read(key).words & set(names))


def knows_gateways(recorded: Mapping[str, str]) -> bool:
    """Return whether the gateways said their part already: a plan alone does not know the kind of a stack."""
    keys = map(Key.read, recorded)
    return any(key.scope and key.name == _KIND for key in keys)


def own_kernels(recorded: Mapping[str, str]) -> set[str]:
    """Pick the paths of the user's own kernels and modules from what `of_plan` said."""
    return {
        key
        for key, value in recorded.items()
        if Key.read(key).scope and is_named(key, _OF_KERNELS) and "/" in value
    }


def relevant(conditions: Mapping[str, str], dut: str, stack: str) -> dict[str, str]:
    """Pick the conditions of the whole run, of this device and of this stack, sorted."""
    return {key: conditions[key] for key in sorted(conditions) if Key.read(key).scope in ("", dut, stack)}


def _of_gateways(manifest: Manifest, entry: CaseEntry) -> Iterator[tuple[str, str]]:
    context = manifest.contexts.get(manifest.context_of_case.get(entry.case, ""), {})
    for key, value in flat({key: context[key] for key in _OF_DEVICES if key in context}):
        yield str(Key(entry.dut, key)), value
    versions = dict.fromkeys(value for _, value in flat({"version": context.get("stack_version")}))
    if versions:
        yield str(Key(entry.stack, _VERSION)), " and ".join(versions)
    yield str(Key(entry.stack, _KIND)), entry.stack_kind
    yield str(Key(entry.stack, "options")), options_of(entry.options, VERSION_OPTIONS)


def _is_own_kernel(manifest: Manifest, key: str) -> bool:
    """Return whether a condition is of a kernel that the profile names by its path."""
    dut = Key.read(key).scope
    profile = manifest.conditions.get("profiles", {}).get(dut, {})
    named = [value for part, value in flat({key: profile.get(key) for key in _OF_KERNELS}) if part]
    return any("/" in path for path in named) and is_named(key, _OF_KERNELS)
