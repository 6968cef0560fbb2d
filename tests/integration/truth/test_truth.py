# SPDX-License-Identifier: Apache-2.0
"""The rules of measurement, biting: on real gateways a leak, a stall or a lie makes a trial INVALID."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from espbench.catalogue.suites import suites
from espbench.errors import EspbenchError
from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.setup import Setup, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import decryption, readiness
from espbench.platforms import capture, external, placement
from espbench.platforms.uml.uml_platform import UmlPlatform, UmlProfile
from espbench.sentences import Code
from espbench.stacks import netlink_xfrm
from espbench.stacks.base import StackOptions, Tunnel
from espbench.stacks.xfrm import Xfrm
from espbench.terms import Trial
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.gateways.boxes import RouterBox
from support.gateways.workshop import trial_of as workshop_trial

pytestmark = pytest.mark.uml

CPUS = sorted(os.sched_getaffinity(0))
TUNNEL = Tunnel(4, "192.0.2.1", "192.0.2.2", "198.18.0.0/16", "198.19.0.0/16")
TRAFFIC = Traffic(((256, 1),), 4, "one-way")
WAITS = Waits(learning_s=0.05, residue_s=0.3, settle_s=0.0)


def trial_of(
    setup: Setup, fps: float, seconds: float, traffic: Traffic = TRAFFIC, attempts: int = 12
) -> Trial:
    return workshop_trial(setup, traffic, fps, seconds, waits=WAITS, attempts=attempts)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Registry, Setup, Path]]:
    """A UML pair whose middle link can be captured, and a generator attached; no stack yet."""
    logs = tmp_path_factory.mktemp("logs")
    with Registry("t" + secrets.token_hex(3)) as registry:
        placed = placement.choose()
        placement.pin_controller(placed)
        bed = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY).build(registry, logs, placed, capture=True)
        generator = NativeGenerator(registry, logs / "generator.log")
        generator.open(list(bed.ports.values()), sorted({c for cpus in placed.cpus.values() for c in cpus}))
        hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
        yield registry, Setup(bed, generator, None, hops), logs
    os.sched_setaffinity(0, CPUS)


def with_stack(setup: Setup, suite: str) -> Xfrm:
    """A tunnel of this suite, established with the whole chain of proof."""
    for gateway in setup.bed.gateways.values():
        gateway.netlink(netlink_xfrm.NETLINK_XFRM, netlink_xfrm.flush())
    stack = Xfrm(setup.bed, TUNNEL, suites()[suite], StackOptions())
    setup.stack = stack
    shown = readiness.establish(setup, TRAFFIC)
    assert shown["cleartext blocked, tunnel down"].startswith("0 of ")
    return stack


def test_scapy_decrypts_the_middle_link_and_finds_the_offered_frames(
    workshop: tuple[Registry, Setup, Path],
) -> None:
    """An implementation that shares nothing with the kernel's opens every captured packet.

    It opens the other suites in stacks/test_xfrm_options.py.
    """
    registry, setup, logs = workshop
    with_stack(setup, "aes128gcm16")
    capturing = partial(capture.capturing, registry, setup.bed)
    sample = decryption.sample(setup, TRAFFIC, logs / "honest.pcap", capturing)
    assert int(sample["captured sample"].split()[0]) >= decryption.SAMPLE_FRAMES
    assert "none in clear" in sample["captured sample"]


def test_scapy_does_not_accept_wrong_keys(workshop: tuple[Registry, Setup, Path]) -> None:
    """Nothing decrypts with one bit of the key flipped: the check can fail."""
    registry, setup, logs = workshop
    stack = with_stack(setup, "aes128gcm16")
    honest = stack.secrets

    def forged() -> list[dict[str, object]]:
        return [
            {**sa, "encryption_key": f"{int(sa['encryption_key'], 16) ^ (1 << 80):040x}"} for sa in honest()
        ]

    stack.secrets = forged  # type: ignore[method-assign]
    with pytest.raises(EspbenchError, match="'decrypted': 0"):
        decryption.sample(
            setup, TRAFFIC, logs / "forged.pcap", partial(capture.capturing, registry, setup.bed)
        )


def test_an_honest_tunnel_is_proven_frame_by_frame(workshop: tuple[Registry, Setup, Path]) -> None:
    """The trial's record has as many frames encrypted and decrypted as sent and received."""
    _, setup, _ = workshop
    with_stack(setup, "aes128-sha1")
    trial = trial_of(setup, 1000, 0.5)
    assert trial.proof["proven"] is True
    assert trial.gateways["home"].encrypted_frames == trial.tx_frames == 500
    assert trial.gateways["office"].decrypted_frames == trial.rx_frames
    assert (trial.gateways["home"].cpu_us_per_frame or 0) > 0


def test_frames_that_cross_in_clear_make_the_trial_invalid(
    workshop: tuple[Registry, Setup, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody deletes the policies: everything still arrives, nothing is encrypted, nothing counts."""
    _, setup, _ = workshop
    with_stack(setup, "aes128-sha1")
    for gateway in setup.bed.gateways.values():
        gateway.netlink(netlink_xfrm.NETLINK_XFRM, netlink_xfrm.flush()[1:])
    with pytest.raises(readiness.InClear, match=r"learning frames: .* 10 frames left home, it encrypted 0"):
        trial_of(setup, 1000, 0.5)
    monkeypatch.setattr("espbench.measure.trial.learn", lambda *_, **__: None)
    trial = trial_of(setup, 1000, 0.5)
    assert trial.rx_frames == trial.tx_frames
    assert trial.validity == "INVALID"
    assert trial.violated
    assert any(reason.code == Code.NOT_PROVEN for reason in trial.reasons)


def test_frames_that_cross_in_clear_while_the_tunnel_is_set_up_are_a_leak(
    workshop: tuple[Registry, Setup, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The captured sample shows them, the SAs do not count them, and a block that does not hold is found."""
    registry, setup, logs = workshop
    stack = with_stack(setup, "aes128-sha1")
    for gateway in setup.bed.gateways.values():
        gateway.netlink(netlink_xfrm.NETLINK_XFRM, netlink_xfrm.flush()[1:])
    capturing = partial(capture.capturing, registry, setup.bed)
    with pytest.raises(readiness.InClear, match=r"frames crossed in clear \(clear\.pcap\)"):
        decryption.sample(setup, TRAFFIC, logs / "clear.pcap", capturing)
    with pytest.raises(readiness.InClear, match="its SAs counted 0 encrypted and 0 decrypted"):
        readiness.carried(setup, replace(TRAFFIC, direction="both-ways"))
    monkeypatch.setattr(stack, "block", lambda: None)
    with pytest.raises(readiness.InClear, match="cleartext is not blocked"):
        readiness.establish(setup, TRAFFIC)


def test_a_tunnel_that_is_not_up_is_not_measured(workshop: tuple[Registry, Setup, Path]) -> None:
    """Keys that differ between the gateways: the message says that nothing arrives, and which error counts."""
    _, setup, _ = workshop
    with_stack(setup, "aes128-sha1")
    stack = Xfrm(setup.bed, TUNNEL, suites()["aes128-sha1"], StackOptions())
    other = Xfrm(setup.bed, TUNNEL, suites()["aes128-sha1"], StackOptions())
    stack.block()
    for side, keys in (("home", stack), ("office", other)):
        messages = [netlink_xfrm.new_sa(sa) for sa in keys._sas.values()]
        setup.bed.gateways[side].netlink(netlink_xfrm.NETLINK_XFRM, messages)  # type: ignore[index]
    setup.stack = stack
    trial = trial_of(setup, 1000, 0.2)
    assert trial.rx_frames == 0
    assert trial.loss_at == {"office xfrm XfrmInNoStates": trial.tx_frames}


def test_loss_at_the_first_port_is_booked_there(workshop: tuple[Registry, Setup, Path]) -> None:
    """A flood overflows Home's tap: the places add up to the loss, and most of it is at the first port."""
    _, setup, _ = workshop
    with_stack(setup, "3des-sha1")
    trial = trial_of(setup, 200_000, 0.5, Traffic(((1424, 1),), 4, "one-way"))
    booked = {place: n for place, n in trial.loss_at.items() if place != "generator, not sent"}
    assert trial.lost > 0
    assert sum(booked.values()) == trial.lost
    assert max(booked, key=lambda place: booked[place]) == "first port into home"


SPIN = """
import time
print("ready", flush=True)
time.sleep({after_s})
end = time.monotonic() + {for_s}
while time.monotonic() < end:
    pass
"""


@contextlib.contextmanager
def stall(cpu: int, after_s: float, for_s: float) -> Iterator[None]:
    """Run nothing but real-time work on this CPU for a while, as when the hypervisor takes it away.

    The program is ready when the context begins: it would start late beside the generator's sender, which has priority.
    """
    spin = [sys.executable, "-c", SPIN.format(after_s=after_s, for_s=for_s)]
    command = ["chrt", "-f", "50", "taskset", "-c", str(cpu), *spin]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as spinner:
        assert spinner.stdout is not None
        assert spinner.stdout.readline() == "ready\n"
        yield
        assert spinner.wait() == 0


def test_loss_in_a_stall_of_the_host_is_not_the_duts(tmp_path: Path) -> None:
    """The DUT's CPU stands still for 80 ms and its ring overflows: INVALID, not lost by the DUT."""
    cpu = CPUS[-1]
    with RouterBox() as box, Registry("t" + secrets.token_hex(3)) as registry:
        box.give_own_threads(cpu)
        given = box.plan()["ports"]
        ports = {name: external.ExternalPort(**given[name]) for name in ("west", "east")}
        bed = external.build(
            ports,  # type: ignore[arg-type]
            placement.choose(gateways=False, allowed=set(CPUS)), dut="box", i_own_this_network=False, line_rate_bps=1e9,
        )  # fmt: skip
        generator = NativeGenerator(registry, tmp_path / "generator.log")
        opened = {p["name"]: p for p in generator.open(list(bed.ports.values()), [cpu])}
        hops = {}
        for name, port in list(bed.ports.items()):
            bed.ports[name] = type(port)(**(vars(port) | {"mac": opened[name]["mac"]}))
            hops[name] = generator.resolve(name, port.address[4], port.gateway[4])
        setup = Setup(bed, generator, None, hops)
        assert trial_of(setup, 20_000, 0.3).rx_frames > 0
        # A busy machine may starve the sender: that is another reason, not this one. And the kernel may give the
        # box's threads their share of the CPU in the midst of the stall (its server for fair tasks).
        for _ in range(8):
            with stall(cpu, after_s=0.7, for_s=0.08):
                trial = trial_of(setup, 20_000, 1.5, attempts=1)  # it is to be disturbed
            if trial.lost > 256 and trial.disturbed:
                break
    assert trial.lost > 256
    assert trial.validity == "INVALID"
    assert any("host stall" in reason.text for reason in trial.reasons), trial.reasons
    assert trial.host["lost_in_stalls"] == trial.lost
