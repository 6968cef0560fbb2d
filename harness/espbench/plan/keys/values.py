# SPDX-License-Identifier: Apache-2.0
"""The kinds of values of a plan's keys: the values accepted, and their JSON Schema."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from espbench.plan.reading import units
from espbench.plan.reading.reader import did_you_mean
from espbench.plan.reading.units import Expected, Rate
from espbench.plan.traffic.traffic_profiles import mix_names

SMALLEST_FRAME, LARGEST_FRAME = 64, 9000


def text(pattern: str, *examples: str) -> WithJsonSchema:
    """Return the schema of a text that matches this pattern."""
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


def _fraction(*examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                {"type": "string", "pattern": units.FRACTION_PATTERN},
            ],
            "examples": list(examples),
        }
    )


_DURATION_SCHEMA = WithJsonSchema(
    {
        "anyOf": [{"type": "string", "pattern": units.DURATION_PATTERN}, {"const": 0}],
        "examples": ["2s", "500ms", "1m"],
    }
)
_AS_DURATION = PlainSerializer(units.format_duration, return_type=str)
_AS_FRACTION = PlainSerializer(units.format_fraction, return_type=str)
Duration = Annotated[float, PlainValidator(units.parse_duration), _AS_DURATION, _DURATION_SCHEMA]
Wait = Annotated[float, PlainValidator(units.parse_wait), _AS_DURATION, _DURATION_SCHEMA]
TrialDuration = Annotated[
    float,
    PlainValidator(units.parse_positive_duration),
    _AS_DURATION,
    text(units.DURATION_PATTERN, "2s", "60s"),
]
Octets = Annotated[
    int,
    PlainValidator(units.parse_octets),
    PlainSerializer(units.format_octets, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "pattern": units.OCTETS_PATTERN}, {"const": 0}],
            "examples": ["10MB", "1GB", 0],
        }
    ),
]
PlanRate = Annotated[
    Rate,
    PlainValidator(units.parse_rate),
    PlainSerializer(str, return_type=str),
    text(units.RATE_PATTERN, "40000fps", "50Mbps", "5%"),
]
LineRate = Annotated[
    float,
    PlainValidator(units.parse_line_rate),
    PlainSerializer(lambda bps: str(Rate(bps, "bps")), return_type=str),
    text(units.LINE_RATE_PATTERN, "1Gbps", "10Gbps"),
]
LossGoal = Annotated[
    float, PlainValidator(units.parse_loss_goal), _AS_FRACTION, _fraction("0", "0.001%", "1e-5")
]
Resolution = Annotated[float, PlainValidator(units.parse_resolution), _AS_FRACTION, _fraction("1%")]
ShareOfThroughput = Annotated[
    float, PlainValidator(units.parse_share_of_throughput), _AS_FRACTION, _fraction("50%", "90%")
]
Increase = Annotated[float, PlainValidator(units.parse_increase), _AS_FRACTION, _fraction("16.5%")]
Share = Annotated[float, PlainValidator(units.parse_share), _AS_FRACTION, _fraction("10%")]


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise Expected(
            "a name of up to 64 letters, digits, . _ or -",
            "it becomes part of file names (quote numbers and dates)",
        )
    return value


Name = Annotated[str, PlainValidator(_name), text(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "quick")]


def _frame_size(value: object) -> int | str:
    remedy = "sizes count the 4-byte FCS"
    if isinstance(value, str):
        if value not in mix_names():
            expected = f"a frame size in bytes or a mix ({', '.join(mix_names())})"
            raise Expected(
                expected, did_you_mean(value, mix_names(), f"{remedy}; write numbers without quotes")
            )
        return value
    if not isinstance(value, int) or isinstance(value, bool) or not SMALLEST_FRAME <= value <= LARGEST_FRAME:
        raise Expected(
            f"a frame size from {SMALLEST_FRAME} to {LARGEST_FRAME} bytes, or the name of a mix", remedy
        )
    return value


FrameSize = Annotated[
    int | str,
    PlainValidator(_frame_size),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": SMALLEST_FRAME, "maximum": LARGEST_FRAME},
                {"type": "string", "enum": mix_names()},
            ]
        }
    ),
]
