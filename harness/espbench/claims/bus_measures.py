# SPDX-License-Identifier: Apache-2.0
"""Answers claims about bytes on the memory bus from the bytes that devices counted; pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from espbench.catalogue.suites import suites
from espbench.claims.model import BusCount, BusIncrease, BusShare, Claim, Configuration
from espbench.claims.our_value import OurValue, lacking, ranged, statement
from espbench.claims.points import BusBytes, Points, case_key
from espbench.claims.wording import name, sizes_in_words
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES
from espbench.terms import FCS_BYTES

_FRAME_HEADER = FRAMING_BYTES - FCS_BYTES
_SECOND_HEADERS = _FRAME_HEADER + 20  # of a second fragment, Ethernet and IPv4


def bus_count(m: BusCount, claim: Claim, measured: Points) -> OurValue:
    """Return the ratio of the bytes that were counted to those that the article accounts for, at each frame size."""
    counts = _counted(claim.dut(m.of), m.of, m.frame_sizes, measured)
    if isinstance(counts, OurValue):
        return counts
    ratios = {size: each.of_account for size, each in counts.items() if each.of_account is not None}
    if len(ratios) < len(counts):
        return lacking(f"{claim.dut(m.of)}, {name(m.of)}: the article has no account of it")
    return ranged([*ratios.values()], text=_listed(ratios, "{:.3f}"))


def bus_share(m: BusShare, claim: Claim, measured: Points) -> OurValue:
    """Return the figure of one configuration that m.what names (model.BusShare), at each frame size."""
    counts = _counted(claim.dut(m.of), m.of, m.frame_sizes, measured)
    if isinstance(counts, OurValue):
        return counts
    match m.what:
        case "descriptors":
            shares = {size: 100 * each.descriptors / each.counted for size, each in counts.items()}
            return ranged([*shares.values()], text=_listed(shares, "{:.0f} %"))
        case "growth":
            growth = {size: (_sent(each, size) + FCS_BYTES) / size for size, each in counts.items()}
            return ranged([*growth.values()], text=_listed(growth, "{:.2f}"))
        case "fragments":
            return _fragments(m.of, counts)
        case "engine":
            return _engine(m, claim, counts, measured)


def bus_increase(m: BusIncrease, claim: Claim, measured: Points) -> OurValue:
    """Return how many more bytes one configuration moves than another, %, and whether its trend is as claimed."""
    sizes = [*m.frame_sizes, m.beyond] if m.beyond else m.frame_sizes
    above = _counted(claim.dut(m.of), m.of, sizes, measured)
    below = _counted(claim.dut(m.to), m.to, sizes, measured)
    if isinstance(above, OurValue):
        return above
    if isinstance(below, OurValue):
        return below
    increases = {size: 100 * (above[size].counted / below[size].counted - 1) for size in sizes}
    before = [increases[size] for size in m.frame_sizes]
    holds = (
        increases[m.beyond] > max(before)
        if m.beyond
        else min(before) > 0 and all(after < earlier for earlier, after in pairwise(before))
    )
    return statement((), _listed(increases, "{:+.1f} %"), holds=holds)


def _engine(m: BusShare, claim: Claim, counts: Mapping[int, BusBytes], measured: Points) -> OurValue:
    assert m.to is not None
    others = _counted(claim.dut(m.to), m.to, m.frame_sizes, measured)
    if isinstance(others, OurValue):
        return others
    ratios = {size: counts[size].engine / others[size].engine for size in m.frame_sizes}
    return ranged([*ratios.values()], text=_listed(ratios, "{:.2f}"))


def _fragments(of: Configuration, counts: Mapping[int, BusBytes]) -> OurValue:
    """Return whether more bytes are sent than one frame with the packet has: at least the headers of a second frame.

    Frames that are sent have no FCS in memory.
    """
    suite = suites()[of.suite]
    more = {
        size: _sent(each, size) - suite.esp_packet_size(size - FRAMING_BYTES, "tunnel", 4) - _FRAME_HEADER
        for size, each in counts.items()
    }
    holds = all(beyond > _SECOND_HEADERS - 1 for beyond in more.values())
    return statement((), f"beyond one frame, {_listed(more, '{:+.1f} B')}", holds=holds)


def _sent(each: BusBytes, frame_size: int) -> float:
    """Return the bytes of the frame sent, which has no FCS in memory: all bytes less those of the frame received."""
    return each.frames - frame_size


def _counted(
    dut: str, of: Configuration, sizes: Sequence[int], measured: Points
) -> dict[int, BusBytes] | OurValue:
    counts = {size: measured.bus.get(case_key(dut, of, size)) for size in sizes}
    if absent := [size for size, each in counts.items() if each is None]:
        return lacking(f"{dut}, {name(of)}: bus test at {sizes_in_words(absent)}")
    return {size: each for size, each in counts.items() if each is not None}


def _listed(values: Mapping[int, float], pattern: str) -> str:
    return ", ".join(f"{pattern.format(value)} at {size} B" for size, value in values.items())
