# SPDX-License-Identifier: Apache-2.0
"""YAML → checked plan → list of cases; nothing here touches the machine."""

from __future__ import annotations

from pathlib import Path

from espbench.plan.cases import Case, cases, notes
from espbench.plan.checks import problems
from espbench.plan.comparison import arms, compare_settings, execution_order
from espbench.plan.conditions import conditions
from espbench.plan.model import Compare, Plan, Throughput
from espbench.plan.profiles import Profile, load_profile, profile_names, profiles_of
from espbench.plan.reader import Document, Problem, check, read
from espbench.plan.schema import plan_schema
from espbench.plan.stack_choice import StackChoice
from espbench.plan.topology import Topology, load_topology, topology_names
from espbench.plan.traffic_checks import at_the_profile, with_traffic
from espbench.plan.traffic_profiles import load as load_traffic
from espbench.plan.traffic_profiles import profile_names as traffic_names

__all__ = [
    "Case",
    "Compare",
    "Plan",
    "Profile",
    "StackChoice",
    "Throughput",
    "Topology",
    "arms",
    "cases",
    "check_plan",
    "compare_settings",
    "conditions",
    "execution_order",
    "load_plan",
    "load_profile",
    "load_topology",
    "load_traffic",
    "notes",
    "plan_schema",
    "profile_names",
    "profiles_of",
    "topology_names",
    "traffic_names",
]


def load_plan(path: Path, beside: Path | None = None) -> Plan:
    """Read and check a plan; UsageError lists every mistake, one line each.

    `beside`: where a copied plan stood at first, for the relative paths in it.
    """
    return check_plan(read(path, "plan"), beside or path)


def check_plan(document: Document, path: Path | None = None) -> Plan:
    """As load_plan, from a document already read."""
    stand_ins = {"name": "plan", "tests": [{"throughput": {}}]}
    plan = check(Plan, document, lambda candidate: _problems(candidate, path), stand_ins)
    plan._path, plan._text = path, document.text
    return with_traffic(plan)[0]


def _problems(plan: Plan, path: Path | None) -> list[Problem]:
    plan._path = path  # profiles and prefixes start beside it
    filled, found = with_traffic(plan)
    return [*found, *(at_the_profile(plan, problem) for problem in problems(filled, path))]
