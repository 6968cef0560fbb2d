# SPDX-License-Identifier: Apache-2.0
"""Parses events from charon's log, in lines `1700000000.123 07[IKE] <gateways|1> CHILD_SA tunnel0{1} established …`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from espbench.stacks.daemons.sa_events import Phase, SaEvent, What

# grep(1) in the gateway uses this pattern to select the lines with events, so that a long log is not transferred.
TELLING = r"(initiating IKE_SA|IKE_SA .* (established|rekeyed) between|establishing CHILD_SA|CHILD_SA .* established)"

_LINE = re.compile(r"^(?P<at>\d+\.\d+) \d+\[\w+\] <(?P<under>[^>]*\|)(?P<ike>\d+)> (?P<text>.*)$")
# The end that rekeys a CHILD SA installs the outbound SA last; a line about the `inbound` SA alone does not end the
# rekeying (RFC 7296 2.8).
_STEPS: tuple[tuple[re.Pattern[str], Phase, What], ...] = (
    (re.compile(r"initiating IKE_SA \S+\[(\d+)\]"), 1, "begun"),
    (re.compile(r"IKE_SA \S+\[(\d+)\] established between"), 1, "established"),
    (re.compile(r"IKE_SA \S+\[(\d+)\] rekeyed between"), 1, "rekeyed"),
    (re.compile(r"establishing CHILD_SA \S+\{(\d+)\}"), 2, "begun"),
    (re.compile(r"outbound CHILD_SA \S+\{(\d+)\} established"), 2, "rekeyed"),
    (re.compile(r"CHILD_SA \S+\{(\d+)\} established"), 2, "established"),
)


def events(log: str) -> Iterator[SaEvent]:
    """Yield the events of the SAs that this charon initiated."""
    begun: set[tuple[int, str]] = set()
    for line in log.splitlines():
        parts = _LINE.match(line)
        if parts is None:
            continue
        for pattern, phase, what in _STEPS:
            if match := pattern.match(parts["text"]):
                name = match[1]
                if what == "begun":
                    begun.add((phase, name))
                if (phase, name) in begun:
                    # Charon logs the line of a rekeyed IKE SA under the number of the old one.
                    ike = name if phase == 1 else parts["ike"]
                    yield SaEvent(float(parts["at"]), phase, what, name, ike)
                break
