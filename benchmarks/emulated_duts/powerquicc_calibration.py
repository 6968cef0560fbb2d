# SPDX-License-Identifier: Apache-2.0
"""Fits the costs of the SEC, and the CPU time per frame, to the MPC8548E's published points.

All functions are arithmetic on the claims that are marked as calibration; docs/powerquicc.md has the reasoning.
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
# A byte takes an eighth of a cycle, on a bus of eight bytes at the SEC's clock. No published figure separates the cost
# of the bus from the cipher's.
BUS_CYCLES = Decimal("0.125")
# The driver `talitos` has these bytes moved in addition to the data: hash key 20, cipher key 24, IVs 8 + 8, SPI,
# sequence number and IV 16, ICV 12.
_OVERHEAD_BYTES = 88
_ESP_TRAILER = 2


@dataclass(frozen=True)
class Published:
    """The published points.

    mbps: both directions, at 1456 B. nanosec_cpu_pct, openswan_cpu_pct: CPU load there, %. saturation_size: the frame
    size from which on NanoSec saturates the SEC, bytes.
    """

    mbps: float
    nanosec_cpu_pct: float
    openswan_cpu_pct: float
    saturation_size: int

    @property
    def fps(self) -> float:
        """The rate at 1456 B, frames/s; each frame passes the SEC of each gateway once."""
        return self.mbps * 1e6 / 8 / LARGE


@dataclass(frozen=True)
class SecPrices:
    """The costs of the SEC in cycles of its clock, as a profile has them: per descriptor, and per byte."""

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
    """Return the bytes that pass the cipher for a frame of this size (with FCS): packet and ESP trailer, padded."""
    block = suites()[SUITE].block_bytes
    return -(-(frame_size - FRAMING_BYTES + _ESP_TRAILER) // block) * block


def sec_cycles(prices: SecPrices, frame_size: int) -> float:
    """Return the SEC model's cycles for a frame (harness/emulator/sec/README.md); the cipher is slower than the bus."""
    data = cipher_bytes(frame_size)
    bus = prices.bus * (2 * data + _OVERHEAD_BYTES)
    return float(prices.descriptor + bus + prices.cipher * data)


def sec_prices(points: Published, sec_hz: float) -> SecPrices:
    """Return the costs by a line through two points: at 1456 B, where the SEC is always busy, and at saturation.

    At saturation the CPU is as busy as the SEC, so the SEC's time per frame is NanoSec's CPU time per frame. That
    is its share of the CPU at 1456 B, and assumed to be the same at both sizes.
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
    """Return the CPU time per frame at 1456 B, µs: OpenSwan's; the article gives the same for XFRM with talitos."""
    return points.openswan_cpu_pct / 100 / points.fps * 1e6


def scaled(ns_per_instruction: Fraction, measured_us: float, wanted_us: float) -> Fraction:
    """Return the time of an instruction, ns, with which the measured CPU time becomes the wanted one.

    The number of instructions is assumed to stay the same.
    """
    return (ns_per_instruction * Fraction(wanted_us / measured_us)).limit_denominator(100)


def at_clock(ns_per_instruction: Fraction, clock_hz: int, other_hz: int) -> Fraction:
    """Return the time of an instruction, ns, at another clock with the same number of cycles."""
    return (ns_per_instruction * clock_hz / other_hz).limit_denominator(10_000)
