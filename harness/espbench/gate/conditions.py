# SPDX-License-Identifier: Apache-2.0
"""Defines when a base is valid: the instrument must be the same; the subject is under test and may differ.

The subject is the user's own software that a plan names: a kernel by its path, a daemon by its prefix. Everything else
(espbench itself, the profile, QEMU, a kernel that is not the user's, the plan's settings) is the instrument. If the
instrument differs, a difference in instructions says nothing about the user's change.

The key of a condition names its device or stack, or none if the condition is of the whole run (`Key`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from espbench.comparison.sorting.comparability import flat, of_machine
from espbench.comparison.sorting.samples import VERSION_OPTIONS, options_of
from espbench.terms import KERNEL_CONFIGURATION, CaseEntry, Manifest

_SCOPE_ENDS = ": "
_CODE = "espbench.code"
_KIND, _VERSION = "kind", "version"  # conditions of a stack
_PROFILE = "profile."
_OF_KERNELS = ("kernel", "modules", "overlay", KERNEL_CONFIGURATION)
# Parts of a Security Context that belong to the device, and not to the stack on it.
_OF_DEVICES = ("kernel", "emulation")
_BETWEEN = " / "  # the values of cases that differ


class Key(NamedTuple):
    """The key of a condition: its device or stack (scope; empty: the whole run), and its name there.

    In bases, and after --allow-different, a key is a text such as `mpc8548e: profile.memory`. Only this class writes
    and reads this form.
    """

    scope: str
    name: str

    def __str__(self) -> str:
        return f"{self.scope}{_SCOPE_ENDS}{self.name}" if self.scope else self.name

    @classmethod
    def read(cls, text: str) -> Key:
        """Return the key that a text stands for."""
        scope, ends, name = text.partition(_SCOPE_ENDS)
        return cls(scope, name) if ends else cls("", text)

    @property
    def words(self) -> set[str]:
        """The scope, and the words of the name; a user may name the key by any of them."""
        return {self.scope, *self.name_words} - {""}

    @property
    def name_words(self) -> set[str]:
        """The words of the name alone: a device may be called like a part of its profile, such as `kernel`."""
        return {*re.split(r"[.:]\s*", self.name)} - {""}

    @property
    def is_of_kernel(self) -> bool:
        """True if the condition belongs to a device's kernel, or to what comes with it."""
        return bool(self.scope) and not self.name_words.isdisjoint(_OF_KERNELS)


@dataclass(frozen=True)
class Recorded:
    """The conditions of a run by their keys, separate for the instrument and the subject.

    partly: the devices and stacks of which some case has no Security Context, because it was not measured or its
    gateways could not be set up. So not everything is known that their gateways would report.
    """

    instrument: Mapping[str, str]
    subject: Mapping[str, str]
    partly: Collection[str] = ()


def of_plan(
    espbench: str, topology: str, line_rate_bps: float, conditions: Mapping[str, Any], code: str = ""
) -> dict[str, str]:
    """Return the conditions that are known before a measurement; conditions: the plan's, as in the manifest.

    espbench, code: its version, and the digest of its code that measures; empty if that is not known, or of no matter.
    """
    known = {"espbench": espbench, "topology": topology, "line rate": f"{line_rate_bps:g} bit/s"}
    known |= {_CODE: code} if code else {}
    known |= flat({k: v for k, v in conditions.items() if k not in ("topology", "line_rate", "profiles")})
    # A profile's name may contain dots, so it is not read back from a joined key.
    for name, profile in (conditions.get("profiles") or {}).items():
        known |= {str(Key(name, f"{_PROFILE}{key}")): value for key, value in flat(profile)}
    return known


def of_run(manifest: Manifest, *, virtual: bool = True) -> Recorded:
    """Return all conditions that the run recorded, also those of its gateways.

    virtual: the run is in virtual time. In real time, the machine is part of the instrument, and so are its programs.
    """
    code = manifest.code.get("measuring", "")
    recorded = of_plan(
        manifest.espbench, manifest.topology, manifest.line_rate_bps, manifest.conditions, code
    )
    if not virtual:
        recorded |= {f"{condition.part}.{condition.key}": value for condition, value in of_machine(manifest)}
    of_gateways: dict[str, set[str]] = {}
    subject = set()
    for entry in manifest.cases:
        for key, value in _of_gateways(manifest, entry):
            of_gateways.setdefault(key, set()).add(value)
        if any(option in entry.options for option in VERSION_OPTIONS):
            subject.add(str(Key(entry.stack, _VERSION)))
    recorded |= {key: _BETWEEN.join(sorted(values)) for key, values in of_gateways.items()}
    subject = subject & recorded.keys() | {key for key in recorded if _is_own_kernel(manifest, key)}
    return Recorded(
        {key: value for key, value in recorded.items() if key not in subject},
        {key: recorded[key] for key in sorted(subject)},
        {
            scope
            for entry in manifest.cases
            if manifest.context_of_case.get(entry.case) not in manifest.contexts
            for scope in (entry.dut, entry.stack)
        },
    )


def differences(
    base: Mapping[str, str],
    now: Mapping[str, str],
    *,
    free: Collection[str] = (),
    partly: Collection[str] = (),
) -> list[tuple[str, str, str]]:
    """Return (key, base's value, value now) of each condition that differs; a missing value is `nothing`.

    free: keys, or words of keys (`kernel`), that may differ. Conditions of a device or stack that only one side has
    are left out: they belong to cases that the other side does not have. partly: as in `Recorded`, of the run now; what
    gateways of these did not report is left out too.
    """
    differing = []
    for key in sorted(base.keys() | now.keys()):
        scope = Key.read(key).scope
        if scope and not all(any(Key.read(k).scope == scope for k in side) for side in (base, now)):
            continue
        was, is_ = base.get(key, "nothing"), now.get(key, "nothing")
        if scope in partly and _is_part(key, was, now.get(key, "")):
            continue
        if was != is_ and not is_named(key, free):
            differing.append((key, was, is_))
    return differing


def _is_part(key: str, was: str, now: str) -> bool:
    """Return whether a condition that gateways report has no other value now than some case of the base had."""
    by_gateways = Key.read(key).name.partition(".")[0] in (*_OF_DEVICES, _VERSION)
    return by_gateways and (not now or set(now.split(_BETWEEN)) <= set(was.split(_BETWEEN)))


def is_named(key: str, names: Collection[str]) -> bool:
    """Return whether one of these names is the condition's key or a word of the key."""
    return key in names or bool(Key.read(key).words & set(names))


def knows_gateways(recorded: Mapping[str, str]) -> bool:
    """Return whether the conditions include those that gateways report; a plan alone does not know a stack's kind."""
    keys = map(Key.read, recorded)
    return any(key.scope and key.name == _KIND for key in keys)


def own_kernels(recorded: Mapping[str, str]) -> set[str]:
    """Return the keys of the user's own kernels and modules among the conditions that `of_plan` returned.

    With a module of the user's, the device's kernel is under test too, although it is Debian's (as in `of_run`).
    """
    of_kernels = [key for key in recorded if Key.read(key).is_of_kernel]
    own = {Key.read(key).scope for key in of_kernels if "/" in recorded[key]}
    return {key for key in of_kernels if Key.read(key).scope in own}


def relevant(conditions: Mapping[str, str], dut: str, stack: str) -> dict[str, str]:
    """Return the conditions of the whole run, of this device and of this stack, sorted by key."""
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
    """Return whether a condition belongs to a kernel that the profile names by its path."""
    condition = Key.read(key)
    profile = manifest.conditions.get("profiles", {}).get(condition.scope, {})
    named = [value for part, value in flat({part: profile.get(part) for part in _OF_KERNELS}) if part]
    return condition.is_of_kernel and any("/" in path for path in named)
