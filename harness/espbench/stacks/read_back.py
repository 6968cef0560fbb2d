# SPDX-License-Identifier: Apache-2.0
"""What a gateway's kernel holds against what was asked for: a difference makes the case INVALID."""

from __future__ import annotations

from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks.base import StackOptions
from espbench.stacks.suites import Suite


def expected_algorithms(suite: Suite) -> dict[str, str]:
    """A suite as netlink_xfrm.read_sa words the algorithms of an SA."""
    found = {}
    if suite.encryption:
        found["encryption"] = f"{suite.encryption.kernel_name}, {suite.encryption.key_bits} bit key"
    for name, algorithm in (("integrity", suite.integrity), ("aead", suite.aead)):
        if algorithm:
            sizes = f"{algorithm.key_bits} bit key, {algorithm.icv_bits} bit ICV"
            found[name] = f"{algorithm.kernel_name}, {sizes}"
    return found


def sa_mismatches(sa: xfrm.SaReading, suite: Suite, options: StackOptions, *, inbound: bool) -> list[str]:
    """One SA; only an inbound one checks replays (RFC 4303 3.4.3), so only its window counts."""
    problems = []
    wanted, got = expected_algorithms(suite), sa.algorithms
    if wanted != got:
        problems.append(f"suite: expected {_listed(wanted)}, the kernel has {_listed(got)}")
    facts: list[tuple[str, object, object]] = [
        ("mode", options.mode, sa.mode),
        ("ESN", options.esn, sa.esn),
        ("UDP encapsulation", options.udp_encapsulation, bool(sa.udp_encapsulation)),
        ("route-based", options.interface, bool(sa.interface_id)),
    ]
    if inbound:
        facts.append(("replay window", options.replay_window, sa.replay_window))
    elif options.mode == "tunnel":
        facts.append(("DF copied to the outer header", options.df == "copy", sa.copy_df))
    problems += [f"{what}: expected {a}, the kernel has {b}" for what, a, b in facts if a != b]
    return problems


def _listed(algorithms: dict[str, str]) -> str:
    return "; ".join(algorithms.values()) or "none"
