# SPDX-License-Identifier: Apache-2.0
"""The tester as the other end of a gateway's tunnels: the SAs of its streams, and what these SAs counted."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from espbench.generators.base import Association, EspCounts, Offered, Stream
from espbench.platforms.base import PortName, Testbed
from espbench.sentences import Code
from espbench.stacks.base import Stack
from espbench.terms import Reason

_OF_SECRETS = set(Association.model_fields)
# This is the suite of a calibration: most of the calibration's cost does not depend on the cipher.
_STAND_IN = "aes128gcm16"


@dataclass(frozen=True)
class EspPeer:
    """The SAs of the tester's port on the ciphertext side: `seal` for frames that leave, `open` for frames that
    arrive.

    Each has one SA for each tunnel, in the order of the tunnels.
    """

    port: PortName
    seal: Sequence[Association]
    open: Sequence[Association]

    @staticmethod
    def of(bed: Testbed, stack: Stack) -> EspPeer | None:
        """Return the peer of a stack's tunnels; None if the tester is not their end, or there are none."""
        if bed.ciphertext is None or not stack.encrypts:
            return None
        associations = [
            Association.model_validate({k: v for k, v in sa.items() if k in _OF_SECRETS})
            for sa in stack.secrets()
        ]
        here = bed.esp_address[4 if ":" not in associations[0].source else 6]
        return EspPeer(
            bed.ciphertext,
            seal=[sa for sa in associations if sa.source == here],
            open=[sa for sa in associations if sa.destination == here],
        )

    @staticmethod
    def stand_in(bed: Testbed, ip_version: int) -> EspPeer | None:
        """Return the peer for a bed without a gateway: the receiving end opens what the sending end sealed.

        Each direction has an SA of its own: two senders with one SA would use each sequence number twice.
        """
        if bed.ciphertext is None:
            return None
        here = bed.esp_address[ip_version]
        first_spi = 0x100 + 2 * secrets.randbelow(2**30)
        out, back = (
            Association(
                spi=spi,
                source=here,
                destination=here,
                suite=_STAND_IN,
                encryption_key=secrets.token_hex(20),
            )
            for spi in (first_spi, first_spi + 1)
        )
        return EspPeer(bed.ciphertext, [out], [back])

    def through(self, streams: Iterable[Stream]) -> list[Stream]:
        """Return the streams with ESP on the ciphertext side."""
        return [
            stream.model_copy(
                update={
                    "seal": self.seal if stream.from_ == self.port else [],
                    "open": self.open if stream.to == self.port else [],
                }
            )
            for stream in streams
        ]

    def both_ends(self, streams: Iterable[Stream]) -> list[Stream]:
        """Return the streams with the tester sealing and opening each frame: an upper bound of the cost of ESP to the
        tester.
        """

        def ends(stream: Stream) -> dict[str, Sequence[Association]]:
            sas = self.seal if stream.from_ == self.port else self.open
            return {"seal": sas, "open": sas}

        return [stream.model_copy(update=ends(stream)) for stream in streams]


def esp_counts(offered: Offered) -> EspCounts | None:
    """Return the counts of the SAs of the tester's port; None if it received no ESP."""
    return next((port.esp for port in offered.ports if port.esp is not None), None)


def leaks(counts: EspCounts | None) -> list[Reason]:
    """Return a reason if the tester received frames in clear on the ciphertext side."""
    if counts is None or not counts.cleartext:
        return []
    return [Reason.of(Code.SEEN_IN_CLEAR, frames=counts.cleartext)]


def problems(counts: EspCounts | None) -> list[Reason]:
    """Return why the gateway did not encrypt everything, or not each packet exactly once; empty if it did.

    Damaged packets are not reported here: they count as corrupted frames.
    """
    if counts is None:
        return []
    wrong = {Code.SPI_UNKNOWN: counts.unknown_spi, Code.SEQUENCE_REPEATED: counts.repeated + counts.old}
    return leaks(counts) + [Reason.of(code, packets=n) for code, n in wrong.items() if n]
