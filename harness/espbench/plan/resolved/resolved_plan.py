# SPDX-License-Identifier: Apache-2.0
"""A plan with everything it names, from which the checks, the cases and the run are made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from espbench.plan.duts.profiles import Profile
from espbench.plan.keys.model import Plan
from espbench.plan.resolved.frame_sizes import USUAL_MTU
from espbench.plan.traffic.traffic_pattern import Pattern

AUTO = "auto"


@dataclass(frozen=True)
class ResolvedPlan:
    """A plan, its traffic pattern and the profiles of its devices under test, each read once.

    plan includes the keys that its traffic profile fills in; its `model_fields_set` are those the user wrote. path
    is the plan's file, beside which relative paths start (None: a text without a file). text is the plan as given,
    with its comments; shown_as is its name in messages. profiles have the order of plan.duts; an entry is None if the
    machine decides it later (`auto`), if espbench does not build the boxes or, while the checks run, if a profile
    cannot be read.
    """

    plan: Plan
    path: Path | None
    text: str
    traffic: Pattern
    profiles: tuple[Profile | None, ...]
    shown_as: str = ""

    @property
    def duts(self) -> list[tuple[str, Profile | None]]:
        """Each device under test as the plan writes it, with its profile."""
        return list(zip(self.plan.duts, self.profiles, strict=True))

    @property
    def known_profiles(self) -> list[Profile] | None:
        """The profile of every device under test; None if one is missing."""
        known = [profile for profile in self.profiles if profile is not None]
        return known if len(known) == len(self.profiles) else None

    @property
    def dut_names(self) -> list[str]:
        """The names of the profiles; the plan's own words if a profile is missing."""
        known = self.known_profiles
        return self.plan.duts if known is None else [profile.name for profile in known]

    @property
    def mtu(self) -> int:
        """The MTU that frames must fit, bytes: the least of all devices under test; 1500 if none is known."""
        first, *others = self.profiles
        return min([first.mtu if first else USUAL_MTU, *(other.mtu for other in others if other)])

    @property
    def line_rate(self) -> float | None:
        """The line rate, bit/s, of the plan or of its profiles, which all have the same; None: not known yet."""
        return self.plan.line_rate or next((p.line_rate for p in self.profiles if p is not None), None)
