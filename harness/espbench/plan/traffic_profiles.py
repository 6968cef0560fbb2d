# SPDX-License-Identifier: Apache-2.0
"""traffic/*.yaml: mixes of frame sizes, and the RFC 2544 test frame."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pydantic import Field

from espbench.paths import data_dir, data_names
from espbench.plan.reader import Strict, check, read
from espbench.stacks.suites import IP_HEADER_BYTES
from espbench.terms import FCS_BYTES

ETHERNET_HEADER_BYTES = 14
UDP_HEADER_BYTES = 8
Weight = Annotated[int, Field(ge=1)]
Size = Annotated[int, Field(ge=64, le=9000)]


class Rfc2544Frame(Strict):
    """The frame every trial sends (RFC 2544 9, 10 and appendix C.2.6.4)."""

    keys_are = "a key of the test frame"

    name: str
    description: str
    sizes: list[Size]
    """Frame sizes of RFC 2544 9.1, bytes with FCS."""
    ttl: Annotated[int, Field(ge=3, le=255)]
    udp_source: int
    udp_destination: int
    payload_bytes: int
    """Least bytes of UDP payload that hold stream id, sequence number, time and checksum."""

    def smallest_frame(self, ip_version: int) -> int:
        """The smallest frame (with FCS) that carries the payload."""
        headers = ETHERNET_HEADER_BYTES + IP_HEADER_BYTES[ip_version] + UDP_HEADER_BYTES
        return headers + self.payload_bytes + FCS_BYTES


class Part(Strict):
    """One frame size of a mix and how many of them go into a round."""

    keys_are = "a key of a part of the mix"

    size: Size
    weight: Weight


class Mix(Strict):
    """Several frame sizes in fixed proportions."""

    keys_are = "a key of the mix"

    name: str
    description: str
    source: str
    mix: Annotated[list[Part], Field(min_length=2)]

    @property
    def mean_frame_size(self) -> float:
        """Mean bytes per frame, with FCS."""
        return sum(part.size * part.weight for part in self.mix) / sum(part.weight for part in self.mix)


_TEST_FRAME = "rfc2544"


@cache
def rfc2544_frame() -> Rfc2544Frame:
    """The RFC 2544 test frame."""
    return check(Rfc2544Frame, read(data_dir("traffic") / f"{_TEST_FRAME}.yaml", "test frame"))


def mix_names() -> list[str]:
    """The names `frame_sizes` accepts beside numbers."""
    return [name for name in data_names("traffic") if name != _TEST_FRAME]


@cache
def mix(name: str) -> Mix:
    """The mix of this name, one of mix_names()."""
    return check(Mix, read(data_dir("traffic") / f"{name}.yaml", "traffic profile"))
