# SPDX-License-Identifier: Apache-2.0
"""YAML → checked plan → list of cases; nothing here touches the machine."""

from __future__ import annotations

from espbench.plan.cases import Case, cases, notes
from espbench.plan.comparison import arms, compare_settings, execution_order
from espbench.plan.conditions import conditions
from espbench.plan.model import Compare, Plan, Throughput
from espbench.plan.profiles import Profile, load_profile, profile_names
from espbench.plan.resolution import load_plan, resolve
from espbench.plan.resolved import ResolvedPlan
from espbench.plan.schema import plan_schema
from espbench.plan.stack_choice import StackChoice
from espbench.plan.topology import Topology, load_topology, topology_names
from espbench.plan.traffic_profiles import load as load_traffic
from espbench.plan.traffic_profiles import profile_names as traffic_names

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
