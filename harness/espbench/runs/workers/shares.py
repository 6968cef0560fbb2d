# SPDX-License-Identifier: Apache-2.0
"""Splits a run in real time into shares, each to be measured on one machine: what is compared stays together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from espbench.plan.keys.model import Plan
from espbench.plan.resolved.cases import Case


@dataclass(frozen=True)
class Share:
    """Cases that are measured on one machine: their ids, in the plan's order."""

    name: str
    cases: tuple[str, ...]


def shares(plan: Plan, cases: Sequence[Case]) -> list[Share]:
    """Split a plan's cases, in its order.

    All stacks, suites, frame sizes and tests of one device, direction and IP version are one share: one table, one
    curve. Devices are together if the plan compares them. Repeats are together too: for the mean of a figure, and in a
    comparison for the fixed loads, which are parts of what all repeats achieved. But in a comparison by searches alone
    each repeat is a share, since its ratios are of that repeat.
    """
    by = plan.compare.by if plan.compare is not None else ""
    together = by in ("dut", "kernel")
    apart = plan.compare is not None and plan.fixed_loads is None
    groups: dict[str, list[str]] = {}
    for case in cases:
        words = [
            *([] if together else [case.dut]),
            case.direction,
            f"IPv{case.ip_version}",
            *([f"repeat {case.repeat}"] if apart else []),
        ]
        groups.setdefault(", ".join(words), []).append(case.id)
    return [Share(name, tuple(ids)) for name, ids in groups.items()]
