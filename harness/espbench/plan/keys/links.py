# SPDX-License-Identifier: Apache-2.0
"""`links:` of a plan: faults of the links of a test bed.

The docstring under each key is also its description in the JSON Schema that editors use.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import Field, PlainSerializer, PlainValidator

from espbench.plan.keys.values import LossGoal, text
from espbench.plan.reading.reader import Strict
from espbench.plan.reading.units import Expected

LONGEST_DELAY_NS = 500_000_000
_DELAY_PATTERN = r"^\d+(us|ms)$"
_NS = {"us": 1_000, "ms": 1_000_000}


def _delay(value: object) -> int:
    match = re.fullmatch(r"(\d+)(us|ms)", value) if isinstance(value, str) else None
    if match is None:
        raise Expected("a delay such as 300us or 2ms", "write a whole number and its unit: us or ms")
    if not 0 < (ns := int(match[1]) * _NS[match[2]]) <= LONGEST_DELAY_NS:
        raise Expected("a delay of at most 500ms, above zero", "leave the key out for none")
    return ns


def shown_ns(ns: int) -> str:
    """Return a delay as a plan writes it: `2ms`, `300us`."""
    return f"{ns // 1_000_000}ms" if ns % 1_000_000 == 0 else f"{ns // 1_000}us"


DelayNs = Annotated[
    int,
    PlainValidator(_delay),
    PlainSerializer(shown_ns, return_type=str),
    text(_DELAY_PATTERN, "300us", "2ms"),
]


class Reordering(Strict):
    """Frames that are delayed, so that others overtake them."""

    keys_are: ClassVar[str] = "a key of reordering: share or by"

    share: LossGoal
    """Share of frames that are delayed."""
    by: DelayNs
    """The delay."""

    def __str__(self) -> str:
        return f"{self.share:g} of frames {shown_ns(self.by)} late"


class LinkErrors(Strict):
    """The faults of one link, in both directions, for each frame separately."""

    keys_are: ClassVar[str] = "a key of a link: loss, bit_errors, delay or reordering"

    loss: LossGoal = 0.0
    """Share of frames that are lost."""
    bit_errors: LossGoal = 0.0
    """Share of bits that are flipped. A frame with one has a wrong FCS: the port that receives it drops it. With
    `dut: uml`, where frames have no FCS, the link drops it."""
    delay: DelayNs | None = None
    """Delay of all frames, in addition to the 50 µs of each link in virtual time. It is there while gateways are set
    up, too."""
    reordering: Reordering | None = None
    """Frames that are delayed, so that others overtake them."""

    @property
    def exist(self) -> bool:
        """True if the link has any faults."""
        return self != LinkErrors()

    def __str__(self) -> str:
        said = [
            f"loss {self.loss:g}" if self.loss else "",
            f"bit errors {self.bit_errors:g}" if self.bit_errors else "",
            f"delay {shown_ns(self.delay)}" if self.delay else "",
            str(self.reordering or ""),
        ]
        return ", ".join(part for part in said if part)


class Links(Strict):
    """The faults of the links, in every trial. While gateways are set up, links have `delay`, but no other fault."""

    keys_are: ClassVar[str] = "a link (west, middle, east) or seed"

    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 1
    """Seed that chooses the frames. With the same seed, load and length, a trial has faults in the same frames."""
    west: LinkErrors = LinkErrors()
    """The link between the tester's west port and gateway Home."""
    middle: LinkErrors = LinkErrors()
    """The link between the gateways."""
    east: LinkErrors = LinkErrors()
    """The link between gateway Office and the tester's east port."""

    @property
    def by_name(self) -> dict[str, LinkErrors]:
        """The links that have faults, by name."""
        links = {"west": self.west, "middle": self.middle, "east": self.east}
        return {name: errors for name, errors in links.items() if errors.exist}
