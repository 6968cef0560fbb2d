# SPDX-License-Identifier: Apache-2.0
"""Lists the stacks that a plan may name, with the facts that the checks of a plan need."""

from __future__ import annotations

from dataclasses import dataclass

NULL_SUITE = "null-null"  # the one suite of the stack `null`
# pluto cannot keep an SA for ever; this is the longest lifetime that it accepts (ipsec.conf(5), salifetime), s.
PLUTO_KEEPS_S = 86_400


@dataclass(frozen=True)
class StackFacts:
    """Facts about a stack that hold wherever it runs.

    daemon: the IKE daemon that negotiates for the stack, whose `version` or `prefix` a plan may choose; empty if
    nothing negotiates. kernel_esp: the kernel's ESP (XFRM) carries the traffic. largest_packet: the largest cleartext
    IP packet that the stack carries whatever the MTU, bytes, and the reason. longest_lifetime_s: of an SA before it is
    rekeyed. closes_idle: the daemon can delete SAs without traffic. boards_only: the stack exists only in the kernel of
    emulated boards.
    """

    description: str
    encrypts: bool = True
    kernel_esp: bool = True
    daemon: str = ""
    largest_packet: tuple[int, str] | None = None
    longest_lifetime_s: int | None = None
    closes_idle: bool = False
    boards_only: bool = False

    @property
    def ike(self) -> bool:
        """True if the stack negotiates its SAs with IKEv2."""
        return bool(self.daemon)


STACKS = {
    "plain": StackFacts(
        "no IPsec, the same routes and selectors: the baseline, always measured first",
        encrypts=False,
        kernel_esp=False,
    ),
    "null": StackFacts(
        "static SAs that neither encrypt nor authenticate (ESP NULL/NULL): the best case of any ESP"
    ),
    "xfrm": StackFacts(
        "static Security Associations in the kernel's own IPsec, XFRM (the articles' NetKey); no IKE"
    ),
    "lean-esp": StackFacts(
        "static SAs in an ESP of espbench's own with as little code as can be: a bound on emulated boards, no product",
        kernel_esp=False,
        # This size fits with every suite that a board has.
        largest_packet=(1438, "it does not fragment what is longer than the link once encrypted"),
        boards_only=True,
    ),
    "strongswan": StackFacts(
        "strongSwan's charon negotiates (IKEv2), the kernel's ESP carries the traffic",
        daemon="strongswan",
        closes_idle=True,
    ),
    "libreswan": StackFacts(
        "libreswan's pluto negotiates (IKEv2), the kernel's ESP carries the traffic; successor of OpenSwan",
        daemon="libreswan",
        # The rest, a tenth of this, is left for the rekeying itself.
        longest_lifetime_s=PLUTO_KEEPS_S * 10 // 11,
    ),
    "strongswan-libipsec": StackFacts(
        "strongSwan with ESP in user space (libipsec, a TUN device), always inside UDP",
        kernel_esp=False,
        daemon="strongswan",
        # kernel-libipsec gives its device this MTU at the start, and its read buffer this size.
        largest_packet=(1400, "charon reads at most 1400 B from its TUN device"),
    ),
}

# Any two of these stacks can negotiate with each other, both for the kernel's ESP.
INTEROPERABLE = tuple(name for name, facts in STACKS.items() if facts.ike and facts.kernel_esp)
BASELINES = ("plain", "null")
