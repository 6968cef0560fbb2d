# SPDX-License-Identifier: Apache-2.0
"""Reads a plan and everything it names, once, and checks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan.checks.all_checks import problems
from espbench.plan.checks.traffic_checks import at_the_profile, with_traffic
from espbench.plan.duts.profiles import Profile, is_path, load_profile, profile_names
from espbench.plan.keys.model import Plan
from espbench.plan.reading.changing import with_value
from espbench.plan.reading.reader import (
    Document,
    KeyPath,
    Problem,
    check_and_resolve,
    did_you_mean,
    read,
    read_text,
    shown,
)
from espbench.plan.resolved.resolved_plan import AUTO, ResolvedPlan

_STAND_INS = {"name": "plan", "tests": [{"throughput": {}}]}


def load_plan(path: Path, beside: Path | None = None, seed: int | None = None) -> ResolvedPlan:
    """Read, resolve and check a plan; UsageError lists every mistake, one line each.

    beside: the original file of a copied plan; relative paths in the plan start there. seed: replaces the plan's own
    seed.
    """
    document = read(path, "plan")
    if seed is not None:
        # The line of the seed may not be in the file; the name says where it comes from.
        name = f"{document.name} with --seed {seed}"
        document = read_text(with_value(document.text, "seed", seed), name, "plan")
    return resolve(document, beside or path)


def resolve(document: Document, path: Path | None = None) -> ResolvedPlan:
    """Resolve and check a plan that was already read; path is its file. UsageError lists every mistake, one line
    each.
    """
    return check_and_resolve(Plan, document, lambda plan: _resolved(plan, path, document), _STAND_INS)


def check_profiles(resolved: ResolvedPlan, profiles: Sequence[Profile]) -> None:
    """Check a plan against the profiles that replace `auto`; UsageError lists everything that they cannot do."""
    wrong = problems(replace(resolved, profiles=tuple(profiles)))
    if wrong := [at_the_profile(resolved.plan, problem) for problem in wrong]:
        raise read_text(resolved.text, resolved.shown_as or "plan", "plan").error(wrong)


def _resolved(plan: Plan, path: Path | None, document: Document) -> tuple[ResolvedPlan, list[Problem]]:
    filled, traffic, about_traffic = with_traffic(plan, path)
    profiles, about_duts = _profiles(plan, path)
    resolved = ResolvedPlan(filled, path, document.text, traffic, profiles, document.name)
    contradictions = [at_the_profile(plan, problem) for problem in problems(resolved)]
    return resolved, [*about_traffic, *about_duts, *contradictions]


def _profiles(plan: Plan, path: Path | None) -> tuple[tuple[Profile | None, ...], list[Problem]]:
    """Read the profile of each device under test. This is the only place where a plan's profiles are read."""
    if plan.is_external:
        return (None,) * len(plan.duts), []
    loaded: list[Profile | None] = []
    problems: list[Problem] = []
    for index, dut in enumerate(plan.duts):
        listed = isinstance(plan.dut, list)
        at: KeyPath = ("dut", index) if listed else ("dut",)
        profile = None
        if not is_path(dut) and dut not in profile_names():
            if listed or dut != AUTO:
                known = (*(() if listed else (AUTO,)), *profile_names())
                remedy = did_you_mean(
                    dut, known, "write the path of a profile of your own as ./my-profile.yaml"
                )
                problems.append(Problem(at, f"one of {', '.join(known)}, or a path", shown(dut), remedy))
        else:
            try:
                profile = load_profile(dut, path)
            except UsageError as error:
                problems.append(
                    Problem(at, "a DUT profile that can be read", shown(dut), f"it says: {error}")
                )
        loaded.append(profile)
    return tuple(loaded), problems
