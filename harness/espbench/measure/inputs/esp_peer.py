# SPDX-License-Identifier: Apache-2.0
"""The tester as the other end of a gateway's tunnels: which SAs its streams go through, and what these counted."""

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
# The suite of a calibration: most of its cost does not depend on the cipher.
_STAND_IN = "aes128gcm16"


@dataclass(frozen=True)
class EspPeer:
    """The SAs by which frames leave the tester's port on the ciphertext side, and those by which they come.

    One of each for each tunnel, in the order of the tunnels.
    """

    port: PortName
    seal: Sequence[Association]
    open: Sequence[Association]

    @staticmethod
    def of(bed: Testbed, stack: Stack) -> EspPeer | None:
        """None where the tester is no end of the tunnels, or there are none."""
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
        """Make the peer for a bed without a gateway: what leaves sealed is opened where it arrives."""
        if bed.ciphertext is None:
            return None
        here = bed.esp_address[ip_version]
        sa = Association(
            spi=0x100 + secrets.randbelow(2**31),
            source=here,
            destination=here,
            suite=_STAND_IN,
            encryption_key=secrets.token_hex(20),
        )
        return EspPeer(bed.ciphertext, [sa], [sa])

    def through(self, streams: Iterable[Stream]) -> list[Stream]:
        """Return the streams, as ESP on the ciphertext side."""
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
        """Return the streams, sealed and opened by the tester alone: an upper bound of what ESP costs it."""
        return [stream.model_copy(update={"seal": self.seal, "open": self.open}) for stream in streams]


def esp_counts(offered: Offered) -> EspCounts | None:
    """Return the counts of the SAs of the tester's port; None if it received no ESP."""
    return next((port.esp for port in offered.ports if port.esp is not None), None)


def leaks(counts: EspCounts | None) -> list[Reason]:
    """Return frames that the tester saw in clear on the ciphertext side."""
    if counts is None or not counts.cleartext:
        return []
    return [Reason.of(Code.SEEN_IN_CLEAR, frames=counts.cleartext)]


def problems(counts: EspCounts | None) -> list[Reason]:
    """Say what shows that the gateway did not encrypt everything, or not each packet exactly once; empty = nothing.

    Damaged packets are not reported here: they are corrupted frames.
    """
    if counts is None:
        return []
    wrong = {Code.SPI_UNKNOWN: counts.unknown_spi, Code.SEQUENCE_REPEATED: counts.repeated + counts.old}
    return leaks(counts) + [Reason.of(code, packets=n) for code, n in wrong.items() if n]
