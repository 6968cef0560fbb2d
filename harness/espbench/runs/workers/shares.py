# SPDX-License-Identifier: Apache-2.0
"""Splits a run in real time into shares, each measured on one machine: cases that are compared stay together."""

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
    """Split a plan's cases into shares, in the plan's order.

    All stacks, suites, frame sizes and tests of one device, direction and IP version are one share, because reports
    show them in one table or curve. Devices are in one share if the plan compares them. Repeats are in one share too,
    for the mean of a figure; the fixed loads of a comparison also depend on all repeats. But in a comparison by
    searches alone, each repeat is a share, because its ratios are computed within one repeat.
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
