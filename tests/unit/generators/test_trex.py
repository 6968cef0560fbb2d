# SPDX-License-Identifier: Apache-2.0
"""TRex as a generator, against a server that speaks its protocol: each trap is INVALID with its reason."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from espbench.errors import EspbenchError, GeneratorFailed, UsageError
from espbench.generators import trex, trex_ports, trex_rpc
from espbench.generators.base import FrameShare, Offered, RateStep, Stream
from espbench.generators.trex import TrexGenerator
from espbench.generators.trex_account import Account
from espbench.generators.trex_server import Link
from espbench.measure.validity.faults import tester_faults
from espbench.platforms.base import Port, PortName
from espbench.reporting.parts.statements import flag
from espbench.this_machine.registry import Registry
from support.generators.streams import stream
from support.generators.trex_server import FakeTrex


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counters of the fake are never stale."""
    monkeypatch.setattr(trex, "SETTLED_S", 0.05)
    monkeypatch.setattr(trex, "_COUNTER_POLL_S", 0.01)


def port(name: PortName, **changes: Any) -> Port:
    usual: dict[str, Any] = {
        "name": name, "interface": f"{name}0", "netns": None, "tx_cpus": (0,), "rx_cpu": 0, "mac": "",
        "next_hop_mac": "02:00:00:00:00:11", "address": {4: "198.18.0.2"}, "gateway": {4: "198.18.0.1"},
        "line_rate_bps": 1e9, "mtu": 1500,
    }  # fmt: skip
    return Port(**usual | changes)


BACK = {"id": 1, "from_": "east", "to": "west", "src": "198.19.0.2", "dst": "198.18.0.2"}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry("trex", tmp_path) as made:
        yield made


def opened(registry: Registry, server: FakeTrex, tmp_path: Path) -> TrexGenerator:
    generator = TrexGenerator(registry, tmp_path / "generator.log", server.address)
    generator.open([port("west"), port("east")], [0])
    return generator


def offer(generator: TrexGenerator, *streams: Stream, duration_s: float = 0.2) -> Offered:
    return generator.offer(list(streams) or [stream()], duration_s, 0.0)


def reasons(offered: Offered) -> list[str]:
    return [*map(str, tester_faults(offered, sum(p.rx_overrun for p in offered.ports), {}))]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the host of these tests stand still: no figure of theirs is a time."""
    monkeypatch.setattr(trex, "_UNSEEN_S", 60.0)


def test_a_clean_trial_counts_what_was_sent_and_invents_nothing(registry: Registry, tmp_path: Path) -> None:
    """Counts add up; what TRex cannot tell is absent and named."""
    with FakeTrex() as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator)
        generator.close()
    (one,) = offered.streams
    assert one.tx_frames == one.rx_frames == one.intended_frames == 1000
    assert (one.unsent, one.lost) == (0, 0)
    assert reasons(offered) == []
    absent = (one.corrupted, one.duplicated, one.reordered, one.rx_after_stop, one.drain_s, one.latency_us)
    assert set(absent) == {None}
    assert "latency" in offered.not_measured
    assert "backlog" in offered.not_measured
    assert not offered.stalls_watched
    assert offered.warnings[0].text.startswith("backlog not judged")
    assert [p.owner for p in server.ports] == ["", ""]
    assert all(p.promiscuous for p in server.ports)


def test_both_ways_a_mix_and_loss(registry: Registry, tmp_path: Path) -> None:
    """Each port's frames are its own; sizes keep their proportions; a lost frame is lost."""
    mix = [FrameShare(size=64, weight=7), FrameShare(size=594, weight=4), FrameShare(size=1518, weight=1)]
    with FakeTrex(lose=3) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator, stream(frames=mix), stream(**BACK, rate_fps=2500.0))
        generator.close()
    assert [(s.from_, s.tx_frames, s.lost) for s in offered.streams] == [("west", 1000, 3), ("east", 500, 3)]
    sent = [call["stream"]["mode"] for call in server.asked("add_stream") if call["port_id"] == 0]
    assert [mode["total_pkts"] for mode in sent] == [584, 333, 83]
    assert sum(mode["rate"]["value"] for mode in sent) == pytest.approx(5000)
    assert reasons(offered) == []


def test_a_stretched_trial_is_of_the_load_that_was_offered(registry: Registry, tmp_path: Path) -> None:
    """All frames are sent, in the time they take: to a search that is no fault."""
    with FakeTrex(stretch=2.0) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator, stream(rate_fps=1_000.0), duration_s=1.0)
        generator.close()
    (one,) = offered.streams
    assert (one.tx_frames, one.unsent) == (1000, 0)
    assert offered.duration_s > 1.5 * offered.intended_duration_s
    assert tester_faults(offered, 0, {}, as_offered=True) == []
    assert "instead of 1.000 s" in reasons(offered)[0]  # a test that asked for a load needs exactly that one


def test_where_nobody_looked_when_it_ended_its_load_is_not_known(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that stands still at the end of a trial cannot tell 0.2 s from 0.4 s."""
    monkeypatch.setattr(trex, "_UNSEEN_S", 0.05)
    late = SimpleNamespace(
        monotonic=time.monotonic,
        monotonic_ns=time.monotonic_ns,
        sleep=lambda s: time.sleep(s + (0.3 if s < 0.02 else 0.0)),
    )
    monkeypatch.setattr(trex, "time", late)
    with FakeTrex(stretch=1.5) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator)
        generator.close()
    (fault,) = offered.faults
    assert fault.endswith("how long it took is not known")
    assert any(fault in reason for reason in reasons(offered))


def test_a_trial_that_does_not_end_is_cut_off_and_says_so(registry: Registry, tmp_path: Path) -> None:
    """A thousand times as long is too long: what is left over is unsent, and that is the reason."""
    with FakeTrex(stretch=1000.0) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator, stream(rate_fps=50_000.0))
        generator.close()
    (one,) = offered.streams
    assert one.tx_frames + one.unsent == one.intended_frames == 10_000
    # It sends for less than a second, however long that takes on a host that stands still, and all take 200 s.
    assert 0 < one.tx_frames < 5_500
    assert offered.duration_s >= 1.5 * 0.2 + 0.5
    assert server.asked("stop_traffic")[-1]["port_id"] == 0
    (reason,) = reasons(offered)  # the only one, so that the search comes down
    assert reason.startswith("generator sent ")
    assert "falls behind" in reason


def test_silence_ends_the_wait_only_when_all_is_accounted_for(registry: Registry, tmp_path: Path) -> None:
    """The residue is waited for otherwise; where it need not be, a minute is far more than all else takes."""
    for lose, residue_s in ((0, 60.0), (1, 1.0)):
        with FakeTrex(lose=lose) as server:
            generator = opened(registry, server, tmp_path)
            began = time.monotonic()
            generator.offer([stream()], 0.1, residue_s, quiet_s=0.05)
            assert (time.monotonic() - began > residue_s) == (lose > 0)
            generator.close()


def test_a_flood_ends_at_its_time(registry: Registry, tmp_path: Path) -> None:
    """It has no plan; it is stopped, and its rate is what left in that time."""
    with FakeTrex(stretch=1500.0) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator, stream(rate_fps=None))
        generator.close()
    (one,) = offered.streams
    assert one.intended_frames is None
    assert one.unsent == 0
    assert one.tx_frames / offered.duration_s <= 150e6 / 1500 * 1.01
    assert reasons(offered) == []


def test_frames_the_receiver_had_no_room_for_are_the_testers(registry: Registry, tmp_path: Path) -> None:
    """`ierrors` is TRex's own overflow."""
    with FakeTrex(ierrors=4, lose=4) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator)
        generator.close()
    assert reasons(offered) == ["receiver overrun: 4 frames reached the tester and were dropped there"]


def test_frames_the_port_refused_are_told(registry: Registry, tmp_path: Path) -> None:
    """`oerrors` explains why fewer were sent."""
    with FakeTrex(oerrors=9, stretch=10.0) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator)
        generator.close()
    assert "its ports refused 9 (oerrors)" in reasons(offered)[0]


def test_a_link_that_drops_is_no_loss(registry: Registry, tmp_path: Path) -> None:
    """The trial is INVALID, with the port's name."""
    with FakeTrex(link_down_after_s=0.1) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator, duration_s=0.7)
        server.link_down_after_s = None
        generator.close()
    assert "link of port west (west0) went down during the trial" in reasons(offered)


def test_a_link_that_is_down_is_not_opened(registry: Registry, tmp_path: Path) -> None:
    """Everything would look lost otherwise."""
    with FakeTrex(link_down_after_s=0.0) as server:
        server._began = 0.0
        with pytest.raises(EspbenchError, match=r"port west \(west0\): its link is down"):
            opened(registry, server, tmp_path)


def test_when_nothing_arrives_nothing_is_concluded(registry: Registry, tmp_path: Path) -> None:
    """A dropped link of an AF_PACKET port looks like this."""
    with FakeTrex(lose=10**6) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator)
        generator.close()
    assert "west-east: nothing at all arrived" in reasons(offered)[0]


def test_frames_of_others_make_it_invalid(registry: Registry, tmp_path: Path) -> None:
    """TRex counts whatever comes in."""
    with FakeTrex(foreign=1) as server:
        generator = opened(registry, server, tmp_path)
        offered = offer(generator)
        generator.close()
    assert "more received (1001) than sent (1000)" in reasons(offered)[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"frames": [FrameShare(size=1519)]}, "at most 1518 B (the MTU of west0 is 1500), got 1519 B"),
        ({"burst_frames": 10}, "got a burst back to back"),
        ({"steps": [RateStep(at_s=0.1, rate_fps=1.0)]}, "got one with changes of its rate in mid-trial"),
        ({"tag_at_s": 0.0}, "a tagged frame"),
        ({"ip_version": 6, "src": "2001:2::2", "dst": "2001:2::3", "ports": 2,
          "frames": [FrameShare(size=84)]}, "one flow with IPv6"),
        ({"networks": 256, "ports": 4}, "use 3 ports"),
        ({"frames": [FrameShare(size=63)]}, "at least 64 B, got 63 B"),
    ],
)  # fmt: skip
def test_what_trex_cannot_send_is_refused(
    registry: Registry, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    """The message says what was expected and what came; nothing is sent."""
    with FakeTrex() as server:
        generator = opened(registry, server, tmp_path)
        with pytest.raises(UsageError) as said:
            offer(generator, stream(**changes))
        generator.close()
    assert words in str(said.value)
    assert not server.asked("start_traffic")


def test_what_af_packet_does_is_said_of_it_alone(registry: Registry, tmp_path: Path) -> None:
    """A NIC paces frames and drops what it cannot send; below one a millisecond there is no burst."""
    unseen = "first loss unseen"
    for driver, rate, remarks in (
        ("net_af_packet", 5000.0, ["sent in bursts", unseen]),
        ("net_af_packet", 900.0, [unseen]),
        ("net_ice", 5000.0, []),
    ):
        with FakeTrex(driver=driver) as server:
            generator = opened(registry, server, tmp_path)
            said = [flag(remark) for remark in offer(generator, stream(rate_fps=rate)).warnings]
            assert said == ["backlog not judged", "frames of others count", *remarks]
            generator.close()


def test_a_server_that_is_gone_is_an_error(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes in the middle of a trial, and from then on; closing does not hang."""
    with FakeTrex(dies_at="start_traffic") as server:
        generator = opened(registry, server, tmp_path)
        start = generator._trex.start

        def impatient(name: PortName, rate_fps: float) -> None:
            monkeypatch.setattr(trex_rpc, "TIMEOUT_S", 0.3)
            start(name, rate_fps)

        monkeypatch.setattr(generator._trex, "start", impatient)
        with pytest.raises(EspbenchError, match="no answer to `start_traffic` within"):
            offer(generator)
        with pytest.raises(EspbenchError, match="connection was given up"):
            generator.ping()
        generator.close()


def test_a_server_that_died_is_not_waited_for() -> None:
    """Whoever has started it says so at the first look; as long as it lives, it may be slow."""
    looks: list[int] = []

    def check() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise GeneratorFailed("TRex died")

    client = trex_rpc.TrexClient("127.0.0.1", 9, check=check)
    with pytest.raises(GeneratorFailed, match="TRex died"):
        client.call("ping", timeout_s=600.0)
    with pytest.raises(EspbenchError, match="connection was given up"):
        client.call("ping")
    client.close()


def test_a_server_that_comes_late_is_waited_for() -> None:
    """It is asked before it listens."""
    number = (
        20_000 + os.getpid() % 10_000
    )  # of which the kernel gives nobody one, and no two of us have the same
    made: list[FakeTrex] = []

    def check() -> None:
        if not made:
            made.append(FakeTrex(listen_on=number).__enter__())

    client = trex_rpc.TrexClient("127.0.0.1", number, check=check)
    assert client.call("ping", timeout_s=120.0)["ts"] > 0
    client.close()
    made[0].__exit__(None, None, None)


def test_a_fault_of_the_stand_in_is_not_silence(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test shows the error that ended its thread."""
    server = FakeTrex().__enter__()
    generator = opened(registry, server, tmp_path)

    def faulty(method: str, params: dict[str, Any]) -> Any:
        raise KeyError(method)

    monkeypatch.setattr(server, "_answer", faulty)
    with pytest.raises(EspbenchError, match="no answer to `get_version`"):
        generator._trex._client.call("get_version", timeout_s=0.3)  # type: ignore[union-attr]
    with pytest.raises(KeyError, match="get_version"):
        server.__exit__(None, None, None)
    generator.close()


def test_no_server_at_all_is_an_error(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has its address."""
    monkeypatch.setattr(trex_rpc, "TIMEOUT_S", 0.3)
    generator = TrexGenerator(registry, tmp_path / "log", ("127.0.0.1", 9))
    with pytest.raises(EspbenchError, match=r"TRex at 127.0.0.1:9: no answer to `api_sync_v2`"):
        generator.open([port("west"), port("east")], [])
    generator.close()


def test_another_api_is_named(registry: Registry, tmp_path: Path) -> None:
    """The message has the server's own words and what to use."""
    with (
        FakeTrex(api=("ASTF", 2, 3)) as server,
        pytest.raises(EspbenchError, match=r"API 5.1: .*ASTF 2.3(.|\n)*--stl"),
    ):
        opened(registry, server, tmp_path)


@pytest.mark.parametrize("trap", ["garbage", "wrong_id"])
def test_a_server_of_another_kind_is_told(registry: Registry, tmp_path: Path, trap: str) -> None:
    """Something answers there, but not JSON, or not to what was asked."""
    with (
        FakeTrex(**{trap: True}) as server,  # type: ignore[arg-type]
        pytest.raises(EspbenchError, match="is no TRex server"),
    ):
        opened(registry, server, tmp_path)


def test_the_servers_refusal_is_passed_on(registry: Registry, tmp_path: Path) -> None:
    """The message has method and words."""
    with FakeTrex(refuses={"start_traffic": "required bandwidth exceeds the line"}) as server:
        generator = opened(registry, server, tmp_path)
        with pytest.raises(EspbenchError, match=r"refused `start_traffic`: .*exceeds the line"):
            offer(generator)
        generator.close()


def test_a_busy_server_is_asked_again(registry: Registry, tmp_path: Path) -> None:
    """It says so with an error code of its own."""
    with FakeTrex(busy=2) as server:
        opened(registry, server, tmp_path).close()


def test_anothers_port_is_not_taken(registry: Registry, tmp_path: Path) -> None:
    """But one that an earlier espbench did not release is."""
    with FakeTrex() as server:
        server.ports[1].owner = "hanoch"
        with pytest.raises(EspbenchError, match="port 1 of the server is hanoch's"):
            opened(registry, server, tmp_path)
        server.ports[1].owner = trex_ports.USER
        opened(registry, server, tmp_path).close()


def test_counters_that_are_missing_are_not_zero(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of another version may call them otherwise."""
    with FakeTrex() as server:
        generator = opened(registry, server, tmp_path)
        monkeypatch.setattr(server, "_get_port_stats", lambda number, port: {"opackets": 1})
        with pytest.raises(EspbenchError, match="lack 'ipackets'"):
            offer(generator)
        generator.close()


def test_closing_leaves_nothing(registry: Registry, tmp_path: Path) -> None:
    """Neither in the registry nor on the server; twice is no error."""
    with FakeTrex() as server:
        generator = opened(registry, server, tmp_path)
        generator.close()
        generator.close()
    assert registry.entries == []
    assert [p.owner for p in server.ports] == ["", ""]


def test_the_kernel_is_believed_where_it_can_be_asked() -> None:
    """A refused frame was lost, though TRex offers it again; what it did not read, the tester dropped."""
    counted = trex_ports.Counters(opackets=1000, ipackets=990, ierrors=2, oerrors=0)
    link = Link(up=True, carrier_changes=0, sent=995, refused=20, received=995)
    account = Account.of(counted, link)
    assert (account.sent, account.refused, account.held) == (1015, 20, 5)
    assert (account.received, account.overrun) == (990, 5)
    alone = Account.of(counted, None)
    assert (alone.sent, alone.refused, alone.held, alone.overrun) == (1000, 0, 0, 2)
