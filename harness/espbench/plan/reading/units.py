# SPDX-License-Identifier: Apache-2.0
"""The quantities that a plan writes with their units: durations, rates, loss goals, resolutions.

Each `parse_` function takes a value from YAML. It raises Expected if the value is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from espbench.errors import UsageError
from espbench.terms import line_rate_fps

RateUnit = Literal["fps", "bps", "%"]

_NUMBER = r"(\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)"
DURATION_PATTERN = r"^\d+(\.\d+)?(ms|s|m)$"
RATE_PATTERN = r"^\d+(\.\d+)?([eE][+-]?\d+)?(k|M|G)?(fps|bps)$|^\d+(\.\d+)?([eE][+-]?\d+)?%$"
OCTETS_PATTERN = r"^[1-9]\d{0,5}(k|M|G)B$"
LINE_RATE_PATTERN = r"^\d+(\.\d+)?(k|M|G)?bps$"
FRACTION_PATTERN = r"^\d+(\.\d+)?([eE][+-]?\d+)?%?$"

_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60)}
_PREFIX = {"": Decimal(1), "k": Decimal(1000), "M": Decimal(10) ** 6, "G": Decimal(10) ** 9}
LONGEST_S = 86_400
SHORTEST_S = 0.001
LONGEST_WAIT_S = 3_600  # for late frames after a trial
# Limits of rates, by their unit: below _LEAST no trial would send a frame, above _MOST no link can carry
# them.
_LEAST: dict[str, float] = {"fps": 1e-3, "bps": 1.0, "%": 1e-6}
_MOST: dict[str, float] = {"fps": 1e12, "bps": 1e15, "%": 100.0}
_MOST_LINE_RATE = 1e15
FINEST_RESOLUTION = 1e-4
_FINEST_GOAL = 1e-12


class Expected(ValueError):
    """A value is not what its key takes: `expected` says what the key takes, `remedy` what to do."""

    def __init__(self, expected: str, remedy: str) -> None:
        super().__init__(f"expected {expected}; {remedy}")
        self.expected = expected
        self.remedy = remedy


@dataclass(frozen=True)
class Rate:
    """An offered load in one direction, as the plan writes it: frames/s, bit/s or % of line rate."""

    value: float
    unit: RateUnit

    def to_fps(self, mean_frame_size: float, line_rate_bps: float) -> float:
        """Return frames/s for frames of this mean size (with FCS) on a link of this line rate.

        bps is layer 2: frame x 8, without preamble and gap. % is relative to the theoretical frame rate (RFC 2544
        20), which includes both. Raise UsageError if the line rate is not known (0).
        """
        if self.unit == "fps":
            return self.value
        if self.unit == "bps":
            return self.value / (8 * mean_frame_size)
        if not line_rate_bps:
            raise UsageError(
                f"a load of {self}: expected a line rate that it is a share of, got none from the plan or a port; "
                "add line_rate: 1Gbps (or whatever it is), or write the load in frames/s or bit/s"
            )
        return line_rate_fps(mean_frame_size, line_rate_bps) * self.value / 100

    def __str__(self) -> str:
        return f"{_plain(self.value)}{self.unit}"


def parse_duration(value: object) -> float:
    """Return the seconds of `2s`, `500ms`, `1m` or a bare 0."""
    if _is_number(value) and value == 0:
        return 0.0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)", value) if isinstance(value, str) else None
    if match is None:
        remedy = (
            f"write {value}s for seconds"
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_S
            else "write a number and its unit: ms, s or m"
        )
        raise Expected("a duration such as 2s or 500ms", remedy)
    seconds = float(Decimal(match[1]) * _SECONDS[match[2]])
    if 0 < seconds < SHORTEST_S:
        raise Expected("a duration of at least 1ms, or 0", "no generator makes a shorter trial")
    if seconds > LONGEST_S:
        raise Expected("a duration of at most a day", "choose a shorter one")
    return seconds


def parse_positive_duration(value: object) -> float:
    """Return the seconds of a duration above zero."""
    seconds = parse_duration(value)
    if seconds == 0:
        raise Expected("a duration of more than zero", "a trial that lasts no time counts no frames")
    return seconds


def parse_wait(value: object) -> float:
    """Return the seconds of a duration of at most an hour: no generator waits longer for late frames."""
    seconds = parse_duration(value)
    if seconds > LONGEST_WAIT_S:
        raise Expected(
            "a wait of at most an hour", "a frame that is later than this is lost: choose a shorter one"
        )
    return seconds


def format_duration(seconds: float) -> str:
    """Return the shortest text that parse_duration reads back as the same number of seconds."""
    return f"{_plain(seconds)}s"


def parse_rate(value: object) -> Rate:
    """Return the rate of `40000fps`, `40kfps`, `50Mbps`, `1Gbps` or `5%` of line rate."""
    expected = "a rate such as 40000fps, 40kfps, 50Mbps or 5% (of line rate)"
    match = re.fullmatch(_NUMBER + r"(?:(k|M|G)?(fps|bps)|(%))", value) if isinstance(value, str) else None
    if match is None:
        raise Expected(expected, "write a number and its unit: fps, kfps, Mbps, Gbps or %")
    rate = float(Decimal(match[1]) * _PREFIX[match[2] or ""])
    if rate == 0:
        raise Expected("a rate of more than zero", "give the lowest load worth a trial")
    unit: RateUnit = "%" if match[4] else "fps" if match[3] == "fps" else "bps"
    if unit == "%" and rate > 100:
        raise Expected("at most 100% of line rate", "no link carries more than its line rate")
    if not _LEAST[unit] <= rate <= _MOST[unit]:
        limits = f"{_plain(_LEAST[unit])}{unit} to {_plain(_MOST[unit])}{unit}"
        raise Expected(f"a rate from {limits}", "no trial has fewer frames, no link has more")
    return Rate(rate, unit)


def parse_line_rate(value: object) -> float:
    """Return the bit/s of a link's nominal rate such as `1Gbps` or `100Mbps`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(k|M|G)?bps", value) if isinstance(value, str) else None
    if match is None or Decimal(match[1]) == 0:
        raise Expected("a link's rate such as 100Mbps or 10Gbps", "write a number and its unit: Mbps or Gbps")
    rate = float(Decimal(match[1]) * _PREFIX[match[2] or ""])
    if not 1 <= rate <= _MOST_LINE_RATE:
        raise Expected(
            f"a link's rate from 1bps to {_plain(_MOST_LINE_RATE / 1e9)}Gbps", "no port has another"
        )
    return rate


def parse_loss_goal(value: object) -> float:
    """Return the frame loss ratio that a goal allows, 0 <= goal < 1, from `0`, `0.001%` or `1e-5`."""
    fraction = _fraction(value)
    if fraction is None or fraction >= 1 or 0 < fraction < _FINEST_GOAL:
        raise Expected(
            "a frame loss ratio from 0 to below 1, such as 0, 0.001% or 1e-5",
            "0.001% is one frame in 100,000",
        )
    return fraction


def format_fraction(fraction: float) -> str:
    """Return a percentage that parses back to the same fraction; `0` for zero."""
    return f"{(Decimal(repr(fraction)) * 100).normalize():f}%" if fraction else "0"


def parse_resolution(value: object) -> float:
    """Return the relative width at which the search stops, from `1%` or 0.01; from 0.01 % to 50 %."""
    fraction = _fraction(value)
    if fraction is None or not FINEST_RESOLUTION <= fraction <= 0.5:
        raise Expected("a relative resolution from 0.01% to 50%, such as 1%", "1% is usual")
    return fraction


def parse_share(value: object) -> float:
    """Return the share of the maximum by which loads decrease, from `10%` or 0.1; from 1 % to 50 %."""
    fraction = _fraction(value)
    if fraction is None or not 0.01 <= fraction <= 0.5:
        raise Expected("a share from 1% to 50%, such as 10%", "RFC 2544 26.3 allows steps of up to 10%")
    return fraction


def parse_share_of_throughput(value: object) -> float:
    """Return a load as a share of a throughput, from `50%` or 0.5; from 1 % to 200 %."""
    fraction = _fraction(value)
    if fraction is None or not 0.01 <= fraction <= 2:
        raise Expected(
            "a share from 1% to 200%, such as 50%", "it is of the throughput of the slower of the two arms"
        )
    return fraction


def parse_increase(value: object) -> float:
    """Return an increase as a share, from `16.5%` or 0.165; from 0 to 10 (1000 %)."""
    fraction = _fraction(value)
    if fraction is None or fraction > 10:
        raise Expected("an increase from 0 to 1000%, such as 16.5%", "16.5% more is 1.165 times as much")
    return fraction


def parse_memory(value: object) -> int:
    """Return the MiB of a size of memory such as `256M` or `1G`."""
    match = re.fullmatch(r"(\d{1,9})(M|G)", value) if isinstance(value, str) else None
    if match is None:
        raise Expected("an amount of memory such as 256M", "write a whole number and M or G")
    return int(match[1]) * (1024 if match[2] == "G" else 1)


def parse_octets(value: object) -> int:
    """Return the bytes of `500kB`, `10MB` or `1GB` (powers of ten), or of a bare 0."""
    if _is_number(value) and value == 0:
        return 0
    match = re.fullmatch(r"([1-9]\d{0,5})(k|M|G)B", value) if isinstance(value, str) else None
    if match is None:
        raise Expected("a number of bytes such as 10MB", "write a whole number and its unit: kB, MB or GB")
    return int(Decimal(match[1]) * _PREFIX[match[2]])


def format_octets(octets: int) -> str:
    """Return the shortest text that parse_octets reads back as the same number of bytes; `0` for zero."""
    for prefix in ("G", "M", "k"):
        if octets and octets % _PREFIX[prefix] == 0:
            return f"{octets // int(_PREFIX[prefix])}{prefix}B"
    return str(octets)


def _fraction(value: object) -> float | None:
    """Return the non-negative number of a YAML number or of text with or without %; None if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if 0 <= value <= 1e6 else None
    match = re.fullmatch(_NUMBER + r"(%)?", value) if isinstance(value, str) else None
    if match is None:
        return None
    return float(Decimal(match[1]) / (100 if match[2] else 1))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(number: float) -> str:
    """Return a float as text, without exponent and without a trailing `.0`."""
    text = f"{Decimal(repr(number)):f}"
    return text.removesuffix(".0")
