# SPDX-License-Identifier: Apache-2.0
"""The stacks a plan may name, and what its checks need to know of each."""

from __future__ import annotations

from dataclasses import dataclass

NULL_SUITE = "null-null"  # the one suite of the stack `null`


@dataclass(frozen=True)
class StackFacts:
    """What is true of a stack wherever it runs.

    daemon is the IKE daemon that negotiates for it, whose `version` or `prefix` a plan may choose;
    empty where nothing negotiates. kernel_esp: the kernel's ESP (XFRM) carries the traffic.
    """

    description: str
    encrypts: bool = True
    kernel_esp: bool = True
    daemon: str = ""

    @property
    def ike(self) -> bool:
        """Whether it negotiates its SAs with IKEv2."""
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
    "strongswan": StackFacts(
        "strongSwan's charon negotiates (IKEv2), the kernel's ESP carries the traffic", daemon="strongswan"
    ),
    "libreswan": StackFacts(
        "libreswan's pluto negotiates (IKEv2), the kernel's ESP carries the traffic; successor of OpenSwan",
        daemon="libreswan",
    ),
    "strongswan-libipsec": StackFacts(
        "strongSwan with ESP in user space (libipsec, a TUN device), always inside UDP",
        kernel_esp=False,
        daemon="strongswan",
    ),
}

# Two daemons that negotiate with each other, both for the kernel's ESP.
INTEROPERABLE = tuple(name for name, facts in STACKS.items() if facts.ike and facts.kernel_esp)
BASELINES = ("plain", "null")
