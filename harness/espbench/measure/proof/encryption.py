# SPDX-License-Identifier: Apache-2.0
"""Judges whether every frame that crossed was encrypted, and which counters show a frame that was not.

A trial without proof of encryption is repeated. A verdict of cleartext is final (docs/method.md, rule 1), so it rests
only on counters that are not in doubt.
"""

from __future__ import annotations

from espbench.generators.base import Offered
from espbench.measure.inputs import esp_peer
from espbench.measure.inputs.setup import Setup
from espbench.measure.proof import one_gateway, path
from espbench.measure.proof.counters import Counters
from espbench.terms import Reason


def problems(setup: Setup, offered: Offered, delta: Counters, *, fragments: bool) -> list[Reason]:
    """Return why it is not proven that each frame that crossed was encrypted; empty if it is proven."""
    books = one_gateway if setup.bed.ciphertext else path
    crossings = books.crossings(offered, delta, tester_rings=setup.bed.tester_rings)
    found = [p for c in crossings for p in books.proof_of_encryption(c, fragments=fragments)]
    if offered.noise and not fragments:
        found += path.left_under_attack(delta)
    return found + esp_peer.problems(esp_peer.esp_counts(offered))


def tester_in_doubt(offered: Offered) -> bool:
    """Return whether the generator's counts of frames outside of trials may be wrong."""
    return (
        bool(offered.faults)
        or counts_others(offered)
        or any(stream.rx_frames > stream.tx_frames for stream in offered.streams)
    )


def counts_others(offered: Offered) -> bool:
    """Return whether frames of others on the wire may be among the frames received, as with TRex's counters of ports.

    Each such frame can hide a loss, so what arrived is then no evidence of a leak.
    """
    return any(port.foreign is None for port in offered.ports)


def leaks(
    setup: Setup,
    offered: Offered,
    delta: Counters,
    *,
    fragments: bool,
    tester_in_doubt: bool = False,
    gateways_in_doubt: bool = False,
) -> list[Reason]:
    """Return the reasons to believe that frames crossed in clear; empty if there are none.

    tester_in_doubt: the generator's counts may be wrong; then only the gateways' own counters are compared with each
    other. gateways_in_doubt: the gateways' counters may be wrong. A frame that the tester itself received in clear is
    always a leak.
    """
    seen = esp_peer.leaks(esp_peer.esp_counts(offered))
    if gateways_in_doubt:
        return seen
    books = one_gateway if setup.bed.ciphertext else path
    shown = books.leaks_by_gateways if tester_in_doubt or counts_others(offered) else books.leaks
    crossings = books.crossings(offered, delta, tester_rings=setup.bed.tester_rings)
    return [p for c in crossings for p in shown(c, fragments=fragments)] + seen
