# SPDX-License-Identifier: Apache-2.0
"""Compares a computed accelerator without DMA with the measured one: which is faster for which size of blocks?

The CPU writes keys and data into the registers of the computed accelerator, eight bytes an access, and reads the
results: first for the cipher, then for the hash. Both take the SEC's own cycles. No document says how long an access
takes, so the answer is the range of access times with which a claim holds.
"""

from __future__ import annotations

from espbench.catalogue.board_crypto import DEFAULT
from espbench.claims.model import Claim, LowLevel
from espbench.claims.our_value import OurValue, lacking, statement
from espbench.claims.points import Points
from espbench.claims.wording import sizes_in_words

_ACCESS_BYTES = 8
_PASSES = 3  # of the data: into the cipher, out of it, into the hash


def low_level(m: LowLevel, claim: Claim, measured: Points) -> OurValue:
    """Return whether there are access times with which the claim is true, and which."""
    sizes = {m.small, m.large} if m.what == "crossover" else {m.small}
    ours = {
        a.size: a
        for a in sorted(
            measured.accelerator, key=lambda a: a.operations
        )  # the last one stays: of several runs, the one with most operations
        if (a.dut, a.crypto, a.suite) == (claim.dut(m), DEFAULT, m.suite)
        and a.size in sizes
        and not a.variant.words
    }
    if absent := sorted(sizes - ours.keys()):
        return lacking(f"{claim.dut(m)}: accelerator test of {m.suite} at {sizes_in_words(absent)}")
    small = ours[m.small]
    if m.what == "none":
        least = max(0.0, _access_ns(m, m.small, small.at_once_ns / small.operations))
        text = f"from accesses of {least:.0f} ns on, if the CPU's time for the driver did not count"
        return statement((), text, holds=least < m.longest_access_ns)
    large = ours[m.large]
    least = max(0.0, _access_ns(m, m.large, large.after_ns / large.operations))
    most = min(m.longest_access_ns, _access_ns(m, m.small, small.after_ns / small.operations))
    text = f"with accesses of {least:.0f} to {most:.0f} ns" if least < most else "with no time of an access"
    return statement((), text, holds=least < most)


def _access_ns(m: LowLevel, size: int, time_ns: float) -> float:
    """Return the access time, ns, with which the computed accelerator takes time_ns for a block."""
    accesses = m.set_up + _PASSES * size / _ACCESS_BYTES
    return (time_ns - size * m.ns_per_byte) / accesses
