# SPDX-License-Identifier: Apache-2.0
"""Chooses the gateways of a plan that leaves them to espbench (`dut: auto`), and says why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from espbench.errors import UsageError
from espbench.plan import Profile, ResolvedPlan, check_profiles, load_profile
from espbench.plan.keys.ipsec_tests import Reset
from espbench.platforms.virtual.parts.kits import X86_KIT
from espbench.runs.platform_kinds.namespaces import esp_missing
from espbench.runs.platform_kinds.table import PLATFORMS

_VIRTUAL = "virt-x86"


@dataclass(frozen=True)
class Automatic:
    """The profile that `auto` chose, and why.

    instead: another remedy for the user if this machine lacks something for that profile; empty if there is none.
    """

    profile: Profile
    reason: str
    instead: str = ""


def automatic(resolved: ResolvedPlan, *, virtual_time: bool = True) -> Automatic:
    """Choose namespaces if the running kernel has ESP; otherwise UML; if UML is not possible, virtual time.

    Namespaces have no power switch: a plan that resets the power of a gateway gets UML, or virtual time.

    virtual_time: whether gateways in virtual time may be chosen. If nothing is possible, the choice is UML, and the
    run's own check of the machine reports what is missing. UsageError if the plan has something that the chosen
    gateways cannot do.
    """
    namespaces = load_profile("netns")
    lack = _lacks(namespaces) or esp_missing() or _unswitchable(resolved)
    if not lack:
        why = "the running kernel does ESP in namespaces"
        return _checked(resolved, Automatic(namespaces, f"auto: {why}"), why)
    uml = load_profile("uml")
    chosen = Automatic(uml, f"auto: {lack}; User-Mode Linux has a kernel of its own")
    without = _lacks(uml)
    if not without:
        return _checked(resolved, chosen, lack)
    emulated = load_profile(_VIRTUAL)
    if not X86_KIT.processor_fits.ready:
        return chosen
    if _lacks(emulated):
        remedy = "espbench build x86, for gateways in virtual time, which need no root"
        return replace(chosen, instead=remedy if virtual_time else "")
    if not virtual_time:
        return replace(chosen, instead="leave out --real-time, for gateways in virtual time")
    reason = f"auto: {without}; gateways in virtual time do not need it"
    return _checked(resolved, Automatic(emulated, reason), without)


def no_real_time() -> str:
    """Say why this machine can have neither namespaces with ESP nor UML, the gateways of real time; empty if it can."""
    lack = _lacks(load_profile("netns")) or esp_missing()
    return lack and _lacks(load_profile("uml"))


def _unswitchable(resolved: ResolvedPlan) -> str:
    """Say that the plan switches gateways off, which namespaces cannot do; empty if it does not."""
    settings = (test.settings for test in resolved.plan.tests)
    power = any(isinstance(s, Reset) and s.what == "power" for s in settings)
    return "the plan resets the power of a gateway, and a namespace has no power switch" if power else ""


def _checked(resolved: ResolvedPlan, chosen: Automatic, why: str) -> Automatic:
    """Return the choice; why: its reason. Raise UsageError if these gateways cannot do what the plan asks."""
    try:
        check_profiles(resolved, [chosen.profile])
    except UsageError as error:
        error.add_note(f"  dut: auto chose {chosen.profile.name} here: {why}")
        raise
    return chosen


def _lacks(profile: Profile) -> str:
    """Say what this machine lacks for a profile's gateways; empty if nothing."""
    needs = PLATFORMS[profile.platform].readiness()
    return "; ".join(dict.fromkeys(need.missing for need in needs if not need.ready))
