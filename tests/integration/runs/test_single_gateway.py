# SPDX-License-Identifier: Apache-2.0
"""The tester as the ESP peer of one real gateway (UML): every suite both ways, and all that must not pass.

tester west ── Home ══ ESP ══ tester east
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from espbench.catalogue.suites import suites
from espbench.generators.base import Association, EspCounts, Offered, Stream
from espbench.generators.native import NativeGenerator
from espbench.measure.inputs import esp_peer
from espbench.measure.inputs.esp_peer import EspPeer
from espbench.measure.inputs.setup import Setup, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, decryption, readiness
from espbench.measure.proof.readiness import InClear
from espbench.platforms import capture, placement
from espbench.platforms.base import PortName
from espbench.platforms.netns import NetnsPlatform
from espbench.platforms.uml.uml_platform import UmlPlatform, UmlProfile
from espbench.stacks import netlink_xfrm
from espbench.stacks.base import StackOptions, Tunnel, split
from espbench.stacks.xfrm import Xfrm
from espbench.terms import WITH_FIGURE, Direction, Trial
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.gateways.workshop import trial_of as workshop_trial
from support.plans import pair_plan, write_plan
from support.runs import ENDED, ESPBENCH, rows

# Tests of a trial's validity, of times or of a whole run are marked `alone`.
pytestmark = [pytest.mark.uml, pytest.mark.untimed]

TUNNEL = Tunnel(4, "192.0.2.1", "192.0.2.2", "198.18.0.0/16", "198.19.0.0/16")
TUNNEL_6 = Tunnel(6, "2001:2:0:f::1", "2001:2:0:f::2", "2001:2:0:1000::/52", "2001:2:0:2000::/52")
WAITS = Waits(learning_s=0.05, residue_s=0.3, settle_s=0.0)
IN_COMPANY = Waits(learning_s=0.0, residue_s=1.0, settle_s=0.0)  # frames may have to wait for a CPU
FPS, SECONDS = 1000.0, 0.4
SOME = 200  # at least so many of 400 frames leave
FEW = 20  # at least so many leave in company
ATTEMPTS = 3


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Registry, Setup, Path]]:
    """A gateway, and a generator attached to both of its sides; no stack yet."""
    allowed = os.sched_getaffinity(0)
    logs = tmp_path_factory.mktemp("logs")
    with Registry("t" + secrets.token_hex(3)) as registry:
        placed = placement.choose(gateways=1)
        placement.pin_controller(placed)
        bed = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY).build(
            registry, logs, placed, capture=True, single=True
        )
        assert list(bed.gateways) == ["home"]
        generator = NativeGenerator(registry, logs / "generator.log", esp=True)
        generator.open(list(bed.ports.values()), [])
        hops = {name: port.next_hop_mac or "" for name, port in bed.ports.items()}
        yield registry, Setup(bed, generator, None, hops), logs
    os.sched_setaffinity(0, allowed)


def traffic_of(direction: Direction, size: int = 256, version: int = 4) -> Traffic:
    return Traffic(((size, 1),), version, direction)


def with_stack(
    setup: Setup, suite: str, tunnel: Tunnel = TUNNEL, options: StackOptions | None = None
) -> EspPeer:
    """A tunnel of this suite, established with the whole chain of proof; the tester's end of it."""
    gateway = setup.bed.gateways["home"]
    gateway.netlink(netlink_xfrm.NETLINK_XFRM, netlink_xfrm.flush())
    setup.peer = None
    setup.stack = Xfrm(setup.bed, tunnel, suites()[suite], options or StackOptions())
    traffic = traffic_of("both-ways", version=tunnel.ip_version)
    if len(tunnel.pairs) > 1:
        traffic = replace(traffic, tunnels=len(tunnel.pairs), tunnel_bits=tunnel.bits)
    shown = readiness.establish(setup, traffic)
    assert shown["cleartext blocked, tunnel down"].startswith("0 of ")
    assert setup.stack.security_context()["mismatches"] == []
    assert setup.peer is not None
    return setup.peer


def trial_of(setup: Setup, traffic: Traffic, waits: Waits = WAITS) -> Trial:
    return workshop_trial(setup, traffic, FPS * traffic.directions, SECONDS, waits=waits)


def offer(
    setup: Setup, streams: list[Stream], residue_s: float = 1.0
) -> tuple[Offered, counters.GatewayCounters]:
    """One burst of traffic; what the gateway counted of it."""
    before = counters.read(setup.bed, setup.stack)
    offered = setup.generator.offer(streams, SECONDS, residue_s, quiet_s=0.2)
    return offered, counters.moved(before, counters.read(setup.bed, setup.stack))["home"]


def both_ways(setup: Setup, waits: Waits, version: int = 4) -> list[Trial]:
    """A trial of each operation; each frame is proven and came, and all counts agree."""
    sealed = trial_of(setup, traffic_of("encryption", version=version), waits)
    assert (sealed.proof["proven"], sealed.proof["problems"]) == (True, [])
    assert sealed.gateways["home"].encrypted_frames == sealed.tx_frames == sealed.rx_frames > FEW
    opened = EspCounts.model_validate(sealed.proof["opened by the tester"])
    assert opened == EspCounts(packets=sealed.rx_frames, authentic=sealed.rx_frames)
    unsealed = trial_of(setup, traffic_of("decryption", version=version), waits)
    assert (unsealed.proof["proven"], unsealed.proof["problems"]) == (True, [])
    assert unsealed.gateways["home"].decrypted_frames == unsealed.tx_frames == unsealed.rx_frames > FEW
    assert list(unsealed.per_direction) == ["east-west"]
    return [sealed, unsealed]


@pytest.mark.alone
def test_a_trial_of_each_operation_is_valid(workshop: tuple[Registry, Setup, Path]) -> None:
    """The tester opens what the kernel seals, and the other way round, frame by frame."""
    _, setup, _ = workshop
    with_stack(setup, "aes128gcm16")
    for trial in both_ways(setup, WAITS):
        assert (trial.validity, trial.reasons) == ("VALID", [])
        assert trial.tx_frames > SOME


@pytest.mark.slow
@pytest.mark.parametrize("suite", [name for name in suites() if name != "aes128gcm16"])
def test_each_suite_both_ways(workshop: tuple[Registry, Setup, Path], suite: str) -> None:
    _, setup, _ = workshop
    with_stack(setup, suite)
    both_ways(setup, IN_COMPANY)


@pytest.mark.alone
def test_both_at_once_through_three_tunnels_with_esn(workshop: tuple[Registry, Setup, Path]) -> None:
    """Each frame through its own tunnel's SA, with 64-bit numbers."""
    _, setup, _ = workshop
    options = StackOptions(tunnels=3, esn=True, replay_window=64)
    tunnel = replace(TUNNEL, pairs=split(TUNNEL.west, TUNNEL.east, 3))
    with_stack(setup, "aes128gcm16", tunnel, options)
    traffic = replace(traffic_of("both-ways"), tunnels=3, tunnel_bits=tunnel.bits)
    trial = trial_of(setup, traffic)
    assert (trial.validity, trial.reasons) == ("VALID", [])
    home = trial.gateways["home"]
    there, back = (trial.per_direction[way] for way in ("west-east", "east-west"))
    assert (home.encrypted_frames, home.decrypted_frames) == (there.rx_frames, back.rx_frames)
    assert trial.tx_frames == trial.rx_frames > 2 * SOME


@pytest.mark.slow
def test_ipv6_inside_and_outside(workshop: tuple[Registry, Setup, Path]) -> None:
    _, setup, _ = workshop
    with_stack(setup, "aes128-sha1", TUNNEL_6)
    both_ways(setup, IN_COMPANY, version=6)


@pytest.mark.slow
def test_scapy_opens_what_the_tester_seals(tmp_path: Path) -> None:
    """A second opinion, which shares nothing with the generator or the kernel: each suite, on a pair of ports."""
    with Registry("t" + secrets.token_hex(3)) as registry:
        bed = NetnsPlatform(GATEWAY_TO_GATEWAY).calibration_bed(
            registry, placement.choose(gateways=1), single=True
        )
        bed.capture, bed.capture_netns = bed.ports["west"].interface, bed.ports["west"].netns
        generator = NativeGenerator(registry, tmp_path / "generator.log", esp=True)
        generator.open(list(bed.ports.values()), [])
        for suite in suites().values():
            stack = Xfrm(bed, TUNNEL, suite, StackOptions())
            peer = EspPeer.of(bed, stack)
            assert peer is not None
            hops: dict[PortName, str] = {"east": bed.ports["west"].mac}
            (stream,) = peer.through(traffic_of("decryption").streams(bed, hops, 400.0))
            file = tmp_path / f"{suite.name}.pcap"
            for _ in range(ATTEMPTS):  # in company the capture misses packets now and then
                with capture.capturing(registry, bed, file):
                    sent = generator.offer([stream], 0.05, 5.0, quiet_s=0.2).streams[0].tx_frames
                decrypted = decryption.decrypt(file, stack.secrets(), stream)
                if decrypted["esp"] == sent:
                    break
            counts = (decrypted["esp"], decrypted["decrypted"], decrypted["offered"], decrypted["cleartext"])
            assert (counts, decrypted["problems"]) == ((sent, sent, sent, 0), []), suite.name
            assert sent > 0


@pytest.mark.slow
def test_slow_ciphers_take_no_time_of_the_trial(workshop: tuple[Registry, Setup, Path]) -> None:
    """A burst of 3DES is sealed before it leaves and opened after it came, and each frame's latency is known."""
    _, setup, _ = workshop
    with_stack(setup, "3des-sha1")
    for direction in ("encryption", "decryption"):
        (stream,) = setup.streams(traffic_of(direction, 1424), 1000.0)
        burst = stream.model_copy(update={"burst_frames": 200, "rate_fps": None})
        offered, home = offer(setup, [burst], residue_s=30.0)
        (counted,) = offered.streams
        assert (counted.tx_frames, counted.rx_frames, counted.lost, home.sas.errors) == (200, 200, 0, {})
        if direction == "encryption":
            opened = esp_peer.esp_counts(offered)
            assert opened == EspCounts(packets=200, authentic=200, opened_after=True)
        else:
            assert counted.sealed_before is True
        assert counted.latency_us is not None
        assert 0 < (counted.latency_us.min or 0) <= (counted.latency_us.max or 0) < 31e6
        assert sum(part.rx_frames for part in counted.slices) == 200


def altered(sas: list[Association], **changes: object) -> list[Association]:
    return [sa.model_copy(update=changes) for sa in sas]


@pytest.mark.alone
def test_a_wrong_key_and_a_wrong_spi_are_seen_on_both_sides(workshop: tuple[Registry, Setup, Path]) -> None:
    """Neither the tester nor the gateway takes what the other sealed otherwise."""
    _, setup, _ = workshop
    peer = with_stack(setup, "aes128-sha1")
    other_key = {"integrity_key": secrets.token_hex(20)}
    other_spi = {"spi": 0x7654321}
    for wrong, counted, error in (
        (other_key, "bad_icv", "XfrmInStateProtoError"),
        (other_spi, "unknown_spi", "XfrmInNoStates"),
    ):
        changed = EspPeer("east", altered([*peer.seal], **wrong), altered([*peer.open], **wrong))
        plain = traffic_of("encryption").streams(setup.bed, setup.next_hops, FPS)
        offered, _ = offer(setup, changed.through(plain))
        opened = esp_peer.esp_counts(offered)
        assert opened is not None
        (stream,) = offered.streams
        assert (stream.rx_frames, getattr(opened, counted)) == (0, stream.tx_frames)
        assert stream.tx_frames > SOME
        plain = traffic_of("decryption").streams(setup.bed, setup.next_hops, FPS)
        offered, home = offer(setup, changed.through(plain))
        errors = home.sas.errors
        # An SA of other keys begins at 1: the first numbers are old to the gateway, whatever their ICV.
        old = errors.pop("XfrmInStateSeqError", 0)
        (stream,) = offered.streams
        assert (stream.rx_frames, old <= readiness.PROBE_FRAMES) == (0, True)
        assert errors == {error: stream.tx_frames - old}


@pytest.mark.slow
def test_forged_and_replayed_packets_do_not_pass_and_do_not_disturb(
    workshop: tuple[Registry, Setup, Path],
) -> None:
    """Beside legitimate traffic on the same SA (ipsec-meth 15.2, 15.3): the gateway drops each for its own reason."""
    _, setup, _ = workshop
    with_stack(setup, "aes128gcm16")
    (stream,) = setup.streams(traffic_of("decryption"), FPS)
    offer(setup, [stream], residue_s=30.0)  # beyond the replay window
    for fault, error in (("bad-icv", "XfrmInStateProtoError"), ("replay", "XfrmInStateSeqError")):
        attack = stream.model_copy(update={"id": 1, "rate_fps": FPS / 2, "fault": fault})
        offered, home = offer(setup, [stream, attack], residue_s=5.0)
        legitimate, forged = offered.streams
        good, bad = legitimate.tx_frames, forged.tx_frames
        assert min(good, 2 * bad) > FEW
        assert home.wan.rx_packets == good + bad, home
        assert (home.sas.decrypted, home.sas.errors) == (good, {error: bad}), home
        assert (legitimate.rx_frames, home.lan.tx_packets, forged.rx_frames) == (good, good, 0)


@pytest.mark.alone
def test_cleartext_that_reaches_the_ciphertext_side_is_no_figure(
    workshop: tuple[Registry, Setup, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody deletes the policies: what arrives in clear is told, does not count as received, and is INVALID."""
    _, setup, _ = workshop
    with_stack(setup, "aes128-sha1")
    setup.bed.gateways["home"].netlink(netlink_xfrm.NETLINK_XFRM, netlink_xfrm.flush()[1:])
    with pytest.raises(InClear, match="learning frames: "):
        trial_of(setup, traffic_of("encryption"))
    monkeypatch.setattr("espbench.measure.trial.learn", lambda *_, **__: None)
    trial = trial_of(setup, traffic_of("encryption"))
    assert (trial.rx_frames, trial.validity) == (0, "INVALID")
    clear = trial.tx_frames
    assert trial.proof["opened by the tester"]["cleartext"] == clear > SOME
    assert any(f"{clear} frames reached the tester in clear" in reason.text for reason in trial.reasons)


@pytest.mark.slow
@pytest.mark.alone
def test_a_whole_run_says_which_operation_each_row_is(tmp_path: Path) -> None:
    """Plan and report have both operations beside each other, both proven; no key is on disk."""
    plan = pair_plan(
        "uml",
        topology="single-gateway",
        stacks=["xfrm"],
        capture=True,
        suites=["aes128gcm16"],
        frame_sizes=[256],
    )
    done = subprocess.run(
        [*ESPBENCH, "run", str(write_plan(tmp_path, plan)), "--out", str(tmp_path / "runs")],
        capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip
    assert done.returncode in ENDED, done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert all(row["status"] in WITH_FIGURE for row in rows(run))
    assert [(row["stack"], row["direction"], row["encryption"]) for row in rows(run)] == [
        ("plain", "encryption", "baseline"), ("plain", "decryption", "baseline"),
        ("xfrm", "encryption", "proven"), ("xfrm", "decryption", "proven"),
    ]  # fmt: skip
    assert "Encryption alone and decryption alone" in (run / "report.md").read_text()
    manifest = json.loads((run / "manifest.json").read_text())
    assert "of the middle link decrypt" in json.dumps(manifest["contexts"])
    assert "encryption_key" not in "".join(
        path.read_text(errors="replace")
        for path in run.rglob("*")
        if path.suffix in (".json", ".log", ".jsonl")
    )
