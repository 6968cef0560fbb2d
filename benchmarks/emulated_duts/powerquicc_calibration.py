# SPDX-License-Identifier: Apache-2.0
"""Fits SEC prices, and the CPU time for a frame, to the MPC8548E's published points.

Everything here is arithmetic on claims marked as calibration; docs/powerquicc.md has the reasoning.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from espbench.catalogue.suites import suites
from espbench.claims.model import claims
from espbench.plan.resolved.frame_sizes import FRAMING_BYTES

SUITE = "3des-sha1"
LARGE = 1456
# A byte goes over a bus of eight bytes at the SEC's clock. No published figure tells bus and cipher apart.
BUS_CYCLES = Decimal("0.125")
# The driver `talitos` has this moved beside the data: hash key 20, cipher key 24, IVs 8 + 8, SPI, number and
# IV 16, ICV 12.
_OVERHEAD_BYTES = 88
_ESP_TRAILER = 2


@dataclass(frozen=True)
class Published:
    """The points: both directions' Mbps at 1456 B, % of CPU there by stack, size where NanoSec saturates the SEC."""

    mbps: float
    nanosec_cpu_pct: float
    openswan_cpu_pct: float
    saturation_size: int

    @property
    def fps(self) -> float:
        """Frames/s at 1456 B; each passes the SEC of either gateway once."""
        return self.mbps * 1e6 / 8 / LARGE


@dataclass(frozen=True)
class SecPrices:
    """Cycles of the SEC's clock, as a profile has them."""

    descriptor: Decimal
    bus: Decimal
    cipher: Decimal


def published() -> Published:
    """Return the published values from the claims."""
    value = {claim.id: claim.value or 0.0 for claim in claims() if claim.calibration}
    return Published(
        mbps=value["mpc8548e-nanosec-1456"],
        nanosec_cpu_pct=value["mpc8548e-nanosec-1456-cpu"],
        openswan_cpu_pct=value["mpc8548e-openswan-1456-cpu"],
        saturation_size=round(value["mpc8548e-nanosec-saturation"]),
    )


def cipher_bytes(frame_size: int) -> int:
    """Bytes that pass the cipher for a frame of this size (with FCS): packet and ESP trailer, padded."""
    block = suites()[SUITE].block_bytes
    return -(-(frame_size - FRAMING_BYTES + _ESP_TRAILER) // block) * block


def sec_cycles(prices: SecPrices, frame_size: int) -> float:
    """The SEC model's service of one frame (harness/emulator/sec/README.md), the cipher being the slower unit."""
    data = cipher_bytes(frame_size)
    bus = prices.bus * (2 * data + _OVERHEAD_BYTES)
    return float(prices.descriptor + bus + prices.cipher * data)


def sec_prices(points: Published, sec_hz: float) -> SecPrices:
    """A straight line through two services: at 1456 B, where the SEC is busy all the time, and at saturation.

    There the CPU is as busy as the SEC, so the SEC's time for that frame is NanoSec's CPU time for one:
    its share of the CPU at 1456 B, taken to be the same at both sizes.
    """
    large = sec_hz / points.fps
    at_saturation = points.nanosec_cpu_pct / 100 * large
    span = cipher_bytes(LARGE) - cipher_bytes(points.saturation_size)
    per_byte = Decimal((large - at_saturation) / span)
    fixed = Decimal(large) - per_byte * cipher_bytes(LARGE)
    thousandth = Decimal("0.001")
    return SecPrices(
        descriptor=(fixed - BUS_CYCLES * _OVERHEAD_BYTES).quantize(Decimal("0.1")),
        bus=BUS_CYCLES,
        cipher=(per_byte - 2 * BUS_CYCLES).quantize(thousandth),
    )


def wanted_us_per_frame(points: Published) -> float:
    """CPU time for a frame of 1456 B: OpenSwan's, whose use of the CPU the article gives XFRM with talitos too."""
    return points.openswan_cpu_pct / 100 / points.fps * 1e6


def scaled(ns_per_instruction: Fraction, measured_us: float, wanted_us: float) -> Fraction:
    """The time of an instruction that makes the measured CPU time the wanted one, if the instructions stay the same."""
    return (ns_per_instruction * Fraction(wanted_us / measured_us)).limit_denominator(100)


def at_clock(ns_per_instruction: Fraction, clock_hz: int, other_hz: int) -> Fraction:
    """The same cycles for an instruction at another clock."""
    return (ns_per_instruction * clock_hz / other_hz).limit_denominator(10_000)
