# SPDX-License-Identifier: Apache-2.0
"""Frame sizes of a plan: numbers, mixes or its traffic profile's, and what of them fits a link after ESP."""

from __future__ import annotations

from espbench.plan.model import Plan
from espbench.plan.stack_choice import StackChoice
from espbench.plan.traffic_pattern import Shares, mix_shares
from espbench.plan.traffic_profiles import ETHERNET_HEADER_BYTES
from espbench.stacks.suites import suites
from espbench.terms import FCS_BYTES

FRAMING_BYTES = ETHERNET_HEADER_BYTES + FCS_BYTES
USUAL_MTU = 1500


def shares_of(plan: Plan, frame_size: int | str) -> Shares:
    """(size with FCS, weight) of the size itself or of a mix; with several headers also the header's index."""
    if not isinstance(frame_size, str):
        return ((frame_size, 1),)
    return plan.pattern.shares if plan.pattern.shares else mix_shares(frame_size)


def sizes_of(plan: Plan, frame_size: int | str) -> list[int]:
    """The size itself, or those of the mix."""
    return [size for size, *_ in shares_of(plan, frame_size)]


def mean_frame_size(plan: Plan, frame_size: int | str) -> float:
    """Mean bytes per frame, with FCS."""
    shares = shares_of(plan, frame_size)
    return sum(size * weight for size, weight, *_ in shares) / sum(weight for _, weight, *_ in shares)


def framing_bytes(plan: Plan) -> int:
    """Bytes of a frame that are no IP: Ethernet, VLAN tags, FCS."""
    return FRAMING_BYTES + plan.pattern.tag_bytes


def largest_whole(choice: StackChoice, suite: str, ip_version: int, mtu: int) -> int:
    """The largest frame (untagged, with FCS) that this stack need not fragment on a link of this MTU."""
    # Transport mode carries IP in IP: as many bytes as tunnel mode.
    return suites()[suite].largest_inner(mtu, "tunnel", ip_version, choice.in_udp) + FRAMING_BYTES
