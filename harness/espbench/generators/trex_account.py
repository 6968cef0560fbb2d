# SPDX-License-Identifier: Apache-2.0
"""The frame counts of a trial from two sources: TRex's counters and, for a server launched here, the kernel's."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.generators.base import Stream, StreamCounts
from espbench.generators.trex_ports import Counters
from espbench.generators.trex_server import Link
from espbench.platforms.base import PortName


@dataclass(frozen=True)
class Account:
    """The frames of one port in a trial. sent includes refused frames; held: frames that TRex counted, but that
    never left.
    """

    sent: int
    refused: int
    held: int
    received: int
    overrun: int
    errors: int

    @staticmethod
    def of(trex: Counters, link: Link | None) -> Account:
        """Return the account; link: changes of the kernel's counters, None if they cannot be read."""
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
    """Return the counts of one stream from the accounts of its two ports; None where TRex cannot measure."""
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
    """Return why fewer frames were sent than planned, as far as this is known; empty if it is not."""
    errors = sum(accounts[s.from_].errors for s in streams)
    held = sum(accounts[s.from_].held for s in streams)
    if errors:
        return f"its ports refused {errors} (oerrors)"
    if held:
        return f"{held} that TRex counted as sent never left its port"
    return "TRex falls behind its schedule" if is_late else ""
