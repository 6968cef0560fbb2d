# SPDX-License-Identifier: Apache-2.0
"""Gives platforms a topology's addresses, in the form that they take."""

from __future__ import annotations

from espbench.errors import UsageError
from espbench.plan import Topology
from espbench.platforms.addressing import LinkEnd, PairAddressing


def addressing_of(topology: Topology, mtu: int) -> PairAddressing:
    """Return the topology's addresses of both IP versions, in the form that the platforms take."""
    by_version = {4: topology.addresses(4), 6: topology.addresses(6)}
    macs = topology.macs
    if macs is None:
        raise UsageError(f"topology {topology.name}: expected macs, got none")

    def end(role: str) -> LinkEnd:
        return LinkEnd(getattr(macs, role), {v: getattr(a, role) for v, a in by_version.items()})

    return PairAddressing(
        tester_west=end("tester_west"),
        home_lan=end("home_lan"),
        home_wan=end("home_wan"),
        office_wan=end("office_wan"),
        office_lan=end("office_lan"),
        tester_east=end("tester_east"),
        west={v: a.west for v, a in by_version.items()},
        east={v: a.east for v, a in by_version.items()},
        mtu=mtu,
    )
