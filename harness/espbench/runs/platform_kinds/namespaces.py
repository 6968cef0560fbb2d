# SPDX-License-Identifier: Apache-2.0
"""Gateways that are network namespaces of the running kernel (`platform: netns`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from espbench.errors import MachineLacks
from espbench.plan import Case, Profile, ResolvedPlan
from espbench.platforms import netns, sampling
from espbench.platforms.base import Side, Testbed
from espbench.runs.platform_kinds.shared.from_profile import FromProfile
from espbench.runs.platform_kinds.shared.platform import OnNote, Workspace, demand
from espbench.stacks import netlink_xfrm


class Namespaces(FromProfile):
    """Gateways that are network namespaces of the running kernel."""

    name = "netns"

    def __init__(self, resolved: ResolvedPlan, profile: Profile | None) -> None:
        super().__init__(resolved, profile)
        self._builder = netns.NetnsPlatform(self._addressing)

    def require(self, on_note: OnNote) -> None:
        """Require the programs and, if a stack needs them, the running kernel's ESP and TUN devices."""
        demand(netns.readiness())
        if any(s.kernel_esp for s in self._plan.stacks) and (lack := esp_missing()):
            raise MachineLacks(
                f"dut {self._profile.name}: {lack}", "use dut: uml, or a kernel with CONFIG_INET_ESP"
            )
        if any(s.kind == "strongswan-libipsec" for s in self._plan.stacks):
            netns.need_tun(on_note)

    def build(self, case: Case, workspace: Workspace) -> Testbed:
        w = workspace
        bed = self._builder.build(
            w.registry, w.logs, w.placement, single=self._single, line_rate_bps=self.line_rate_bps
        )
        if w.profiled:
            bed.sampler = sampling.Sampler(w.registry, w.logs, [_this_machine(w, bed.threads)])
        return self._named(bed)

    def calibration_bed(self, workspace: Workspace) -> Testbed:
        return self._builder.calibration_bed(
            workspace.registry, workspace.placement, single=self._single, line_rate_bps=self.line_rate_bps
        )


def esp_missing() -> str:
    """Say why the running kernel cannot do ESP; empty if it can."""
    probe = netlink_xfrm.SecurityAssociation(
        source="192.0.2.1", destination="192.0.2.2", spi=0x100, mode="tunnel", reqid=1,
        selector=netlink_xfrm.Selector("198.18.0.0/16", "198.19.0.0/16"),
        encryption=netlink_xfrm.Algorithm("ecb(cipher_null)", b""),
        integrity=netlink_xfrm.Algorithm("digest_null", b""),
    )  # fmt: skip
    return netns.kernel_lacks_esp(netlink_xfrm.new_sa(probe))


def _this_machine(workspace: Workspace, threads: Mapping[Side, Callable[[], set[int]]]) -> sampling.Sampled:
    """Return the sampling of gateways that are namespaces: their CPUs, and the threads of each."""
    cpus = sorted({cpu for side in threads for cpu in workspace.placement.cpus[side]})
    folder = workspace.registry.directory("perf")
    return sampling.Sampled("this machine", cpus, threads, folder=folder)
