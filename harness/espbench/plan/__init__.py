# SPDX-License-Identifier: Apache-2.0
"""YAML → checked plan → list of cases; nothing here touches the machine."""

from __future__ import annotations

from pathlib import Path

from espbench.plan.cases import Case, cases, notes
from espbench.plan.checks import problems
from espbench.plan.model import Plan, StackChoice, Throughput
from espbench.plan.profiles import Profile, load_profile, profile_names
from espbench.plan.reader import Document, check, read
from espbench.plan.schema import plan_schema
from espbench.plan.topology import Topology, load_topology, topology_names

__all__ = [
    "Case",
    "Plan",
    "Profile",
    "StackChoice",
    "Throughput",
    "Topology",
    "cases",
    "check_plan",
    "load_plan",
    "load_profile",
    "load_topology",
    "notes",
    "plan_schema",
    "profile_names",
    "topology_names",
]


def load_plan(path: Path, beside: Path | None = None) -> Plan:
    """Read and check a plan; UsageError lists every mistake, one line each.

    `beside`: where a copied plan stood at first, for the relative paths in it.
    """
    return check_plan(read(path, "plan"), beside or path)


def check_plan(document: Document, path: Path | None = None) -> Plan:
    """As load_plan, from a document already read."""
    stand_ins = {"name": "plan", "tests": [{"throughput": {}}]}
    plan = check(Plan, document, lambda candidate: problems(candidate, path), stand_ins)
    plan._path, plan._text = path, document.text
    return plan
