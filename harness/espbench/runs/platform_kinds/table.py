# SPDX-License-Identifier: Apache-2.0
"""Lists the kinds of platform by their names in DUT profiles: a new kind gets a file beside this one and a row here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from espbench.plan import Profile, ResolvedPlan
from espbench.plan.keys.model import NO_NETWORK
from espbench.platforms import external, netns
from espbench.platforms.base import Readiness
from espbench.platforms.remote import remote_platform
from espbench.platforms.uml import uml_platform
from espbench.runs.platform_kinds import boards, network_processors, x86_machines
from espbench.runs.platform_kinds.boards import Boards
from espbench.runs.platform_kinds.boxes import Boxes
from espbench.runs.platform_kinds.external import External
from espbench.runs.platform_kinds.lone_boards import LoneBoards
from espbench.runs.platform_kinds.namespaces import Namespaces
from espbench.runs.platform_kinds.network_processors import NetworkProcessors
from espbench.runs.platform_kinds.shared.platform import Platform
from espbench.runs.platform_kinds.uml_guests import Guests
from espbench.runs.platform_kinds.x86_machines import Machines


@dataclass(frozen=True)
class Kind:
    """One kind of platform: how it is made from a plan and a profile, and what it needs on this machine.

    builds: espbench builds its gateways; False for devices of the user, and for what is no gateway.
    """

    make: Callable[[ResolvedPlan, Profile | None], Platform]
    readiness: Callable[[], list[Readiness]]
    builds: bool = True


def _boards(resolved: ResolvedPlan, profile: Profile | None) -> Platform:
    return (LoneBoards if resolved.plan.topology == NO_NETWORK else Boards)(resolved, profile)


PLATFORMS: Mapping[str, Kind] = {
    Namespaces.name: Kind(Namespaces, netns.readiness),
    Guests.name: Kind(Guests, uml_platform.readiness),
    External.name: Kind(External, external.readiness, builds=False),
    Boxes.name: Kind(Boxes, remote_platform.readiness, builds=False),
    Boards.name: Kind(_boards, boards.readiness),
    Machines.name: Kind(Machines, x86_machines.readiness),
    NetworkProcessors.name: Kind(NetworkProcessors, network_processors.readiness, builds=False),
}
