# SPDX-License-Identifier: Apache-2.0
"""Frame sizes of a plan: numbers or mixes, and what of them fits a link after ESP."""

from __future__ import annotations

from espbench.plan.stack_choice import StackChoice
from espbench.plan.traffic_profiles import ETHERNET_HEADER_BYTES, mix
from espbench.stacks.suites import suites
from espbench.terms import FCS_BYTES

FRAMING_BYTES = ETHERNET_HEADER_BYTES + FCS_BYTES
USUAL_MTU = 1500


def sizes_of(frame_size: int | str) -> list[int]:
    """The size itself, or those of the mix."""
    return [part.size for part in mix(frame_size).mix] if isinstance(frame_size, str) else [frame_size]


def mean_frame_size(frame_size: int | str) -> float:
    """Mean bytes per frame, with FCS."""
    return mix(frame_size).mean_frame_size if isinstance(frame_size, str) else float(frame_size)


def largest_whole(choice: StackChoice, suite: str, ip_version: int, mtu: int) -> int:
    """The largest frame (with FCS) that this stack need not fragment on a link of this MTU."""
    # Transport mode carries IP in IP: as many bytes as tunnel mode.
    return suites()[suite].largest_inner(mtu, "tunnel", ip_version, choice.in_udp) + FRAMING_BYTES
