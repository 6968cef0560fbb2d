# SPDX-License-Identifier: Apache-2.0
"""Turns YAML into a checked plan and its list of cases; nothing here touches the machine.

`resolution` reads a plan and everything it names, once, and checks it; `schema` is for editors. Each step in between
has a folder: `reading`, `traffic`, `keys`, `duts`, `resolved`, `checks`. Other parts import the common names from
here. May import `plan.*` and `catalogue`.
"""

from __future__ import annotations

from espbench.plan.duts.profiles import Profile, load_profile, profile_names
from espbench.plan.duts.topology import Topology, load_topology, topology_names
from espbench.plan.keys.model import Compare, Plan, Throughput
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.resolution import check_profiles, load_plan, resolve
from espbench.plan.resolved.arms import arms, compare_settings, execution_order
from espbench.plan.resolved.cases import Case, cases, notes
from espbench.plan.resolved.conditions import conditions
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.plan.schema import plan_schema
from espbench.plan.traffic.traffic_profiles import load as load_traffic
from espbench.plan.traffic.traffic_profiles import profile_names as traffic_names

__all__ = [
    "Case",
    "Compare",
    "Plan",
    "Profile",
    "ResolvedPlan",
    "StackChoice",
    "Throughput",
    "Topology",
    "arms",
    "cases",
    "check_profiles",
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
    "resolve",
    "topology_names",
    "traffic_names",
]
