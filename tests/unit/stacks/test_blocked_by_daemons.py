# SPDX-License-Identifier: Apache-2.0
"""Cleartext is blocked when a daemon gets its connections, even if its start deleted the kernel's policies."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.catalogue.suites import suites
from espbench.platforms.base import SIDES, Side, Testbed
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks import policies
from espbench.stacks.base import SaCounters, Tunnel
from espbench.stacks.daemons.daemon import IkeOptions
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.strongswan.charon import StrongSwan
from espbench.stacks.strongswan.user_space import UserSpaceStack

TUNNEL = Tunnel(4, "192.0.2.1", "192.0.2.2", "198.18.0.0/16", "198.19.0.0/16")


@dataclass
class Kernel:
    """Holds policies, as a gateway's kernel does: a second one for a selector is refused."""

    side: Side
    byte_order: str = "little"
    held: list[bytes] = field(default_factory=list)

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        return [self._answer(message) for message in messages]

    def _answer(self, message: bytes) -> list[bytes]:
        (kind,) = struct.unpack_from("<H", message, 4)
        if kind == xfrm.GETPOLICY:
            return list(self.held)
        if kind == xfrm.FLUSHPOLICY:
            self.held.clear()
        if kind == xfrm.NEWPOLICY:
            assert message not in self.held, "File exists"
            self.held.append(message)
        return []


@dataclass
class Daemon:
    """Deletes all policies when it starts, as pluto 5 does, or leaves them; remembers what its connections met."""

    kernel: Kernel
    deletes: bool
    met: list[bytes] = field(default_factory=list)

    def start(self) -> None:
        if self.deletes:
            policies.flush(cast(Any, self.kernel))

    def load(self) -> None:
        self.met = list(self.kernel.held)


def stack_of(kind: type[IkeStack], *, deletes: bool) -> tuple[IkeStack, dict[Side, Daemon]]:
    """Return a stack with two such daemons, of which none runs yet."""
    kernels = {side: Kernel(side) for side in SIDES}
    daemons = {side: Daemon(kernels[side], deletes) for side in SIDES}
    bed = cast(Testbed, SimpleNamespace(gateways=kernels, virtual_time=False))
    made = kind("exact", bed, TUNNEL, suites()["aes128gcm16"], IkeOptions(), cast(Any, daemons))
    return made, daemons


@pytest.mark.parametrize("deletes", [True, False])
@pytest.mark.parametrize("side", SIDES)
def test_the_block_is_there_before_the_connections(side: Side, deletes: bool) -> None:
    """A policy that is still there is not installed twice, which a kernel refuses."""
    stack, daemons = stack_of(IkeStack, deletes=deletes)
    stack.block()
    stack.start(side)
    expected = [xfrm.new_policy(policy, "little") for policy in policies.floor(side, TUNNEL)]
    assert sorted(daemons[side].met) == sorted(expected)


def test_esp_in_user_space_is_blocked_by_a_route_alone() -> None:
    stack, daemons = stack_of(UserSpaceStack, deletes=False)
    stack.start("home")
    assert daemons["home"].met == []


@pytest.mark.parametrize("deletes", [True, False])
def test_a_gateway_that_boots_in_a_trial_is_blocked_from_its_guard_on(*, deletes: bool) -> None:
    """Frames are waiting for it: no policy is missing while its daemon is brought and started."""
    stack, daemons = stack_of(IkeStack, deletes=deletes)
    kernel = daemons["home"].kernel
    expected = sorted(xfrm.new_policy(policy, "little") for policy in policies.floor("home", TUNNEL))
    held_at_install: list[bytes] = []
    daemons["home"].install = lambda: held_at_install.extend(kernel.held)  # type: ignore[attr-defined]
    stack.guard("home")
    stack.revive("home")
    assert sorted(held_at_install) == expected
    assert sorted(daemons["home"].met) == expected


def test_charons_spis_are_those_of_its_child_sas_and_of_their_ike_sas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rekey of either replaces some of them."""
    child = {"spi-in": "c0000001", "spi-out": "c0000002", "packets-in": "3", "packets-out": "4"}
    ike = {
        "initiator-spi": "00000000000000aa",
        "responder-spi": "00000000000000bb",
        "child-sas": {"t-1": child},
    }
    charon = StrongSwan(cast(Any, None), cast(Any, None), cast(Any, None))
    monkeypatch.setattr(charon, "_sas", lambda: [ike])
    counts = charon.sa_counters()
    assert (counts.encrypted, counts.decrypted) == (4, 3)
    assert counts.spis == {0xC0000001, 0xC0000002, 0xAA, 0xBB}
    monkeypatch.setattr(charon, "_sas", lambda: [ike | {"child-sas": {}}])
    assert charon.sa_counters() == SaCounters()
