# SPDX-License-Identifier: Apache-2.0
"""Gateways that are boxes reached over ssh (`platform: remote`)."""

from __future__ import annotations

import math
from functools import cached_property, partial
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan import Case, Profile, ResolvedPlan
from espbench.platforms import external, sampling
from espbench.platforms.base import SIDES, Side, Testbed
from espbench.platforms.remote import remote_platform, ssh
from espbench.platforms.remote.remote_gateway import Box
from espbench.platforms.remote.ssh import Login
from espbench.runs.platform_kinds.shared import labgrid_checks, stack_files
from espbench.runs.platform_kinds.shared.from_profile import FromProfile
from espbench.runs.platform_kinds.shared.platform import OnNote, Workspace, demand
from espbench.stacks.daemons import layers


class Boxes(FromProfile):
    """Gateways that are boxes reached over ssh."""

    name = "remote"
    takes_cpus = False

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._boxes = boxes_of(self._profile)
        self._builder = remote_platform.RemotePlatform(self._boxes, self._addressing)
        self._boards_open = False

    @cached_property
    def line_rate_bps(self) -> float:
        """The line rate of plan or profile; without one, the rate that this machine's ports report, bit/s."""
        ports = self._boxes.ports.values()
        named = self._plan.line_rate or self._profile.line_rate
        return named or external.line_rate_bps((port.netns, port.interface) for port in ports)

    def require(self, on_note: OnNote) -> None:
        """Require that both boxes answer, have the programs needed, and can run the daemons that are copied to them."""
        demand(remote_platform.readiness())
        labgrid_checks.check(self._resolved)
        self._builder = remote_platform.RemotePlatform(self._boxes, self._addressing, on_note)
        facts = remote_platform.examine(self._boxes)
        for side, said in facts.items():
            kind = "a virtual machine, " if said["virtual"] else ""
            on_note(f"{side}: {kind}Linux {said['kernel']} on {said['machine']}, {said['cpus']} CPUs")
        strangers = remote_platform.of_another_architecture(facts)
        for stack in self._plan.stacks:
            if stack.daemons and strangers and stack.prefix is None:
                raise UsageError(
                    f"stack {stack.shown}: expected boxes that run programs of this machine, got: "
                    f"{'; '.join(strangers)}; measure plain and xfrm there, or give prefix: an image built for them"
                )
            for build in stack_files.builds_of(stack, self._resolved.path, on_note).values():
                layers.refuse_elsewhere(build)

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w = workspace
        if not self._boards_open:  # once for a run: from here on its logs have the boxes' consoles
            self._builder.open_boards(w.registry, w.logs)
            self._boards_open = True
        bed = self._builder.build(w.registry, w.logs, w.placement, line_rate_bps=self.line_rate_bps)
        if w.profiled:
            bed.sampler = sampling.Sampler(w.registry, w.logs, _boxes_to_sample(self._boxes))
        return self._named(bed)

    def calibration_bed(self, workspace: Workspace) -> Testbed | None:
        return None  # cables lead to the boxes

    def memory_mb(self) -> float:
        return math.inf


def boxes_of(profile: Profile) -> remote_platform.RemoteProfile:
    """Return a profile's boxes and ports in the form that the platform takes."""
    boxes, ports = profile.boxes, profile.ports
    assert boxes is not None
    assert ports is not None

    def box(side: Side) -> Box:
        given = getattr(boxes, side)
        login = Login(
            given.host,
            given.user,
            given.port,
            Path(given.identity) if given.identity else None,
            Path(given.known_hosts) if given.known_hosts else None,
        )
        labgrid = labgrid_checks.target_of(given.labgrid) if given.labgrid else None
        return Box(login, given.lan, given.wan, given.python, given.i_own_this_box, labgrid)

    return remote_platform.RemoteProfile(
        name=profile.name,
        boxes={side: box(side) for side in SIDES},
        ports={
            "west": remote_platform.TesterPort(ports.west.interface, ports.west.netns),
            "east": remote_platform.TesterPort(ports.east.interface, ports.east.netns),
        },
        i_own_this_network=profile.i_own_this_network,
    )


def _boxes_to_sample(profile: remote_platform.RemoteProfile) -> list[sampling.Sampled]:
    """Return the sampling of boxes: each as a whole, because its CPU time is counted as a whole too."""
    return [
        sampling.Sampled(f"{side} ({box.login})", [], {side: None}, partial(ssh.command, box.login))
        for side, box in profile.boxes.items()
    ]
