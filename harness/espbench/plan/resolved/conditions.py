# SPDX-License-Identifier: Apache-2.0
"""Lists everything in a plan that must be equal for two runs to be comparable; the manifest records it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.plan.duts.profiles import Profile
from espbench.plan.keys.links import Links
from espbench.plan.keys.model import FIRST_SEED
from espbench.plan.keys.rfc2544_tests import AroundTrials
from espbench.plan.reading.units import Rate
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_DEFAULT = {
    "minimum": "1% of maximum",
    "maximum": "line rate or the generator's ceiling",
    "load": "the throughput",
    "preset": "none",
    "tag_at": "half of the trial",
    "lifetime": "a third of the trial",
}
# These keys were added later. At their defaults they are left out, so that the conditions equal those of
# earlier runs.
_LATER = ("lifetime_bytes", "idle")


def conditions(resolved: ResolvedPlan, profiles: Sequence[Profile]) -> dict[str, Any]:
    """Return the plan's conditions as text and numbers, as a plan writes them; stacks and suites are not conditions.

    profiles: the profiles of the plan's DUTs, `auto` replaced; none with topology external.
    """
    plan = resolved.plan
    line_rate = plan.line_rate or (profiles[0].line_rate if profiles else None)
    return {
        "topology": plan.topology,
        "tests": [{name: _settings(settings)} for name, settings in plan.traffic_tests],
        "flows": plan.flows.model_dump(),
        "dont_fragment": plan.dont_fragment,
        "line_rate": str(Rate(line_rate, "bps")) if line_rate else "as the interface reports",
        "mtu": min((profile.mtu for profile in profiles), default=None),
        "traffic": resolved.traffic.fingerprint,
        "generator": plan.generator.shown,
        "capture": plan.capture,
        "profiles": {profile.name: _profile(profile) for profile in profiles},
        **({"seed": plan.seed} if plan.seed != FIRST_SEED else {}),
        **({"links": _links(plan.links)} if plan.links and plan.links.by_name else {}),
    }


def _links(links: Links) -> dict[str, Any]:
    """Return the faults of each link that has any, in words, and their seed."""
    return {name: str(errors) for name, errors in links.by_name.items()} | {"seed": links.seed}


def _settings(settings: AroundTrials) -> dict[str, Any]:
    without = {"warm_start"}  # it changes no answer
    without |= {key for key in _LATER if not getattr(settings, key, None)}
    if getattr(settings, "lifetime_bytes", 0):
        without.add("lifetime")
    asked = settings.model_dump(mode="json", exclude=without)
    return {key: _DEFAULT[key] if value is None else value for key, value in asked.items()}


def _profile(profile: Profile) -> dict[str, Any]:
    """Return the profile's settings. If memory and kernel are those of the host or the box, this is said instead."""
    others = "the box's" if profile.platform == "remote" else "the host's"
    memory = f"{profile.memory}M"
    kernel: Any = profile.kernel.model_dump()
    recorded: dict[str, Any] = {"platform": profile.platform}
    if profile.board is not None:
        recorded |= {
            "board": profile.board.model_dump(mode="json"),
            "memory": memory,
            "kernel": own_kernel.model_dump() if (own_kernel := profile.own_kernel) else "espbench's own",
            **_additions(profile),
        }
    elif profile.machine is not None:
        recorded |= {
            "machine": profile.machine.model_dump(mode="json"),
            "memory": memory,
            "kernel": own_kernel.model_dump() if (own_kernel := profile.own_kernel) else "Debian's",
            **_additions(profile),
        }
    else:
        own = profile.platform == "uml"
        recorded |= {"memory": memory if own else others, "kernel": kernel if own else others}
    return recorded | {"queues": dict(profile.queues)}


def _additions(profile: Profile) -> dict[str, Any]:
    """Return the paths of the user's modules and overlays; empty if there are none, as in earlier runs."""
    named = {"modules": profile.modules, "overlay": profile.overlay}
    return {key: paths.model_dump() for key, paths in named.items() if paths}
