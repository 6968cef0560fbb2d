# SPDX-License-Identifier: Apache-2.0
"""Durations, rates, loss goals and resolutions as a plan writes them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.plan.reading import units
from espbench.plan.reading.units import Expected, Rate


@pytest.mark.parametrize(
    ("text", "seconds"), [("2s", 2.0), ("500ms", 0.5), ("1m", 60.0), ("1.5s", 1.5), ("0s", 0.0), (0, 0.0)]
)
def test_a_duration_is_read_in_seconds(text: object, seconds: float) -> None:
    """ms, s and m are known, and a bare 0 needs no unit."""
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize("value", ["two", "2", 2, 2.5, "-1s", "1 s", "1h", "", None, True, [], "1s\n", "2d"])
def test_what_is_no_duration_is_refused_with_an_example(value: object) -> None:
    """A number without unit, a negative, a stranger: each is told what a duration looks like."""
    with pytest.raises(Expected, match="expected a duration such as 2s or 500ms"):
        units.parse_duration(value)


def test_a_duration_of_more_than_a_day_is_refused() -> None:
    """Nobody means a trial of 1441 minutes."""
    assert units.parse_duration("1440m") == units.LONGEST_S
    with pytest.raises(Expected, match="at most a day"):
        units.parse_duration("1441m")


def test_a_trial_of_no_length_is_refused() -> None:
    """Waits may be zero, trials may not."""
    with pytest.raises(Expected, match="more than zero"):
        units.parse_positive_duration("0ms")


@given(st.just(0.0) | st.floats(min_value=units.SHORTEST_S, max_value=units.LONGEST_S))
def test_a_duration_survives_being_written_and_read(seconds: float) -> None:
    """format_duration and parse_duration are each other's inverse, and the schema knows the form."""
    text = units.format_duration(seconds)
    assert units.parse_duration(text) == seconds
    assert re.search(units.DURATION_PATTERN, text)


@pytest.mark.parametrize(
    ("text", "octets"),
    [("500kB", 500_000), ("10MB", 10**7), ("1GB", 10**9), ("1500MB", 1_500_000_000), (0, 0)],
)
def test_bytes_are_read_and_written(text: object, octets: int) -> None:
    """They count in powers of ten, and are written in the largest unit that is exact."""
    assert units.parse_octets(text) == octets
    assert units.format_octets(octets) == str(text)


@pytest.mark.parametrize(
    "value", ["10", 10, "0MB", "1.5MB", "10MiB", "10 MB", "10mb", "-1MB", None, True, "1234567MB"]
)
def test_what_is_no_number_of_bytes_is_refused(value: object) -> None:
    with pytest.raises(Expected, match="expected a number of bytes such as 10MB"):
        units.parse_octets(value)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("40000fps", Rate(40000, "fps")),
        ("40kfps", Rate(40000, "fps")),
        ("1.5Mfps", Rate(1.5e6, "fps")),
        ("50Mbps", Rate(50e6, "bps")),
        ("1Gbps", Rate(1e9, "bps")),
        ("5%", Rate(5, "%")),
        ("100%", Rate(100, "%")),
    ],
)
def test_a_rate_is_read_with_its_unit(text: str, rate: Rate) -> None:
    """Frames/s, layer 2 bit/s with decimal prefixes, and per cent of line rate."""
    assert units.parse_rate(text) == rate


@pytest.mark.parametrize(
    "value", ["5", 5, "fps", "5 Mbps", "5mbps", "-5%", "0fps", "101%", "5pps", None, "k5fps"]
)
def test_what_is_no_rate_is_refused(value: object) -> None:
    """No unit, a wrong one, nothing, or more than a link can carry."""
    with pytest.raises(Expected):
        units.parse_rate(value)


_RATES = st.one_of(
    st.builds(Rate, st.floats(1, 1e9), st.sampled_from(["fps", "bps"])),
    st.builds(Rate, st.floats(1e-3, 100), st.just("%")),
)


@given(_RATES)
def test_a_rate_survives_being_written_and_read(rate: Rate) -> None:
    """Str and parse_rate are each other's inverse, and the schema knows the form."""
    assert units.parse_rate(str(rate)) == rate
    assert re.search(units.RATE_PATTERN, str(rate))


def test_rates_resolve_against_frame_size_and_line_rate() -> None:
    """64 B at 1 Gbit/s is 1,488,095 frames/s (RFC 2544 20); bps leave preamble and gap out."""
    assert Rate(100, "%").to_fps(64, 1e9) == pytest.approx(1_488_095.24)
    assert Rate(5, "%").to_fps(64, 1e9) == pytest.approx(74_404.76)
    assert Rate(50e6, "bps").to_fps(1000, 1e9) == 6250
    assert Rate(40000, "fps").to_fps(1518, 1e9) == 40000


@given(_RATES, st.floats(64, 9000), st.sampled_from([1e8, 1e9, 1e10]))
def test_no_percentage_exceeds_the_link(rate: Rate, size: float, line_rate: float) -> None:
    """A percentage of line rate, with preamble and gap, never fills more than the link."""
    if rate.unit == "%":
        assert rate.to_fps(size, line_rate) * (size + 20) * 8 <= line_rate * (1 + 1e-9)


@pytest.mark.parametrize(
    ("value", "goal"),
    [(0, 0.0), ("0", 0.0), ("0%", 0.0), ("0.001%", 1e-5), ("1e-5", 1e-5), (1e-5, 1e-5), (0.5, 0.5)],
)
def test_a_loss_goal_is_read_exactly(value: object, goal: float) -> None:
    """0.001 %, 1e-5 as text (YAML 1.1) and as a number are the same float."""
    assert units.parse_loss_goal(value) == goal


@pytest.mark.parametrize(
    "value", [1, "100%", "1", -0.1, "-1%", "some", None, True, math.nan, math.inf, "1e999"]
)
def test_what_is_no_loss_goal_is_refused(value: object) -> None:
    """A goal is a ratio from 0 to below 1."""
    with pytest.raises(Expected, match="from 0 to below 1"):
        units.parse_loss_goal(value)


@given(st.just(0.0) | st.floats(min_value=1e-12, max_value=1, exclude_max=True))
def test_a_loss_goal_survives_being_written_and_read(goal: float) -> None:
    """format_fraction and parse_loss_goal are each other's inverse."""
    assert units.parse_loss_goal(units.format_fraction(goal)) == goal


@pytest.mark.parametrize("value", [0, "0%", "51%", 1, "wide", None])
def test_a_search_needs_a_sensible_resolution(value: object) -> None:
    """Zero would never end, more than half is no answer."""
    with pytest.raises(Expected, match="relative resolution"):
        units.parse_resolution(value)
    assert units.parse_resolution("1%") == 0.01


@pytest.mark.parametrize(("text", "bps"), [("1Gbps", 1e9), ("100Mbps", 1e8), ("2.5Gbps", 2.5e9)])
def test_a_line_rate_is_read_in_bits_per_second(text: str, bps: float) -> None:
    """A link's rate is never a percentage."""
    assert units.parse_line_rate(text) == bps
    for bad in ("5%", "0Gbps", 1000, "1000fps"):
        with pytest.raises(Expected, match="a link's rate"):
            units.parse_line_rate(bad)


def test_memory_is_read_in_mebibytes() -> None:
    """256M and 1G are known, 256 alone is not."""
    assert (units.parse_memory("256M"), units.parse_memory("1G")) == (256, 1024)
    with pytest.raises(Expected, match="amount of memory"):
        units.parse_memory(256)
