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
_HALF_A_DIGIT_MS = 0.005
# Cycles of the SEC for 3DES with SHA-1: the calibration's line through 390 and 1456 B (docs/powerquicc.md).
_CIPHER_FIXED, _CIPHER_BYTE = 449.0, 1.7045
_SIZES = (64, 128, 256, 512, 1024, 1456)
_LARGE_SIZES = (1024, 1280, 1456)


def computed(m: Computed) -> OurValue:
    """Return the figure a claim of this kind comes to."""
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
        case "rsa" | "rsa table" | "asymmetric":
            return _public_key(m)


def _bus(m: Computed) -> OurValue:
    return _bus_falls(m.suite) if m.what == "bus falls" else _bus_beyond_the_mtu(m)


def _bus_falls(suite: str) -> OurValue:
    """Answer whether ESP's share on the bus, beside plain forwarding, falls with each size that passes whole."""
    increases = {size: increase_pct(size, suite) for size in _SIZES}
    holds = (
        all(after < before for before, after in pairwise(increases.values())) and min(increases.values()) > 0
    )
    return OurValue(holds=holds, text=_increases(increases))


def _bus_beyond_the_mtu(m: Computed) -> OurValue:
    """Answer whether a size whose packets are cut has a higher share than the large sizes that are not cut."""
    increases = {size: increase_pct(size, m.suite) for size in (*_LARGE_SIZES, m.frame_size)}
    others = [increases[size] for size in _LARGE_SIZES]
    return OurValue(holds=increases[m.frame_size] > max(others), text=_increases(increases))


def _increases(of: Mapping[int, float]) -> str:
    return ", ".join(f"+{pct:.1f} % at {size} B" for size, pct in of.items())


def rsa_cycles(modulus_bits: int, exponent_bits: int) -> float:
    """Cycles of an RSA operation in the SEC model's PKEU (harness/emulator/sec/README.md)."""
    digits = modulus_bits / _DIGIT_BITS
    return 35 * digits**2 + 240 * digits + 1.5 * exponent_bits * (digits**2 + 3 * digits + 27)


def _public_key(m: Computed) -> OurValue:
    match m.what:
        case "rsa table":
            return _rsa_table()
        case "asymmetric":
            return _asymmetric(m.modulus_bits)
    return _rsa(m.modulus_bits, m.exponent_bits)


def _rsa_table() -> OurValue:
    """Return whether a constant number of cycles gives every printed time, rounded as printed."""
    off = {
        (time.modulus_bits, time.exponent_bits, mhz): abs(
            rsa_cycles(time.modulus_bits, time.exponent_bits) / mhz / 1e3 - ms
        )
        for document in documents().values()
        for time in document.times
        for mhz, ms in time.ms.items()
    }
    as_printed = [each for each in off.values() if each <= _HALF_A_DIGIT_MS]
    return OurValue(
        holds=len(as_printed) == len(off),
        text=f"{len(as_printed)} of {len(off)} times, the furthest {max(off.values()):.4f} ms away",
    )


def _asymmetric(modulus_bits: int) -> OurValue:
    """Return whether RSA with a full exponent takes a thousand times the SEC's cycles of a cipher with its hash."""
    size = modulus_bits // 8
    ratio = rsa_cycles(modulus_bits, modulus_bits) / (_CIPHER_FIXED + _CIPHER_BYTE * size)
    low, high = (10**magnitudes for magnitudes in (2.5, 3.5))
    return OurValue(holds=low <= ratio < high, text=f"{ratio:,.0f} times the cycles, for {size} B")


def _rsa(modulus_bits: int, exponent_bits: int) -> OurValue:
    """Return the time at 66 MHz, and how far from the printed one it is at any clock of the table."""
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
