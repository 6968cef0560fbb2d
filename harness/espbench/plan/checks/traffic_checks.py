# SPDX-License-Identifier: Apache-2.0
"""Reads a plan's traffic profile, fills it into the plan, and finds what in it contradicts the rest of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan.keys.model import Flows, Plan
from espbench.plan.reading.reader import Problem, did_you_mean, shown
from espbench.plan.traffic.traffic_pattern import Pattern, load_pattern, rfc2544_pattern
from espbench.plan.traffic.traffic_profiles import is_path, profile_names

_AT = ("traffic",)
# These generators keep the exact order of a sequence.
_KEEP_ORDER = frozenset({"native", "scapy"})


def with_traffic(plan: Plan, path: Path | None) -> tuple[Plan, Pattern, list[Problem]]:
    """Read a plan's traffic profile and fill its keys into the plan; return the plan, the pattern and the problems.

    path: the plan's file. If the profile cannot be read, the plan stays as it is and the pattern is RFC 2544's.
    """
    unread = rfc2544_pattern()
    if not is_path(plan.traffic) and plan.traffic not in profile_names():
        known = profile_names()
        remedy = did_you_mean(
            plan.traffic, known, "write the path of a file of your own as ./my-traffic.yaml"
        )
        return (
            plan,
            unread,
            [Problem(_AT, f"one of {', '.join(known)}, or a path", shown(plan.traffic), remedy)],
        )
    try:
        pattern = load_pattern(plan.traffic, path)
    except UsageError as error:
        said = f"it says: {error}"
        return plan, unread, [Problem(_AT, "a traffic profile that can be read", shown(plan.traffic), said)]
    problems = [*_contradictions(plan, pattern), *_beyond_the_generator(plan, pattern)]
    return _filled_in(plan, pattern), pattern, problems


def at_the_profile(plan: Plan, problem: Problem) -> Problem:
    """Move a problem to the place where the user can correct it: to `traffic`, if its key comes from the profile."""
    key = problem.path[0] if problem.path else ""
    if key not in ("frame_sizes", "ip_versions", "flows") or key in plan.model_fields_set:
        return problem
    return replace(problem, path=_AT, on_key=False) if "traffic" in plan.model_fields_set else problem


def _filled_in(plan: Plan, pattern: Pattern) -> Plan:
    given = plan.model_fields_set
    changes: dict[str, object] = {}
    if pattern.shares:
        changes["frame_sizes"] = [pattern.name]
    elif "frame_sizes" not in given:
        changes["frame_sizes"] = [*pattern.sizes]
    if pattern.ip_version and "ip_versions" not in given:
        changes["ip_versions"] = [pattern.ip_version]
    if pattern.networks and "networks" not in plan.flows.model_fields_set:
        changes["flows"] = Flows(networks=pattern.networks, ports=plan.flows.ports)
    # model_fields_set keeps only the keys that the user wrote, without those that the profile fills in.
    return Plan.model_construct(_fields_set={*given}, **dict(plan) | changes)


def _contradictions(plan: Plan, pattern: Pattern) -> Iterator[Problem]:
    name = shown(plan.traffic)
    if pattern.shares and "frame_sizes" in plan.model_fields_set:
        yield Problem(
            ("frame_sizes",),
            f"no frame_sizes with traffic: {plan.traffic}",
            "some",
            "the profile brings its own sizes: remove them",
            on_key=True,
            involves=(_AT,),
        )
    for index, version in enumerate(plan.ip_versions):
        if pattern.ip_version and "ip_versions" in plan.model_fields_set and version != pattern.ip_version:
            yield Problem(
                ("ip_versions", index),
                f"{pattern.ip_version} alone with traffic: {plan.traffic}",
                str(version),
                f"its frames are IPv{pattern.ip_version}",
                involves=(_AT,),
            )
    if pattern.vlans and not plan.is_external:
        yield Problem(
            _AT,
            "frames without a VLAN tag with gateways espbench builds",
            f"{name} (VLAN {', '.join(map(str, sorted(pattern.vlans)))})",
            "they have no VLAN interfaces: use topology: external, or VLAN 0, which only carries a priority",
            involves=(("topology",),),
        )
    highest = max((header.source_port for header in pattern.headers), default=0)
    if highest + plan.flows.ports > 65_536:
        yield Problem(
            ("flows", "ports"),
            f"at most {65_536 - highest} ports with traffic: {plan.traffic}",
            str(plan.flows.ports),
            f"source ports are counted upwards from the profile's {highest}",
            involves=(_AT,),
        )


def _beyond_the_generator(plan: Plan, pattern: Pattern) -> Iterator[Problem]:
    """Find traffic that the plan's generator cannot send."""
    name = plan.generator.name
    if pattern.is_sequence and name not in _KEEP_ORDER:
        yield Problem(
            _AT,
            f"sizes in proportions with generator: {name}",
            f"{shown(plan.traffic)}, an exact sequence",
            f"use generator: {' or '.join(sorted(_KEEP_ORDER))}",
            involves=(("generator",),),
        )
