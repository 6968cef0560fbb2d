# SPDX-License-Identifier: Apache-2.0
"""traffic/profiles/*.yaml: the headers and sizes of the offered frames, and the RFC 2544 test frame."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, model_validator

from espbench.catalogue.suites import IP_HEADER_BYTES
from espbench.errors import UsageError
from espbench.paths import data_dir, data_names
from espbench.plan.reading.reader import Problem, Strict, check, did_you_mean, read, shown
from espbench.plan.reading.units import Expected
from espbench.plan.traffic import imix_genome
from espbench.terms import FCS_BYTES

ETHERNET_HEADER_BYTES = 14
UDP_HEADER_BYTES = 8
LONGEST_ROUND = 65_536  # frames of a round, whose order the generator computes once
Weight = Annotated[int, Field(ge=1, le=LONGEST_ROUND)]
Size = Annotated[int, Field(ge=64, le=9000)]
RFC2544 = "rfc2544"
_KINDS = ("sizes", "mix", "genome", "pcap")


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,39}", value):
        raise Expected(
            "a name of up to 40 small letters, digits, . or -", "reports and results.csv call the traffic so"
        )
    return value


ProfileName = Annotated[str, PlainValidator(_name)]


class Rfc2544Frame(Strict):
    """The frame that every trial sends unless a template says otherwise (RFC 2544 9, 10 and appendix C.2.6.4)."""

    keys_are = "a key of the test frame"

    name: str
    description: str
    sizes: list[Size]
    """Frame sizes of RFC 2544 9.1, bytes with FCS."""
    ttl: Annotated[int, Field(ge=3, le=255)]
    udp_source: int
    udp_destination: int
    payload_bytes: int
    """Least bytes of UDP payload with room for stream id, sequence number, time and checksum."""

    def smallest_frame(self, ip_version: int) -> int:
        """Return the size of the smallest frame that carries the payload, bytes with FCS."""
        headers = ETHERNET_HEADER_BYTES + IP_HEADER_BYTES[ip_version] + UDP_HEADER_BYTES
        return headers + self.payload_bytes + FCS_BYTES


class Part(Strict):
    """One frame size of a mix, and how many frames of it a round has."""

    keys_are = "a key of a part of the mix"

    size: Size
    weight: Weight
    template: str | None = None
    """Headers of these frames as a Scapy expression. Default: the profile's."""


class Profile(Strict):
    """One traffic profile: its frames' headers, and their sizes as one of sizes, mix, genome or pcap."""

    keys_are = "a key of a traffic profile"

    name: ProfileName
    """Its name in plans and reports."""
    description: str
    """One line for `espbench list traffic`."""
    source: str = ""
    """The source of the figures."""
    sizes: Annotated[list[Size], Field(min_length=1)] | None = None
    """Frame sizes of a plan that names none, bytes with FCS; each is measured by itself."""
    mix: Annotated[list[Part], Field(min_length=2, max_length=255)] | None = None
    """Frame sizes in proportions, spread evenly."""
    genome: str | None = None
    """Frame sizes in exactly this order, as an IMIX genome (RFC 6985): aaafg."""
    custom: dict[str, Size] = Field(default_factory=dict)
    """Sizes of the genome's capital letters, and of z (RFC 6985: the MTU), bytes with FCS."""
    pcap: str | None = None
    """A recording beside this file: headers, sizes and order of its frames are replayed."""
    template: str | None = None
    """Headers of the frames as a Scapy expression, from Ether() to UDP() or TCP()."""
    ip_version: Literal[4, 6] | None = None
    """The IP version of the profile. Default: the template's, or any without a template; 4 with pcap."""
    networks: Annotated[int, Field(ge=1, le=256)] | None = None
    """Destination networks (RFC 2544 12) of a plan that does not set them."""

    @model_validator(mode="before")
    @classmethod
    def _one_kind(cls, value: Any) -> Any:
        given = [key for key in _KINDS if isinstance(value, dict) and value.get(key) is not None]
        if isinstance(value, dict) and len(given) != 1:
            raise Expected(
                f"exactly one of {', '.join(_KINDS)}", " and ".join(given) or "add sizes: [64, 512]"
            )
        return value

    @property
    def is_bare_mix(self) -> bool:
        """True if the profile has only sizes in proportions, so that `frame_sizes` may name it."""
        return (
            (self.mix is not None or self.genome is not None)
            and (self.template, self.ip_version, self.networks) == (None, None, None)
            and all(part.template is None for part in self.mix or ())
        )

    @property
    def shares(self) -> tuple[tuple[int, int], ...]:
        """(size, weight) for each part of a mix; for a genome, one entry with weight 1 for each frame, in order."""
        if self.genome is not None:
            return tuple((size, 1) for size in imix_genome.sizes(self.genome, self.custom))
        return tuple((part.size, part.weight) for part in self.mix or ())


@cache
def rfc2544_frame() -> Rfc2544Frame:
    """Return the RFC 2544 test frame."""
    return check(Rfc2544Frame, read(data_dir("traffic") / f"{RFC2544}.yaml", "test frame"))


def profile_names() -> list[str]:
    """Return the names that `traffic` accepts besides paths."""
    return data_names("traffic")


@cache
def mix_names() -> list[str]:
    """Return the names that `frame_sizes` accepts besides numbers."""
    return [name for name in profile_names() if name != RFC2544 and load(name).is_bare_mix]


@cache
def mix(name: str) -> Profile:
    """Return the mix with this name, which is one of mix_names()."""
    return load(name)


def is_path(traffic: str) -> bool:
    """Return whether a plan's `traffic` names a file rather than a profile."""
    return "/" in traffic or traffic.endswith((".yaml", ".yml"))


def path_of(traffic: str, plan_path: Path | None) -> Path:
    """Return the file that `traffic` names: beside the plan, or one of espbench's own. Raise UsageError."""
    if is_path(traffic):
        return (plan_path.parent if plan_path else Path()) / traffic
    known = profile_names()
    if traffic not in known:
        remedy = did_you_mean(traffic, known, "write the path of a file of your own as ./my-traffic.yaml")
        raise UsageError(
            f"traffic: expected a profile ({', '.join(known)}) or a path, got {shown(traffic)}; {remedy}"
        )
    return data_dir("traffic") / f"{traffic}.yaml"


def load(traffic: str, plan_path: Path | None = None) -> Profile:
    """Return the profile with this name or path, without rendering templates or reading recordings. Raise
    UsageError.
    """
    if traffic == RFC2544:
        frame = rfc2544_frame()
        return Profile(name=frame.name, description=frame.description, sizes=frame.sizes)
    return check(Profile, read(path_of(traffic, plan_path), "traffic profile"), profile_problems)


def profile_problems(profile: Profile) -> list[Problem]:
    """Find keys of a traffic profile that contradict each other."""
    problems = _genome_problems(profile)
    if profile.pcap is not None and profile.template is not None:
        problems.append(
            Problem(
                ("template",),
                "no template with pcap",
                "one",
                "the recording has the headers: remove it",
                on_key=True,
                involves=(("pcap",),),
            )
        )
    return problems


def _genome_problems(profile: Profile) -> list[Problem]:
    if profile.genome is None:
        return [
            Problem(("custom",), "no custom without genome", "one", "remove it", on_key=True)
            for _ in profile.custom
        ][:1]
    problems = [
        Problem(
            ("custom", letter),
            "a capital letter, or z for the MTU (RFC 6985)",
            shown(letter),
            "the small letters a to j have the sizes of RFC 6985",
            on_key=True,
        )
        for letter in profile.custom
        if not re.fullmatch("[A-Zz]", letter)
    ]
    unknown = next(
        (c for c in profile.genome if c not in imix_genome.LETTERS and c not in profile.custom), None
    )
    if not 1 <= len(profile.genome) <= imix_genome.LONGEST:
        said = f"a genome of 1 to {imix_genome.LONGEST} letters"
        problems.append(Problem(("genome",), said, str(len(profile.genome)), "shorten it"))
    elif unknown is not None:
        problems.append(
            Problem(
                ("genome",),
                f"letters of RFC 6985 ({''.join(imix_genome.LETTERS)}) or of custom",
                shown(unknown),
                f"add custom: {{{unknown}: 576}}"
                if re.fullmatch("[A-Zz]", unknown)
                else "choose one of these",
                involves=(("custom",),),
            )
        )
    elif "j" in profile.genome:
        problems.append(
            Problem(
                ("genome",), "frames of at most 9000 B", '"j" (16000 B)', "choose a smaller one of a to i"
            )
        )
    return problems
