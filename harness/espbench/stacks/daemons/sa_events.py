# SPDX-License-Identifier: Apache-2.0
"""Tells what an IKE daemon did when, by its own log and its gateway's own clock: SAs begun, established, rekeyed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from espbench.platforms.base import Gateway

Phase = Literal[1, 2]
What = Literal["begun", "established", "rekeyed"]


@dataclass(frozen=True)
class SaEvent:
    """One step of one SA that this daemon initiated.

    at_s: seconds on the gateway's clock, only to be compared with each other. phase: 1 the IKE SA, 2 a CHILD SA.
    sa: the daemon's own name of the SA; ike: that of the IKE SA it is under (of phase 1: itself).
    """

    at_s: float
    phase: Phase
    what: What
    sa: str
    ike: str


@dataclass(frozen=True)
class Span:
    """Lasts from the first message of a negotiation to its end, s on the gateway's clock."""

    begun_s: float
    done_s: float

    @property
    def seconds(self) -> float:
        return self.done_s - self.begun_s


def spans(events: Iterable[SaEvent], phase: Phase, what: Literal["established", "rekeyed"]) -> list[Span]:
    """Return every negotiation of this kind that came to its end, in the order in which they ended.

    CHILD SAs that came with their IKE SA (RFC 7296 1.2) have no exchange of their own: they are not among those
    established.
    """
    begun: dict[str, float] = {}
    ike_up: dict[str, float] = {}
    ended = []
    for event in events:
        if event.phase == 1 and event.what != "begun":
            ike_up.setdefault(event.ike, event.at_s)
        if event.phase != phase:
            continue
        if event.what == "begun":
            begun[event.sa] = event.at_s
            continue
        start = begun.pop(event.sa, None)
        if start is None or event.what != what:
            continue
        if phase == 2 and what == "established" and start < ike_up.get(event.ike, start):
            continue
        ended.append(Span(start, event.at_s))
    return ended


def set_ups(events: Sequence[SaEvent]) -> list[tuple[Span, Span]]:
    """List for every IKE SA that was established: (phase 1, the whole tunnel up to its first CHILD SA)."""
    first_child: dict[str, float] = {}
    for event in events:
        if event.phase == 2 and event.what == "established":
            first_child.setdefault(event.ike, event.at_s)
    begun = {e.sa: e.at_s for e in events if e.phase == 1 and e.what == "begun"}
    return [
        (Span(begun[e.sa], e.at_s), Span(begun[e.sa], first_child[e.sa]))
        for e in events
        if e.phase == 1 and e.what == "established" and e.sa in begun and e.sa in first_child
    ]


def log_size(gateway: Gateway, path: str) -> int:
    """Return bytes of a daemon's log; 0 where there is none."""
    return int((gateway.run(["wc", "-c", path]).out.split() or ["0"])[0])


def log_lines(gateway: Gateway, path: str, after: int, telling: str) -> str:
    """Return the lines behind so many bytes of a log that match an extended regular expression."""
    script = 'tail -c "+$2" "$1" | grep -E "$3"; true'
    return gateway.run(["sh", "-c", script, "sh", path, str(after + 1), telling]).out
