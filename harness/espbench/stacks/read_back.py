# SPDX-License-Identifier: Apache-2.0
"""Compares the SAs and policies in a gateway's kernel with those of the plan: a difference makes the case INVALID."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from espbench.catalogue.suites import Suite
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import StackOptions
from espbench.stacks.xfrm_devices import XFRM_IF_ID

_ICMPV6 = "protocol 58"
_IN_UDP = f"{xfrm.UDP_ENCAP_PORT} → {xfrm.UDP_ENCAP_PORT}"


def expected_algorithms(suite: Suite) -> dict[str, str]:
    """Return a suite's algorithms in the form of `SaReading.algorithms`."""
    expected = {}
    if suite.encryption:
        expected["encryption"] = f"{suite.encryption.kernel_name}, {suite.encryption.key_bits} bit key"
    for name, algorithm in (("integrity", suite.integrity), ("aead", suite.aead)):
        if algorithm:
            sizes = f"{algorithm.key_bits} bit key, {algorithm.icv_bits} bit ICV"
            expected[name] = f"{algorithm.kernel_name}, {sizes}"
    return expected


def sa_mismatches(
    sa: xfrm.SaReading, suite: Suite, options: StackOptions, *, inbound: bool, by_daemon: bool = False
) -> list[str]:
    """Return the differences between an SA in the kernel and the plan.

    The replay window is compared for inbound SAs only, because outbound SAs do not use it (RFC 4303 3.4.3). by_daemon:
    a daemon made the SA and decided whether DSCP is copied to the outer header; its choice is in the Security Context.
    """
    problems = []
    wanted, got = expected_algorithms(suite), sa.algorithms
    if wanted != got:
        problems.append(f"suite: expected {_listed(wanted)}, the kernel has {_listed(got)}")
    facts: list[tuple[str, object, object]] = [
        ("mode", options.mode, sa.mode),
        ("ESN", options.esn, sa.esn),
        ("UDP encapsulation", _IN_UDP if options.udp_encapsulation else "", sa.udp_encapsulation),
        ("interface", XFRM_IF_ID if options.interface else 0, sa.interface_id),
        ("extras", "", ", ".join(sa.extras)),
    ]
    if inbound:
        facts.append(("replay window", options.replay_window, sa.replay_window))
    elif options.mode == "tunnel":
        facts.append(("DF copied to the outer header", options.df == "copy", sa.copy_df))
    if not by_daemon:
        facts.append(("DSCP copied to the outer header", True, sa.copy_dscp))
    problems += [
        f"{what}: expected {_shown(a)}, the kernel has {_shown(b)}" for what, a, b in facts if a != b
    ]
    return problems


def lifetime_mismatches(sa: xfrm.SaReading, lifetime_bytes: int) -> list[str]:
    """Return a problem if Home does not replace the SA after lifetime_bytes; a daemon may choose up to a fifth less."""
    if lifetime_bytes * 4 // 5 <= sa.octets_soft <= lifetime_bytes:
        return []
    return [f"bytes until it is rekeyed: expected {lifetime_bytes}, the kernel has {sa.octets_soft}"]


def policy_mismatches(
    expected: Iterable[xfrm.Policy], held: Iterable[xfrm.PolicyReading], *, by_daemon: bool = False
) -> list[str]:
    """Return a problem for each policy that is missing, and for each that was not expected.

    by_daemon: a daemon made the policies with ESP. Then their priorities and request ids are the daemon's choice, and
    its policies that let Neighbour Discovery pass are ignored.
    """

    def comparable(policy: xfrm.PolicyReading) -> xfrm.PolicyReading:
        own_choice = by_daemon and policy.demands not in ("block", "nothing")
        return replace(policy, priority=0, reqid=0) if own_choice else policy

    wanted = {comparable(xfrm.reading_of(policy)) for policy in expected}
    present = {comparable(policy) for policy in held if not (by_daemon and _neighbour_discovery(policy))}
    missing = [f"policy {policy} is not there" for policy in wanted - present]
    return missing + [f"unknown policy {policy}" for policy in present - wanted]


def _neighbour_discovery(policy: xfrm.PolicyReading) -> bool:
    return policy.demands == "nothing" and policy.selector.endswith(_ICMPV6)


def _shown(value: object) -> str:
    return "none" if value == "" else str(value)


def _listed(algorithms: dict[str, str]) -> str:
    return "; ".join(algorithms.values()) or "none"
