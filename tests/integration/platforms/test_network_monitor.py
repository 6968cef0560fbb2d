# SPDX-License-Identifier: Apache-2.0
"""Changes of links and SAs in network namespaces are heard from the real kernel, and void a real trial."""

from __future__ import annotations

import os
import secrets
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase
from espbench.measure.trial import measure
from espbench.platforms import external, placement
from espbench.platforms.external import ExternalPort
from espbench.stacks import netlink_xfrm as xfrm
from espbench.terms import Trial
from espbench.this_machine import network
from espbench.this_machine.link_events import Link, LinkChange
from espbench.this_machine.monitor import NETLINK_XFRM, Monitor
from espbench.this_machine.registry import Registry
from support.gateways.boxes import RouterBox

pytestmark = pytest.mark.root

XFRM_MSG_ALLOCSPI, XFRM_MSG_DELSA = 0x16, 0x11


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Two namespaces joined by a0 and a1, both up."""
    with Registry("t" + secrets.token_hex(3)) as registry:
        here, there = registry.netns("here"), registry.netns("there")
        network.make_veth(here, "a0", there, "a1", 1500)
        network.set_link(here, "a0", up=True)
        network.set_link(there, "a1", up=True)
        yield here, there


def file_of(netns: str) -> str:
    return str(network.NETNS_DIR / netns)


@pytest.mark.untimed
def test_what_is_done_at_the_far_end_is_heard_at_this_one(pair: tuple[str, str]) -> None:
    """The carrier is counted by the kernel, however late it tells of it."""
    here, there = pair
    with Monitor([Link("tester west", "a0", file_of(here))], {}) as monitor:
        network.set_link(there, "a1", up=False)
        network.set_link(there, "a1", up=True)
    recorded = [event.change for event in monitor.link_events()]
    assert recorded in (
        [LinkChange.CARRIER_FLAPPED],
        [LinkChange.CARRIER_LOST, LinkChange.CARRIER_BACK],
    )
    with Monitor([Link("tester west", "a0", file_of(here))], {}) as monitor:
        network.set_link(here, "a0", mtu=1400)
    assert monitor.link_events() == []
    with Monitor([Link("tester west", "a0", file_of(here))], {}) as monitor:
        network.remove_link(there, "a1")
    assert monitor.link_events()[-1].change is LinkChange.REMOVED
    assert monitor.not_heard() == []


@pytest.mark.untimed
def test_what_happens_to_sas_and_policies_is_heard(pair: tuple[str, str]) -> None:
    """Without ESP in the kernel an SA that only has its SPI must do: the kernel tells of it as of any other."""
    here, there = pair
    destination = socket.inet_aton("192.0.2.2") + bytes(12)
    half_made = bytes(56) + destination + struct.pack("!IBxxx", 0, xfrm.IPPROTO_ESP) + bytes(112)
    half_made += struct.pack("=IIIIIHBBB7x", 0, 0, 0, 0, 0, socket.AF_INET, 1, 0, 0)
    spi = 0x1234

    def disturb() -> None:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_XFRM) as kernel:
            kernel.bind((0, 0))
            policy = xfrm.Policy(xfrm.Selector("10.0.0.0/24", "10.1.0.0/24"), "out", action="block")
            ask(kernel, XFRM_MSG_ALLOCSPI, half_made + struct.pack("=II", spi, spi))
            ask(
                kernel,
                XFRM_MSG_DELSA,
                destination + struct.pack("!I", spi) + struct.pack("=HBx", socket.AF_INET, 50),
            )
            for message in (xfrm.new_policy(policy), *xfrm.flush()):
                kernel.send(message)
                kernel.recv(1 << 16)

    def ask(kernel: socket.socket, kind: int, body: bytes) -> None:
        kernel.send(struct.pack("=IHHII", 16 + len(body), kind, 1 | 4, 0, 0) + body)
        answer = kernel.recv(1 << 16)
        _, answered, *_ = struct.unpack_from("=IHHII", answer)
        assert answered != 2 or struct.unpack_from("=i", answer, 16)[0] == 0, struct.unpack_from(
            "=i", answer, 16
        )

    with Monitor([], {"home": file_of(here), "office": file_of(there)}) as monitor:
        network.in_netns(file_of(here), disturb)
    heard = {
        side: [(str(e.change), e.subject) for one in datagrams for e in xfrm.read_events(one.datagram)]
        for side, datagrams in monitor.xfrm_heard().items()
    }
    assert heard["home"][:2] == [
        ("deleted", "SA 0x00001234 to 192.0.2.2"),
        ("added", "policy 10.0.0.0/24 → 10.1.0.0/24"),
    ]
    assert heard["home"][-1] == ("deleted", "all policies")
    assert heard["office"] == []


@pytest.fixture
def setup(tmp_path: Path) -> Iterator[tuple[RouterBox, Setup]]:
    """A router that espbench did not build, and a generator at its ports."""
    with RouterBox() as box, Registry("t" + secrets.token_hex(3)) as registry:
        ports = {
            "west": ExternalPort("a0", "10.0.1.2/24", "10.0.1.1", box.west),
            "east": ExternalPort("a1", "10.0.2.2/24", "10.0.2.1", box.east),
        }
        bed = external.build(
            ports,  # type: ignore[arg-type]
            placement.choose(),
            dut="known-truth",
            i_own_this_network=False,
            line_rate_bps=1e9,
        )
        generator = NativeGenerator(registry, tmp_path / "generator.log")
        opened = generator.open(list(bed.ports.values()), sorted(os.sched_getaffinity(0)))
        for opened_port in opened:
            bed.ports[opened_port["name"]] = replace(bed.ports[opened_port["name"]], mac=opened_port["mac"])
        hops = {
            name: generator.resolve(name, port.address[4], port.gateway[4])
            for name, port in bed.ports.items()
        }
        yield box, Setup(bed, generator, None, hops)


def trial(setup: Setup, *actions: Action) -> Trial:
    return measure(
        setup,
        Traffic(((64, 1),), 4, "one-way"),
        Request(1000, 1.5, "measure"),
        OfCase("test", 0, 0.01),
        Waits(learning_s=0.05, residue_s=0.2, settle_s=0.0),
        actions=actions,
    )


def test_a_link_that_flaps_behind_the_testers_port_voids_the_trial(setup: tuple[RouterBox, Setup]) -> None:
    """The box's own port goes down and up: what it lost then is no answer to the question of its rate."""
    box, made = setup

    def flap() -> dict[str, Any]:
        network.set_link(box.dut, "d1", up=False)
        network.set_link(box.dut, "d1", up=True)
        return {}

    quiet = trial(made)
    assert "network_events" not in quiet.measured
    assert not [reason for reason in quiet.reasons if "link" in reason.text]
    assert quiet.not_measured == []

    flapped = trial(made, Action("flap", 0.5, flap, upsets=False))
    assert flapped.validity == "INVALID"
    assert any(reason.text.startswith("link of tester east, a1: carrier ") for reason in flapped.reasons)
    assert not flapped.disturbed
    event = flapped.measured["network_events"][0]
    assert (event["link"], event["interface"]) == ("tester east", "a1")
    # The kernel tells of a carrier at once, or up to a second later.
    assert 0 < event["at_s"] < 2.5

    meant = trial(made, Action("power cycle", 0.5, flap, breaks_links=True))
    assert meant.measured["network_events"]
    assert not [reason for reason in meant.reasons if "link" in reason.text]
