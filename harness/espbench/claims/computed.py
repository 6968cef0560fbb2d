# SPDX-License-Identifier: Apache-2.0
"""Answers claims that follow from standards or from the model of the SEC, without a run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from espbench.catalogue.bus_bytes import increase_pct
from espbench.catalogue.suites import suites
from espbench.claims.model import Computed
from espbench.claims.our_value import OurValue, ranged
from espbench.claims.points import link_fps, tunnelled_size
from espbench.claims.unit_fit import as_printed, fit, follows_from_others, half, table, without_size
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES, USUAL_MTU
from espbench.terms import layer2_mbps

_GIGABIT = 1e9
_DIGIT_BITS = 32
# Cycles of the SEC for 3DES with SHA-1: the calibration's line through 390 and 1456 B (docs/powerquicc.md).
_CIPHER_FIXED, _CIPHER_BYTE = 449.0, 1.7045
_SIZES = (64, 128, 256, 512, 1024, 1456)
_LARGE_SIZES = (1024, 1280, 1456)


def computed(m: Computed) -> OurValue:
    """Return the computed value of a claim."""
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
            return _bus_falls(m.suite) if m.what == "bus falls" else _bus_beyond_the_mtu(m)
        case "rsa held out" | "rsa sizes held out" | "asymmetric":
            return _public_keys(m)


def _bus_falls(suite: str) -> OurValue:
    """Return whether ESP's increase of the bytes on the bus falls from each size that is not fragmented to the next."""
    increases = {size: increase_pct(size, suite) for size in _SIZES}
    holds = (
        all(after < before for before, after in pairwise(increases.values())) and min(increases.values()) > 0
    )
    return OurValue(holds=holds, text=_increases(increases))


def _bus_beyond_the_mtu(m: Computed) -> OurValue:
    """Return whether the increase is higher at a size whose packets are fragmented than at the large sizes below."""
    increases = {size: increase_pct(size, m.suite) for size in (*_LARGE_SIZES, m.frame_size)}
    others = [increases[size] for size in _LARGE_SIZES]
    return OurValue(holds=increases[m.frame_size] > max(others), text=_increases(increases))


def _increases(of: Mapping[int, float]) -> str:
    return ", ".join(f"+{pct:.1f} % at {size} B" for size, pct in of.items())


def rsa_cycles(modulus_bits: int, exponent_bits: int) -> float:
    """Return the cycles of an RSA operation in the PKEU of the SEC model (harness/emulator/sec/README.md)."""
    digits = modulus_bits / _DIGIT_BITS
    return 35 * digits**2 + 240 * digits + 1.5 * exponent_bits * (digits**2 + 3 * digits + 27)


def _public_keys(m: Computed) -> OurValue:
    if m.what == "asymmetric":
        return _asymmetric(m.modulus_bits)
    return _held_out() if m.what == "rsa held out" else _sizes_held_out()


def _held_out() -> OurValue:
    """Return whether cycles that are fitted to one half of the printed times reproduce the other half as printed."""
    held_out, fitted = half("held out"), fit(half("fitted"))
    agree, furthest = as_printed(fitted.rounded(), held_out)
    exact, exact_furthest = as_printed(fitted, held_out)
    return OurValue(
        holds=agree == len(held_out),
        text=f"{agree} of {len(held_out)} times, the furthest {furthest:.4f} ms away; constants that are not rounded: "
        f"{exact}, {exact_furthest:.4f} ms",
    )


def _sizes_held_out() -> OurValue:
    """Return whether the times of each pair of sizes are as printed, by cycles that are fitted to the other pairs."""
    pairs = dict.fromkeys((entry.modulus_bits, entry.exponent_bits) for entry in table())
    wrong = [pair for pair in pairs if not follows_from_others(*pair)]
    text = ", ".join(f"{m}/{e} {without_size(m, e):+.1f} %" for m, e in pairs)
    return OurValue(
        holds=not wrong, text=f"{len(pairs) - len(wrong)} of {len(pairs)} pairs; at 33 MHz {text}"
    )


def _asymmetric(modulus_bits: int) -> OurValue:
    """Return whether RSA with a full exponent takes about 1,000 times the SEC's cycles of a cipher with its hash."""
    size = modulus_bits // 8
    ratio = rsa_cycles(modulus_bits, modulus_bits) / (_CIPHER_FIXED + _CIPHER_BYTE * size)
    low, high = (10**magnitudes for magnitudes in (2.5, 3.5))
    return OurValue(holds=low <= ratio < high, text=f"{ratio:,.0f} times the cycles, for {size} B")
