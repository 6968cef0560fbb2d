# SPDX-License-Identifier: Apache-2.0
"""Claims that standards or the SEC model answer without a run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from espbench.catalogue.bus_bytes import increase_pct
from espbench.catalogue.suites import suites
from espbench.claims.model import Computed
from espbench.claims.our_value import OurValue, ranged
from espbench.claims.points import link_fps, tunnelled_size
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES, USUAL_MTU
from espbench.results.published import documents
from espbench.terms import layer2_mbps

_GIGABIT = 1e9
_DIGIT_BITS = 32
_SIZES = (64, 128, 256, 512, 1024, 1456)
_LARGE_SIZES = (1024, 1280, 1456)


def computed(m: Computed) -> OurValue:
    """The figure a claim of this kind comes to."""
    match m.what:
        case "clear link":
            return ranged([layer2_mbps(link_fps(m.frame_size, "none", _GIGABIT), m.frame_size)])
        case "tunnel link":
            return ranged([layer2_mbps(link_fps(m.frame_size, m.suite, _GIGABIT), m.frame_size)])
        case "tunnel growth":
            size = tunnelled_size(m.frame_size, m.suite)
            return ranged([size / m.frame_size], text=f"{m.frame_size} B become {size} B on the middle link")
        case "largest whole frame":
            size = suites()[m.suite].largest_inner(USUAL_MTU) + FRAMING_BYTES
            return OurValue(holds=m.frame_size > size, text=f"up to {size} B pass whole")
        case "bus falls" | "bus beyond the MTU":
            return _bus(m)
        case "rsa":
            return _rsa(m.modulus_bits, m.exponent_bits)


def _bus(m: Computed) -> OurValue:
    return _bus_falls(m.suite) if m.what == "bus falls" else _bus_beyond_the_mtu(m)


def _bus_falls(suite: str) -> OurValue:
    """The share that ESP moves over the bus beside plain forwarding falls with each size that passes whole."""
    increases = {size: increase_pct(size, suite) for size in _SIZES}
    holds = (
        all(after < before for before, after in pairwise(increases.values())) and min(increases.values()) > 0
    )
    return OurValue(holds=holds, text=_increases(increases))


def _bus_beyond_the_mtu(m: Computed) -> OurValue:
    """A size whose packets are cut has a higher share than the large ones that are not."""
    increases = {size: increase_pct(size, m.suite) for size in (*_LARGE_SIZES, m.frame_size)}
    others = [increases[size] for size in _LARGE_SIZES]
    return OurValue(holds=increases[m.frame_size] > max(others), text=_increases(increases))


def _increases(of: Mapping[int, float]) -> str:
    return ", ".join(f"+{pct:.1f} % at {size} B" for size, pct in of.items())


def rsa_cycles(modulus_bits: int, exponent_bits: int) -> float:
    """Cycles of an RSA operation in the SEC model's PKEU (harness/emulator/sec/README.md)."""
    digits = modulus_bits / _DIGIT_BITS
    return 35 * digits**2 + 240 * digits + 1.5 * exponent_bits * (digits**2 + 3 * digits + 27)


def _rsa(modulus_bits: int, exponent_bits: int) -> OurValue:
    """The time at 66 MHz, and how far from the printed one it is at any clock of the table."""
    printed = next(
        time.ms
        for document in documents().values()
        for time in document.times
        if (time.modulus_bits, time.exponent_bits) == (modulus_bits, exponent_bits)
    )
    ours = {mhz: rsa_cycles(modulus_bits, exponent_bits) / mhz / 1e3 for mhz in printed}
    furthest = max(abs(ours[mhz] - ms) for mhz, ms in printed.items())
    return ranged(
        [ours[66]], text=f"within {furthest:.4f} ms of the printed time at each of {len(printed)} clocks"
    )
