# SPDX-License-Identifier: Apache-2.0
"""Claims that standards or the SEC model answer without a run."""

from __future__ import annotations

from espbench.catalogue.suites import suites
from espbench.claims.model import Computed
from espbench.claims.our_value import OurValue, ranged
from espbench.claims.points import link_fps, tunnelled_size
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES, USUAL_MTU
from espbench.results.published import documents
from espbench.terms import layer2_mbps

_GIGABIT = 1e9
_DIGIT_BITS = 32


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
        case "rsa":
            return _rsa(m.modulus_bits, m.exponent_bits)


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
