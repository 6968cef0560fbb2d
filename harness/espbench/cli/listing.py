# SPDX-License-Identifier: Apache-2.0
"""`espbench list WHAT`: lists the names that a plan may use."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from espbench.catalogue.stack_names import STACKS
from espbench.catalogue.suites import suites
from espbench.generators import choose
from espbench.plan import (
    load_profile,
    load_topology,
    load_traffic,
    profile_names,
    topology_names,
    traffic_names,
)


class What(StrEnum):
    """The kinds of things that this command can list."""

    duts = "duts"
    stacks = "stacks"
    suites = "suites"
    topologies = "topologies"
    generators = "generators"
    traffic = "traffic"


def listing(what: Annotated[What, typer.Argument(help="What to list.")]) -> None:
    """List the names that a plan can use."""
    match what:
        case What.duts:
            profiles = {name: load_profile(name) for name in profile_names()}
            rows = {
                name: profile.description
                if profile.core_note in profile.description
                else f"{profile.description}; {profile.core_note}"
                for name, profile in profiles.items()
            }
        case What.topologies:
            rows = {name: load_topology(name).description for name in topology_names()}
        case What.suites:
            rows = {name: suite.description for name, suite in suites().items()}
        case What.stacks:
            rows = {name: facts.description for name, facts in STACKS.items()}
        case What.generators:
            rows = choose.GENERATORS
        case What.traffic:
            rows = {name: load_traffic(name).description for name in traffic_names()}
    width = max(map(len, rows))
    for name, description in rows.items():
        print(f"{name:{width}}  {description}")
