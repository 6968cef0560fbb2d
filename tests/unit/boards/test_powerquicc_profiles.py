# SPDX-License-Identifier: Apache-2.0
"""The profiles of PowerQUICC devices: one is fitted, the others follow from it; and how it was fitted."""

from __future__ import annotations

from fractions import Fraction

import powerquicc_calibration as calibration
import pytest
from powerquicc_calibration import Published

from espbench.plan import load_profile, profile_names
from espbench.plan.duts.boards import Board
from espbench.results.published import documents

FITTED = "mpc8548e"
DEVICES = documents()["waters-crypto-performance-part-2"].devices


def board(name: str) -> Board:
    described = load_profile(name).board
    assert described is not None
    return described


EMULATED = [name for name in profile_names() if load_profile(name).board is not None]


def test_every_device_of_the_articles_has_a_profile() -> None:
    assert {name.lower() for name in DEVICES} <= set(EMULATED)


@pytest.mark.parametrize("name", EMULATED)
def test_clocks_versions_and_links_are_those_printed(name: str) -> None:
    """1.33 GHz is printed for 1333 MHz; the variant without the SEC's limit has the clock of most 83xx."""
    printed, modelled = DEVICES[board(name).device], board(name)
    assert modelled.core_clock / 1e6 == pytest.approx(printed.core_mhz, rel=0.003)
    assert modelled.memory_clock == (printed.ddr_mhz or 0) * 10**6
    assert modelled.sec.version == printed.sec
    assert modelled.sec.clock / 1e6 == (166 if name == "mpc8379e-sec166" else printed.sec_mhz)
    assert load_profile(name).line_rate == printed.link_mbps * 1e6


@pytest.mark.parametrize("name", EMULATED)
def test_nothing_but_clocks_and_version_tells_a_device_from_the_fitted_one(name: str) -> None:
    """Instructions and the SEC's work take the cycles of the fitted device: predicted, not fitted."""
    fitted, other = board(FITTED), board(name)
    same = calibration.at_clock(fitted.ns_per_instruction, fitted.core_clock, other.core_clock)
    assert other.ns_per_instruction == (fitted.ns_per_instruction if name == FITTED else same)
    assert other.sec.cycles == fitted.sec.cycles


@pytest.mark.parametrize("name", EMULATED)
def test_a_core_that_stands_in_for_another_is_marked(name: str) -> None:
    profile, printed = load_profile(name), DEVICES[board(name).device]
    if printed.core == "e300":
        assert profile.core_note == "core: e500 standing in for e300"
        assert profile.core_note in profile.description
    else:
        assert "e300" not in profile.core_note


def test_the_fitted_prices_are_those_of_the_calibration() -> None:
    prices = calibration.sec_prices(calibration.published(), board(FITTED).sec.clock)
    cycles = board(FITTED).sec.cycles
    assert (cycles["descriptor"], cycles["bus"], cycles["3des"]) == (
        prices.descriptor, prices.bus, prices.cipher,
    )  # fmt: skip
    slowest = max(price for name, price in cycles.items() if name not in ("descriptor", "rng"))
    assert cycles["3des"] == slowest, "3DES-SHA1 is the worst case, the article says"


def test_the_calibration_is_of_the_published_points() -> None:
    assert calibration.published() == Published(1057, 38, 69, 390)


@pytest.mark.parametrize("truth", [(300.0, 1.2), (461.0, 1.458), (900.0, 2.5)])
def test_the_calibration_finds_the_prices_points_were_made_of(truth: tuple[float, float]) -> None:
    """A made-up SEC of known prices, asked for its points, and fitted."""
    hertz = 266e6
    fixed, per_byte = truth
    overhead, bus = 88 * 0.125, 2 * 0.125

    def service_s(size: int) -> float:
        data = calibration.cipher_bytes(size)
        return (fixed + overhead + (bus + per_byte) * data) / hertz

    size = 390
    cpu_pct = 100 * service_s(size) / service_s(1456)
    mbps = 1456 * 8 / service_s(1456) / 1e6
    prices = calibration.sec_prices(Published(mbps, cpu_pct, 69, size), hertz)
    assert float(prices.descriptor) == pytest.approx(fixed, abs=0.6)
    assert float(prices.cipher) == pytest.approx(per_byte, abs=0.001)
    for at in (64, 390, 1456):
        assert calibration.sec_cycles(prices, at) / hertz == pytest.approx(service_s(at), rel=0.002)


def test_an_instruction_takes_longer_where_the_cpu_was_too_fast() -> None:
    assert calibration.scaled(Fraction(1), 5.0, 7.5) == Fraction(3, 2)
    assert calibration.scaled(Fraction(3, 2), 7.5, 7.5) == Fraction(3, 2)
    assert calibration.at_clock(Fraction(3, 4), 1333_000_000, 666_500_000) == Fraction(3, 2)
