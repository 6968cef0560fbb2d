# SPDX-License-Identifier: Apache-2.0
"""Finds the files that a plan's stack needs: the builds of its daemons, and the parts of its guests' userland."""

from __future__ import annotations

from pathlib import Path

from espbench.plan.keys.stack_choice import StackChoice
from espbench.runs.platform_kinds.shared.platform import OnNote
from espbench.stacks.daemons import builds
from espbench.stacks.daemons.builds import Build


def builds_of(choice: StackChoice, plan_path: Path | None, on_note: OnNote) -> dict[str, Build]:
    """Return the build of each daemon a stack needs, and fetch its packages; relative prefixes start at plan_path.

    UsageError or MachineLacks if there is none. Call this before any gateway is made.
    """
    prefix = choice.prefix_beside(plan_path)
    return {daemon: builds.find(daemon, choice.version, prefix, on_note) for daemon in choice.daemons}


def own_in_root(choice: StackChoice, plan_path: Path | None) -> dict[str, Build]:
    """Return the user's own build of each daemon, for guests in virtual time; empty if the plan names no prefix.

    UsageError if there is no such daemon below the plan's prefix.
    """
    prefix = choice.prefix_beside(plan_path)
    return {daemon: builds.own_in_root(daemon, prefix) for daemon in choice.daemons} if prefix else {}


def userland_of(choice: StackChoice) -> tuple[str, ...]:
    """Return the userland parts that a stack's guests need: daemons, and ip(8) for devices that init cannot make."""
    devices = choice.interface or choice.mode == "transport"
    return ("base", *choice.daemons) if choice.daemons or devices else ()
