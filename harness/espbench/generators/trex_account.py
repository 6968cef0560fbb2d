# SPDX-License-Identifier: Apache-2.0
"""A trial's books from two sets of counters: TRex's own and, where it was launched here, the kernel's."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.generators.base import Stream, StreamCounts
from espbench.generators.trex_ports import Counters
from espbench.generators.trex_server import Link
from espbench.platforms.base import PortName


@dataclass(frozen=True)
class Account:
    """A port's part in a trial, frames. sent counts refused ones; held were counted by TRex, but never left."""

    sent: int
    refused: int
    held: int
    received: int
    overrun: int
    errors: int

    @staticmethod
    def of(trex: Counters, link: Link | None) -> Account:
        """link: what the kernel's counters moved, where they can be read."""
        if link is None:
            return Account(trex.opackets, 0, 0, trex.ipackets, trex.ierrors, trex.oerrors)
        return Account(
            sent=link.sent + link.refused,
            refused=link.refused,
            held=max(0, trex.opackets - link.sent),
            received=trex.ipackets,
            overrun=max(trex.ierrors, link.received - trex.ipackets),
            errors=trex.oerrors,
        )


def stream_counts(s: Stream, planned: int | None, accounts: dict[PortName, Account]) -> StreamCounts:
    """Return one stream's part, from the ports it went between; None where TRex cannot tell."""
    sender, rx = accounts[s.from_], accounts[s.to].received
    return StreamCounts(
        id=s.id,
        from_=s.from_,
        to=s.to,
        intended_frames=planned,
        tx_frames=sender.sent,
        tx_refused=sender.refused,
        unsent=max(0, (planned or 0) - sender.sent),
        rx_frames=rx,
        never_came=max(0, sender.sent - rx),  # TRex cannot tell which frames came damaged
        duplicated=None,
        reordered=None,
        corrupted=None,
        rx_after_stop=None,
        drain_s=None,
        latency_us=None,
        late_frames=None,
    )


def shortfall(accounts: dict[PortName, Account], streams: list[Stream], *, is_late: bool) -> str:
    """Say why fewer frames were sent than planned, as far as this is known."""
    errors = sum(accounts[s.from_].errors for s in streams)
    held = sum(accounts[s.from_].held for s in streams)
    if errors:
        return f"its ports refused {errors} (oerrors)"
    if held:
        return f"{held} that TRex counted as sent never left its port"
    return "TRex falls behind its schedule" if is_late else ""
