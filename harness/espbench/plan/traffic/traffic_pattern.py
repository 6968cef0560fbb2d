# SPDX-License-Identifier: Apache-2.0
"""Makes from a traffic profile the headers and sizes of the offered frames, and the notes about them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from espbench.plan.reading.reader import Document, KeyPath, Problem, check_and_resolve, read, shown
from espbench.plan.traffic.headers import Header
from espbench.plan.traffic.pcap import NotARecording
from espbench.plan.traffic.replay import replay
from espbench.plan.traffic.templates import BadTemplate, rendered
from espbench.plan.traffic.traffic_profiles import (
    RFC2544,
    Profile,
    load,
    mix_names,
    path_of,
    profile_problems,
    rfc2544_frame,
)
from espbench.regular_files import NotRead, bytes_of

MOST_RECORDED_BYTES = 256 << 20  # many more frames than can be replayed, beside others that are left out
Shares = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Pattern:
    """The offered frames of a plan.

    headers: empty for the RFC 2544 test frame. shares: (size with FCS, weight[, index into headers]); empty if each
    of the plan's sizes is measured by itself. sizes: the default of the plan's frame sizes.
    """

    name: str
    headers: tuple[Header, ...] = ()
    shares: Shares = ()
    sizes: tuple[int, ...] = ()
    ip_version: int | None = None
    networks: int | None = None
    is_sequence: bool = False
    notes: tuple[str, ...] = ()

    @property
    def tag_bytes(self) -> int:
        """Bytes of VLAN tags that all frames have, and that are not part of the IP packet."""
        return min((len(header.tags) for header in self.headers), default=0)

    @property
    def tags(self) -> bytes:
        """The VLAN tags if all headers have the same; else empty."""
        tags = {header.tags for header in self.headers}
        return tags.pop() if len(tags) == 1 else b""

    @property
    def vlans(self) -> set[int]:
        """The VLAN identifiers except 0, which only carries a priority."""
        return {vlan for header in self.headers for vlan in header.vlans} - {0}

    @property
    def has_tcp(self) -> bool:
        """True if some frames carry TCP."""
        return any(header.is_tcp for header in self.headers)

    def smallest_frame(self, ip_version: int, header: int = 0) -> int:
        """Return the size of the smallest frame with these headers, bytes with FCS."""
        if not self.headers:
            return rfc2544_frame().smallest_frame(ip_version)
        return self.headers[header].smallest_frame

    @property
    def _is_known_mix(self) -> bool:
        return self.name in mix_names() and self.shares == mix_shares(self.name)

    @property
    def fingerprint(self) -> str:
        """A name that is equal for patterns with the same frames; reports and comparisons use it for the traffic."""
        if not self.headers and (not self.shares or self._is_known_mix):
            return RFC2544  # flows, frame sizes and IP versions are recorded elsewhere
        # Two files may have the same name, so the contents distinguish them.
        parts = [repr((self.shares, self.ip_version)).encode(), *(header.data for header in self.headers)]
        return f"{self.name} ({hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]})"


def rfc2544_pattern() -> Pattern:
    """Return the pattern of the RFC 2544 test frame, with each size measured by itself."""
    return Pattern(RFC2544, sizes=tuple(rfc2544_frame().sizes))


def load_pattern(traffic: str, plan_path: Path | None = None) -> Pattern:
    """Return the pattern of a plan's `traffic`, with templates rendered and recordings read. Raise UsageError."""
    if traffic == RFC2544:
        return rfc2544_pattern()
    path = path_of(traffic, plan_path)
    return pattern_of(read(path, "traffic profile"), path.parent)


def pattern_of(document: Document, folder: Path) -> Pattern:
    """Return the pattern of a traffic profile in this folder, as `load_pattern` does. Raise UsageError."""

    def resolve(profile: Profile) -> tuple[Pattern, list[Problem]]:
        if problems := profile_problems(profile):
            return rfc2544_pattern(), problems
        pattern, problems = _pattern(profile, folder)
        notes = (f"traffic {profile.name}: {profile.description}", *pattern.notes)
        return replace(pattern, notes=notes), problems

    return check_and_resolve(Profile, document, resolve)


def mix_shares(name: str) -> Shares:
    """Return the sizes and weights of one of espbench's own mixes."""
    return load(name).shares


def _pattern(profile: Profile, folder: Path) -> tuple[Pattern, list[Problem]]:
    if profile.pcap is not None:
        return _of_recording(profile, profile.pcap, folder)
    headers: dict[Header, int] = {}
    problems: list[Problem] = []

    def index_of(template: str, at: KeyPath) -> int:
        try:
            return headers.setdefault(rendered(template), len(headers))
        except BadTemplate as bad:
            problems.append(Problem(at, bad.expected, bad.got, bad.remedy))
            return 0

    if profile.mix is not None:
        shares = _of_mix(profile, index_of, problems)
    else:
        if profile.template is not None:
            index_of(profile.template, ("template",))
        shares = profile.shares
    versions = {header.ip_version for header in headers}
    if len(versions) > 1 or (profile.ip_version and versions - {profile.ip_version}):
        at: KeyPath = ("ip_version",) if profile.ip_version else ("mix",)
        problems.append(Problem(at, "one IP version", "both", "write a profile for each"))
    pattern = Pattern(
        name=profile.name,
        headers=tuple(headers),
        shares=shares,
        sizes=tuple(profile.sizes or ()),
        ip_version=profile.ip_version or next(iter(versions), None),
        networks=profile.networks,
        is_sequence=profile.genome is not None,
    )
    return pattern, [*problems, *_too_small(profile, pattern)]


def _of_mix(profile: Profile, index_of: Callable[[str, KeyPath], int], problems: list[Problem]) -> Shares:
    """Return each part with the header of its template or of the profile's; without templates, parts have no header."""
    parts = profile.mix or []
    bare = profile.template is None and all(part.template is None for part in parts)
    if bare:
        return profile.shares
    shares = []
    for number, part in enumerate(parts):
        template, at = part.template, ("mix", number, "template")
        if template is None:
            template, at = profile.template, ("template",)  # type: ignore[assignment]
        if template is None:
            problems.append(
                Problem(
                    ("mix", number),
                    "a template in each part, or one for all",
                    "none",
                    "add template: 'Ether()/IP()/UDP()' here or beside mix",
                )
            )
            continue
        shares.append((part.size, part.weight, index_of(template, at)))
    return tuple(shares)


def _of_recording(profile: Profile, pcap: str, folder: Path) -> tuple[Pattern, list[Problem]]:
    version = profile.ip_version or 4
    try:
        recording = replay(bytes_of(folder / pcap, MOST_RECORDED_BYTES), version)
    except (NotRead, NotARecording) as error:
        said = f"one {error}" if isinstance(error, NotARecording) else str(error)
        problem = Problem(
            ("pcap",),
            "a recording that can be replayed",
            f"{shown(pcap)}, {said}",
            "see docs/traffic.md, pcap",
        )
        return Pattern(profile.name), [problem]
    pattern = Pattern(
        name=profile.name,
        headers=recording.headers,
        shares=recording.shares,
        ip_version=version,
        networks=profile.networks,
        is_sequence=True,
        notes=recording.notes,
    )
    return pattern, []


def _too_small(profile: Profile, pattern: Pattern) -> list[Problem]:
    """Find sizes that are too small for the profile's own headers. Without headers, the plan's IP version decides."""
    if not pattern.headers:
        return []
    listed: list[tuple[KeyPath, int, int]]
    if profile.sizes is not None:
        listed = [(("sizes", i), size, 0) for i, size in enumerate(profile.sizes)]
    elif profile.genome is not None:
        listed = [(("genome",), min(size for size, *_ in pattern.shares), 0)]
    else:
        listed = [(("mix", i, "size"), s[0], s[2]) for i, s in enumerate(pattern.shares)]
    return [
        Problem(
            at,
            f"frames of at least {least} B with these headers",
            str(size),
            "headers and the test payload need that much",
        )
        for at, size, header in listed
        if size < (least := pattern.headers[header].smallest_frame)
    ]
