# SPDX-License-Identifier: Apache-2.0
"""Derives the times of negotiations from an IKE daemon's log, on the gateway's clock: SAs begun,
established, rekeyed.
"""

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

    at_s: seconds on the gateway's clock; only differences have a meaning. phase: 1 for an IKE SA, 2 for a CHILD SA.
    sa: the daemon's own name of the SA. ike: the name of the IKE SA that the SA belongs to (in phase 1 the SA itself).
    """

    at_s: float
    phase: Phase
    what: What
    sa: str
    ike: str


@dataclass(frozen=True)
class Span:
    """The time from the first message of a negotiation to its end, s on the gateway's clock."""

    begun_s: float
    done_s: float

    @property
    def seconds(self) -> float:
        return self.done_s - self.begun_s


def spans(events: Iterable[SaEvent], phase: Phase, what: Literal["established", "rekeyed"]) -> list[Span]:
    """Return every negotiation of this kind that was completed, in the order in which they ended.

    CHILD SAs that were negotiated together with their IKE SA (RFC 7296 1.2) have no exchange of their own, so they are
    not counted as established. A negotiation that the peer makes begin again (with a cookie, or in another group)
    counts from its first message.
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
            begun.setdefault(event.sa, event.at_s)
            continue
        start = begun.pop(event.sa, None)
        if start is None or event.what != what:
            continue
        if phase == 2 and what == "established" and start < ike_up.get(event.ike, start):
            continue
        ended.append(Span(start, event.at_s))
    return ended


def set_ups(events: Sequence[SaEvent]) -> list[tuple[Span, Span]]:
    """Return for every IKE SA that was established: (the time of phase 1, the time up to its first CHILD SA)."""
    first_child: dict[str, float] = {}
    for event in events:
        if event.phase == 2 and event.what == "established":
            first_child.setdefault(event.ike, event.at_s)
    begun: dict[str, float] = {}
    for event in events:
        if event.phase == 1 and event.what == "begun":
            begun.setdefault(event.sa, event.at_s)
    return [
        (Span(begun[e.sa], e.at_s), Span(begun[e.sa], first_child[e.sa]))
        for e in events
        if e.phase == 1 and e.what == "established" and e.sa in begun and e.sa in first_child
    ]


def log_size(gateway: Gateway, path: str) -> int:
    """Return the size of a daemon's log, bytes; 0 if there is no log."""
    return int((gateway.run(["wc", "-c", path]).out.split() or ["0"])[0])


def log_lines(gateway: Gateway, path: str, after: int, telling: str) -> str:
    """Return the lines of a log, after its first `after` bytes, that match an extended regular expression."""
    script = 'tail -c "+$2" "$1" | grep -E "$3"; true'
    return gateway.run(["sh", "-c", script, "sh", path, str(after + 1), telling]).out
