# SPDX-License-Identifier: Apache-2.0
"""One trial tells the truth about DUTs that are known to the nanosecond and to the frame.

The DUTs themselves do what they are told. Time is virtual: every figure is exact, whatever the host does.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.generators.base import Gap, Noise, Offered, RateStep, Stream, StreamCounts
from espbench.measure.inputs.setup import Request, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase
from espbench.measure.trial import measure
from espbench.platforms.link_errors import LinkErrors
from support.virtual import truth_dut
from support.virtual.truth_dut import LATENCY_NS, TruthDut, latency_ns, served, wire_ns

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("generator", "gcc")]

S, MS = 10**9, 10**6
IDLE: dict[str, Any] = {"delay_ns": 20_000}


def offer(
    dut: TruthDut, duration_s: float = 1.0, size: int = 64, **stream: Any
) -> tuple[Offered, StreamCounts]:
    """One stream from west to east."""
    noise = stream.pop("noise", ())
    both = Traffic(frames=((size, 1),), ip_version=4, direction="one-way")
    [made] = both.streams(dut.setup.bed, dut.setup.next_hops, stream.pop("rate_fps", 10_000.0))
    asked: list[Stream] = [made.model_copy(update=stream)]
    offered = dut.generator.offer(asked, duration_s, 0.5, quiet_s=0.05, noise=noise)
    [counts] = offered.streams
    return offered, counts


def test_a_fixed_delay(tmp_path: Path) -> None:
    """Every frame arrives after just that time, in both directions."""
    with truth_dut.set_up(tmp_path, **IDLE) as dut:
        traffic = Traffic(frames=((512, 1),), ip_version=4, direction="both-ways")
        streams = traffic.streams(dut.setup.bed, dut.setup.next_hops, 40_000.0)
        offered = dut.generator.offer(streams, 0.5, 0.5, quiet_s=0.05)
        assert dut.counts()["forwarded"] == [10_000, 10_000]
    for s in offered.streams:
        assert s.tx_frames == s.rx_frames == 10_000
        assert {part.min_us for part in s.slices} == {part.mean_us for part in s.slices}
        assert s.slices[0].min_us == latency_ns(512, delay_ns=20_000) / 1e3


@pytest.mark.parametrize("buffer", [1, 100])
def test_a_buffer_of_so_many_frames(tmp_path: Path, buffer: int) -> None:
    """A burst at line rate: lost are those that find it full, no others; and it left at line rate."""
    with truth_dut.set_up(tmp_path, service_ns=10_000, buffer=buffer) as dut:
        _, burst = offer(dut, rate_fps=None, burst_frames=150)
        assert dut.counts()["full"] == [burst.lost, 0]
    done = served([n * 672 for n in range(150)], 10_000, buffer)
    assert (burst.tx_frames, burst.rx_frames) == (150, sum(at is not None for at in done))
    assert burst.departure_fps == pytest.approx(1e9 / 672, rel=1e-12)
    lost = [n for n, at in enumerate(done) if at is None]
    start = burst.first_lost_ns - lost[0] * 672 if burst.first_lost_ns is not None else -1
    assert burst.last_lost_ns == start + lost[-1] * 672


def test_a_service_rate(tmp_path: Path) -> None:
    """A rate at which it just keeps up loses nothing, the least bit more does."""
    with truth_dut.set_up(tmp_path, service_ns=20_000, per_byte_ps=40_000, buffer=10) as dut:
        just = 20_000 + 64 * 40
        assert offer(dut, rate_fps=1e9 / just)[1].lost == 0
        assert offer(dut, rate_fps=1e9 / (just - 5))[1].lost > 0
        assert offer(dut, rate_fps=1e9 / just, size=65)[1].lost > 0


def test_one_of_so_many_is_lost(tmp_path: Path) -> None:
    """Far more episodes than are listed: the times of the first and the last lost frame are exact all the same."""
    with truth_dut.set_up(tmp_path, one_of=7) as dut:
        offered, s = offer(dut, rate_fps=40_000.0)
    assert (s.tx_frames, s.lost) == (40_000, 40_000 // 7)
    assert len(s.loss_episodes) + s.loss_episodes_more == s.lost
    assert s.loss_episodes_more > 4_000
    last = 40_000 // 7 * 7 - 1
    assert (s.first_lost_ns, s.last_lost_ns) == (
        offered.start_ns + 6 * 25_000,
        offered.start_ns + last * 25_000,
    )


def test_the_rate_steps_in_mid_trial(tmp_path: Path) -> None:
    """Each rate makes its frames, each step is at its time, and no frame leaves late."""
    rates = [(0.5, 20_000.0), (1.25, 0.0), (1.5, 50_000.0)]
    steps = [RateStep(at_s=at_s, rate_fps=rate) for at_s, rate in rates]
    with truth_dut.set_up(tmp_path, **IDLE) as dut:
        offered, s = offer(dut, 2.0, rate_fps=80_000.0, steps=steps, gaps_over_s=50e-6)
    assert [
        (p.at_ns - offered.start_ns, p.rate_fps, p.intended_frames, p.tx_frames, p.lost) for p in s.steps
    ] == [
        (0, 80_000, 40_000, 40_000, 0),
        (S // 2, 20_000, 15_000, 15_000, 0),
        (S * 5 // 4, 0, 0, 0, 0),
        (S * 3 // 2, 50_000, 25_000, 25_000, 0),
    ]
    assert (s.intended_frames, s.rx_frames, s.unsent, s.late_frames) == (80_000, 80_000, 0, 0)
    came = offered.start_ns + latency_ns(64, **IDLE)
    # 20,000 frames a second are 50 µs apart, no more: the only pause is the one that was asked for.
    assert s.gaps == [Gap(from_ns=came + S * 5 // 4 - 50_000, to_ns=came + S * 3 // 2)] == [s.longest_gap]
    assert (s.first_rx_ns, s.last_rx_ns) == (came, came + 2 * S - 20_000)
    assert offered.duration_s == 2.0


def test_it_recovers_so_long_after_the_load_fell(tmp_path: Path) -> None:
    """System recovery (RFC 2544, 26.5): from the step down to the last lost frame, to the interval of a frame."""
    recover_ns, service_ns = 200 * MS, 25_000
    steps = [RateStep(at_s=0.5, rate_fps=20_000.0)]
    with truth_dut.set_up(tmp_path, service_ns=service_ns, buffer=64, recover_ns=recover_ns) as dut:
        offered, s = offer(dut, 1.5, rate_fps=44_000.0, steps=steps)
        counts = dut.counts()
        assert offer(dut, rate_fps=40_000.0)[1].lost == 0
    assert counts["recovering"][0] > 0
    assert s.lost == counts["full"][0] + counts["recovering"][0]
    # The last frame at 44,000 frames/s leaves at frame 21,999's time; the load fell then.
    fell_ns = offered.start_ns + int(21_999 * 1e9 / 44_000)
    lost_after = [
        at for n in range(20_000) if (at := offered.start_ns + S // 2 + n * 50_000) < fell_ns + recover_ns
    ]
    assert s.last_lost_ns == lost_after[-1]
    down = s.steps[1]
    assert (down.at_ns, down.lost) == (offered.start_ns + S // 2, len(lost_after))


def test_it_drops_all_for_so_long(tmp_path: Path) -> None:
    """Reset (26.6) and failover: from the last frame before to the first after; lost is what left meanwhile."""
    with truth_dut.set_up(tmp_path, **IDLE) as dut:
        dut.drop_all(0.3, 0.25)
        offered, s = offer(dut, rate_fps=10_000.0, gaps_over_s=0.1)
        assert dut.counts()["outage"] == [2_500, 0]
    came = offered.start_ns + latency_ns(64, **IDLE)
    assert s.lost == 2_500
    assert (s.first_lost_ns, s.last_lost_ns) == (
        offered.start_ns + 300 * MS,
        offered.start_ns + 550 * MS - 100_000,
    )
    assert s.longest_gap == Gap(from_ns=came + 300 * MS - 100_000, to_ns=came + 550 * MS)
    assert s.gaps == [s.longest_gap]
    assert s.longest_gap.seconds == pytest.approx(0.2501)


@pytest.mark.parametrize(("at_s", "lost"), [(0.30001, False), (0.5, True), (2.0, None)])
def test_the_tagged_frame(tmp_path: Path, at_s: float, lost: bool | None) -> None:
    """RFC 2544, 26.2: the first frame that leaves then or later, in the nanosecond; None if it is lost."""
    with truth_dut.set_up(tmp_path, **IDLE, one_of=5001) as dut:
        offered, s = offer(dut, rate_fps=10_000.0, tag_at_s=at_s)
    if lost is None:
        assert s.tagged is None  # nothing left any more
        return
    assert s.tagged is not None
    assert s.tagged.at_ns - offered.start_ns == (500 * MS if lost else 300_100_000)
    assert s.tagged.latency_us == (None if lost else latency_ns(64, **IDLE) / 1e3)


def test_a_burst_at_a_rate(tmp_path: Path) -> None:
    """It has so many frames, no sooner and no later than the rate says."""
    with truth_dut.set_up(tmp_path, **IDLE) as dut:
        offered, s = offer(dut, rate_fps=1_000_000.0, burst_frames=12_345)
        assert dut.counts()["forwarded"] == [12_345, 0]
        _, slow = offer(dut, rate_fps=2_000_000.0, burst_frames=1_000)
    assert (s.intended_frames, s.tx_frames, s.rx_frames, s.late_frames) == (12_345, 12_345, 12_345, 0)
    assert s.departure_fps == pytest.approx(1e6, rel=1e-12)
    assert offered.duration_s == pytest.approx(12_345e-6)
    # Faster than the wire: all leave, and it is told how fast.
    assert slow.tx_frames == 1_000
    assert slow.departure_fps == pytest.approx(1e9 / 672, rel=1e-12)


def packet(length: int) -> bytes:
    """IPv4 of this length to the DUT itself, protocol ESP; its checksum is right."""
    header = bytearray(bytes.fromhex("4500000000000000403200000a0001020a000101"))
    header[2:4] = length.to_bytes(2, "big")
    total = sum(int.from_bytes(header[at : at + 2], "big") for at in range(0, 20, 2))
    header[10:12] = (~(total % 0xFFFF) & 0xFFFF).to_bytes(2, "big")
    return bytes(header) + bytes(n % 251 for n in range(length - 20))


def test_noise_is_in_no_streams_figures(tmp_path: Path) -> None:
    """A flood beside a stream: the DUT gets both, the stream's counts are its own, and it pays for the noise."""
    encoded = [base64.b64encode(packet(length)).decode() for length in (40, 100, 200)]
    noise = Noise(
        id=9, from_="west", rate_fps=0, steps=[RateStep(at_s=0.5, rate_fps=30_000.0)],
        src_mac="02:00:00:00:00:01", dst_mac="02:00:00:00:01:01", packets=encoded,
    )  # fmt: skip
    with truth_dut.set_up(tmp_path, service_ns=25_000, buffer=8) as dut:
        offered, s = offer(dut, rate_fps=20_011.0, noise=[noise])  # not in step with the noise
        counts = dut.counts()
        with pytest.raises(EspbenchError, match="noise 0: the id is used twice"):
            offer(dut, noise=[noise.model_copy(update={"id": 0})])
    [sent] = offered.noise
    assert (sent.intended_frames, sent.tx_frames, sent.unsent) == (15_000, 15_000, 0)
    assert (s.intended_frames, s.tx_frames, s.unsent) == (20_011, 20_011, 0)
    assert counts["forwarded"][0] + counts["full"][0] == 35_011
    assert 0 < s.lost < counts["full"][0]
    # Until the attack begins nothing is lost.
    assert s.first_lost_ns is not None
    assert s.first_lost_ns > offered.start_ns + S // 2
    foreign = {port.name: port.foreign for port in offered.ports}
    assert foreign["east"] == counts["forwarded"][0] - s.rx_frames > 0


def test_a_frame_that_waits_for_the_wire_is_lost_when_it_left(tmp_path: Path) -> None:
    """Every tenth frame finds a longer one of the noise on the wire: departure times are not due times."""
    long = base64.b64encode(packet(1500)).decode()
    noise = Noise(
        id=9, from_="west", rate_fps=1_000.0,
        src_mac="02:00:00:00:00:01", dst_mac="02:00:00:00:01:01", packets=[long],
    )  # fmt: skip
    with truth_dut.set_up(tmp_path, **IDLE) as dut:
        dut.drop_all(0.2, 0.1)
        offered, s = offer(dut, rate_fps=10_000.0, noise=[noise], tag_at_s=0.7)
    waits_ns = wire_ns(1518) + 12 * 8
    assert (s.first_lost_ns, s.last_lost_ns) == (
        offered.start_ns + 200 * MS + waits_ns,
        offered.start_ns + 300 * MS - 100_000,
    )
    assert s.lost == 1_000
    assert s.tagged is not None
    assert s.tagged.at_ns == offered.start_ns + 700 * MS + waits_ns


def test_a_damaged_frame_is_dropped_and_a_late_one_delays_no_other(tmp_path: Path) -> None:
    """A wrong FCS is neither forwarded nor counted, as at any port. Frames are served in the order of arrival."""
    errors = LinkErrors(bit_errors=1e-5, late=0.02, late_ns=MS)
    with truth_dut.set_up(tmp_path, errors=errors, **IDLE) as dut:
        dut.generator.branch([], seed=7)
        offered, s = offer(dut, rate_fps=10_000.0)
        [forwarded, _] = dut.counts()["forwarded"]
    links = {port.name: port.link for port in offered.ports}
    west, east = links["west"], links["east"]
    assert west is not None
    assert east is not None
    assert min(west.damaged, east.damaged) > 10
    assert forwarded == s.tx_frames - west.damaged
    assert (s.lost, s.corrupted) == (west.damaged + east.damaged, 0)
    late = west.late + east.late
    # Ten frames overtake each late one; some are damaged too, or among the last.
    assert s.reordered is not None
    assert 0.9 * late < s.reordered <= late
    assert {part.min_us for part in s.slices} == {latency_ns(64, **IDLE) / 1e3}


def test_each_trial_begins_in_the_same_state(tmp_path: Path) -> None:
    """Trials run through measure(), as in procedures: learning frames, an outage each, equal records."""
    traffic = Traffic(frames=((64, 1),), ip_version=4, direction="one-way")
    with truth_dut.set_up(tmp_path, service_ns=1_000, buffer=4) as dut:
        dut.drop_all(0.2, 0.1)
        records = [
            measure(
                dut.setup,
                traffic,
                Request(load_fps=10_000.0, duration_s=0.5, phase="search"),
                OfCase("c", number, 0.01),
                Waits(0.1, 0.2, 0),
            )
            for number in range(2)
        ]
    first, second = (record.model_dump(exclude={"sequence", "host"}) for record in records)
    assert first == second
    assert (records[0].validity, records[0].lost) == ("VALID", 1_000)


def test_what_the_dut_does_not_know_is_said(tmp_path: Path) -> None:
    with truth_dut.set_up(tmp_path) as dut:
        for line in ("delay=7", "delay_ns=x", "delay_ns"):
            with pytest.raises(AssertionError, match="not understood"):
                dut.generator.ask_dut(line)
        dut.set(delay_ns=MS)
        _, s = offer(dut)
    assert s.slices[0].min_us == (latency_ns(64) + MS) / 1e3
    assert latency_ns(64) == 2 * (wire_ns(64) + LATENCY_NS)
