# SPDX-License-Identifier: Apache-2.0
"""Computes the sizes of a plan's frames, which are numbers or mixes, and the largest that fit a link after ESP."""

from __future__ import annotations

from espbench.catalogue.suites import suites
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.traffic.traffic_pattern import Pattern, Shares, mix_shares
from espbench.plan.traffic.traffic_profiles import ETHERNET_HEADER_BYTES
from espbench.terms import FCS_BYTES

FRAMING_BYTES = ETHERNET_HEADER_BYTES + FCS_BYTES
USUAL_MTU = 1500


def shares_of(traffic: Pattern, frame_size: int | str) -> Shares:
    """Return (size with FCS, weight) of the size itself or of a mix; with several headers also the header's index."""
    if not isinstance(frame_size, str):
        return ((frame_size, 1),)
    return traffic.shares if traffic.shares else mix_shares(frame_size)


def sizes_of(traffic: Pattern, frame_size: int | str) -> list[int]:
    """Return the size itself, or the sizes of the mix, bytes with FCS."""
    return [size for size, *_ in shares_of(traffic, frame_size)]


def mean_frame_size(traffic: Pattern, frame_size: int | str) -> float:
    """Return the mean bytes per frame, with FCS."""
    shares = shares_of(traffic, frame_size)
    return sum(size * weight for size, weight, *_ in shares) / sum(weight for _, weight, *_ in shares)


def framing_bytes(traffic: Pattern) -> int:
    """Return the bytes of a frame outside its IP packet: Ethernet, VLAN tags, FCS."""
    return FRAMING_BYTES + traffic.tag_bytes


def largest_whole(choice: StackChoice, suite: str, ip_version: int, mtu: int) -> int:
    """Return the largest frame (untagged, with FCS) that this stack need not fragment on a link of this MTU."""
    # Transport mode carries IP in IP: as many bytes as tunnel mode.
    return suites()[suite].largest_inner(mtu, "tunnel", ip_version, choice.in_udp) + FRAMING_BYTES
