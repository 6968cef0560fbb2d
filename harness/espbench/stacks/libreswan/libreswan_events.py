# SPDX-License-Identifier: Apache-2.0
"""Parses events from pluto's log, in lines `Nov 21 19:14:52.824274: "t0" #1: initiating IKEv2 connection`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from espbench.stacks.daemons.sa_events import Phase, SaEvent, What

# grep(1) in the gateway uses this pattern to select the lines with events, so that a long log is not transferred.
TELLING = r"(initiating |initiator (established|rekeyed) )"

_LINE = re.compile(r'^(?P<at>\w{3} +\d+ [\d:.]+): "[^"]*" #(?P<sa>\d+): (?P<text>.*)$')
_STEPS: tuple[tuple[re.Pattern[str], Phase, What], ...] = (
    (re.compile(r"initiating IKEv2 connection|initiating rekey to replace IKE SA"), 1, "begun"),
    (re.compile(r"initiator established IKE SA"), 1, "established"),
    (re.compile(r"initiator rekeyed IKE SA"), 1, "rekeyed"),
    (re.compile(r"initiating (?:Child SA using IKE SA|rekey to replace Child SA) #(\d+)"), 2, "begun"),
    (re.compile(r"initiator established Child SA using #(\d+)"), 2, "established"),
    (re.compile(r"initiator rekeyed Child SA #\d+ using #(\d+)"), 2, "rekeyed"),
)
_YEAR = 2000  # the log has no year; this one is a leap year
_HALF_A_YEAR = timedelta(days=180)


def events(log: str) -> Iterator[SaEvent]:
    """Yield the events of the SAs that this pluto initiated."""
    year, before = _YEAR, datetime(_YEAR, 1, 1)
    for line in log.splitlines():
        parts = _LINE.match(line)
        if parts is None:
            continue
        at = datetime.strptime(f"{year} {parts['at']}", "%Y %b %d %H:%M:%S.%f")
        if before - at > _HALF_A_YEAR:
            year += 1
            at = at.replace(year=year)
        before = at
        for pattern, phase, what in _STEPS:
            if match := pattern.match(parts["text"]):
                ike = match[1] if phase == 2 and match.groups() and match[1] else parts["sa"]
                yield SaEvent((at - datetime(_YEAR, 1, 1)).total_seconds(), phase, what, parts["sa"], ike)
                break
