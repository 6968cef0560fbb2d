# SPDX-License-Identifier: Apache-2.0
"""The native generator in virtual time, against a gateway whose every nanosecond is known: results are exact.

    generator ── west ── mirror ── east ── generator        (links in shared memory; harness/emulator/LINK.md)

The mirror is C and shares its half of the protocol with the QEMU device; no QEMU, root or network is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.generators import native
from support.generators.wire import Generator
from support.virtual.truth_dut import LATENCY_NS, wire_ns

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "harness" / "emulator" / "qemu" / "mirror.c"
PATIENCE_S = 120  # only ends a hang

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("generator", "gcc")]


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("mirror") / "mirror"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", "-std=gnu11", "-O2", *warnings, "-o", program, SOURCE], check=True)
    return program


class Rig(Generator):
    """A generator, a mirror, and the links between them; everything ends with it."""

    def __init__(
        self,
        program: Path,
        *,
        service_ns: int,
        delay_ns: int,
        queue: int,
        mbps: int = 1000,
        errors: dict[str, list[str]] | None = None,
    ) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="esplink-"))
        self.links = {name: self.folder / name for name in ("west", "east")}
        for name, link in self.links.items():
            options = ["--mbps", str(mbps), "--latency-ns", str(LATENCY_NS), *(errors or {}).get(name, [])]
            subprocess.run([native.binary(), "link", link, *options], check=True)
        numbers = [str(number) for number in (service_ns, delay_ns, queue)]
        pipe = subprocess.PIPE
        command: list[str | Path] = [program, *self.links.values(), *numbers]
        self.mirror = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        ports = [{"name": name, "link": str(link)} for name, link in self.links.items()]
        self.opened = self.ask({"cmd": "open", "ports": ports})

    def trial(self, *streams: dict[str, Any], **more: Any) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.trial_line(*streams, **more))
        return event

    def trial_line(self, *streams: dict[str, Any], **more: Any) -> str:
        asked = {"cmd": "trial", "id": "1", "duration_s": 1.0, "residue_s": 0.5, "quiet_s": 0.05}
        return self.line({**asked, "streams": streams, **more})

    def end(self) -> dict[str, Any]:
        """Close the generator's ports; what the mirror says it did."""
        self.ask({"cmd": "close"})
        out, errors = self.mirror.communicate(timeout=PATIENCE_S)
        assert self.mirror.returncode == 0, errors
        said: dict[str, Any] = json.loads(out)
        return said

    def close(self) -> None:
        """End both, however the test has left them."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)
        self.process.stdout.close()
        if self.mirror.poll() is None:
            self.mirror.kill()
        self.mirror.communicate()
        shutil.rmtree(self.folder)


@pytest.fixture
def rigs(mirror: Path) -> Iterator[Any]:
    made: list[Rig] = []

    def make(**known: Any) -> Rig:
        made.append(Rig(mirror, **known))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


def stream(size: int = 64, number: int = 0, **more: Any) -> dict[str, Any]:
    """West to east, or back for an odd number."""
    ends = [("west", "198.18.0.2", "02:00:00:00:00:01"), ("east", "198.19.0.2", "02:00:00:00:00:02")]
    (start, src, src_mac), (stop, dst, dst_mac) = ends if number % 2 == 0 else reversed(ends)
    addresses = {"src": src, "dst": dst, "src_mac": src_mac, "dst_mac": dst_mac, "ip_version": 4}
    flow = {"src_port": 49184, "dst_port": 7, "frames": [{"size": size}], **addresses}
    return {"id": number, "from": start, "to": stop, **flow, **more}


def latency_us(size: int, service_ns: int, delay_ns: int, mbps: int = 1000) -> float:
    """Return the time from a frame's first bit leaving to its last arriving, by way of an idle mirror."""
    return (2 * (wire_ns(size, mbps) + LATENCY_NS) + service_ns + delay_ns) / 1e3


def served(arrivals: list[int], service_ns: int, queue: int) -> list[int]:
    """Return when the mirror is done with each frame that it does not drop."""
    done: list[int] = []
    for now in arrivals:
        if sum(1 for at in done[-queue:] if at > now) < queue:
            done.append(max(now, done[-1] if done else 0) + service_ns)
    return done


def test_every_frame_arrives_at_its_nanosecond(rigs: Any) -> None:
    rig = rigs(service_ns=5_000, delay_ns=20_000, queue=64)
    result = rig.trial(stream(512, rate_fps=40_000.0))
    [way] = result["streams"]
    assert (way["tx_frames"], way["rx_frames"], way["lost"]) == (40_000, 40_000, 0)
    assert (way["unsent"], way["late_frames"], way["duplicated"], way["reordered"]) == (0, 0, 0, 0)
    assert way["duration_s"] == 1.0
    expected = latency_us(512, 5_000, 20_000)
    assert way["latency_us"]["min"] == pytest.approx(expected, rel=1e-3)  # three digits, as HdrHistogram has
    assert way["latency_us"]["max"] == pytest.approx(expected, rel=1e-3)
    assert [part["rx_frames"] for part in way["slices"]] == [2_000] * 20
    assert {part["min_us"] for part in way["slices"]} == {expected}  # these are exact
    assert way["drain_s"] == pytest.approx(expected / 1e6, abs=1e-12)
    assert [(port["foreign"], port["rx_overrun"]) for port in result["ports"]] == [(0, 0)] * 2
    assert rig.end() == {"forwarded": 40_000, "dropped": 0}


@pytest.mark.parametrize("queue", [1, 64])
def test_what_a_slow_gateway_drops_is_lost_to_the_frame(rigs: Any, queue: int) -> None:
    """One frame each 25 µs, one served each 40 µs: what finds the queue full is lost."""
    rig = rigs(service_ns=40_000, delay_ns=0, queue=queue)
    [way] = rig.trial(stream(64, rate_fps=40_000.0))["streams"]
    served_at = served([number * 25_000 for number in range(40_000)], 40_000, queue)
    assert way["rx_frames"] == len(served_at)
    assert way["lost"] == 40_000 - len(served_at)
    assert sum(episode["frames"] for episode in way["loss_episodes"]) <= way["lost"]
    last_leaves = 39_999 * 25_000
    after = sum(1 for at in served_at if at + 2 * (wire_ns(64) + LATENCY_NS) > last_leaves)
    assert way["rx_after_stop"] == after
    assert rig.end() == {"forwarded": len(served_at), "dropped": way["lost"]}


@pytest.mark.parametrize("mbps", [1000, 100, 10])
@pytest.mark.parametrize("size", [64, 1518])
def test_a_flood_leaves_at_line_rate(rigs: Any, mbps: int, size: int) -> None:
    """Line rate includes preamble and gap (RFC 2544, 20): 148,809 frames/s of 64 bytes at 100 Mbps."""
    rig = rigs(service_ns=100, delay_ns=0, queue=64, mbps=mbps)
    result = rig.trial(stream(size), duration_s=0.1)
    [way] = result["streams"]
    each_ns = (8 + size + 12) * 8_000 // mbps
    assert way["tx_frames"] / way["duration_s"] == pytest.approx(1e9 / each_ns, rel=1e-12)
    assert way["tx_frames"] == -(-100_000_000 // each_ns)  # those that begin within its duration
    assert way["lost"] == 0
    assert rig.opened["ports"][0]["speed_mbps"] == mbps


def test_more_than_the_line_rate_is_unsent(rigs: Any) -> None:
    rig = rigs(service_ns=100, delay_ns=0, queue=64, mbps=100)
    [way] = rig.trial(stream(64, rate_fps=200_000.0), duration_s=0.1)["streams"]
    assert way["intended_frames"] == 20_000
    assert way["tx_frames"] + way["unsent"] == 20_000
    assert way["tx_frames"] == -(-100_100_000 // 6_720)
    assert way["late_frames"] > 10_000


def test_both_ways_share_the_server(rigs: Any) -> None:
    rig = rigs(service_ns=10_000, delay_ns=0, queue=4)
    there, back = rig.trial(stream(64, 0, rate_fps=40_000.0), stream(64, 1, rate_fps=40_000.0))["streams"]
    # The two arrive together; the one of link b waits for the other.
    assert (there["rx_frames"], back["rx_frames"]) == (40_000, 40_000)
    assert {part["min_us"] for part in there["slices"]} == {latency_us(64, 10_000, 0)}
    assert {part["min_us"] for part in back["slices"]} == {latency_us(64, 20_000, 0)}


def test_a_burst_leaves_back_to_back(rigs: Any) -> None:
    rig = rigs(service_ns=10_000, delay_ns=0, queue=100)
    [way] = rig.trial(stream(64, burst_frames=200))["streams"]
    assert way["tx_frames"] == 200
    assert way["rx_frames"] == len(served([number * 672 for number in range(200)], 10_000, 100))
    assert way["duration_s"] == pytest.approx(200 * 672e-9)


def test_the_gateway_is_found_and_asked(rigs: Any) -> None:
    rig = rigs(service_ns=1, delay_ns=0, queue=1)
    asked = {"cmd": "resolve", "port": "east", "address": "10.0.2.2", "gateway": "10.0.2.1"}
    assert rig.ask(asked)["mac"] == "02:00:00:00:01:02"
    question = {"cmd": "console", "port": "west", "line": "how are you", "until": "{", "timeout_s": 1}
    lines = rig.ask(question)
    # Typed after the millisecond that resolving took; 50 µs on its way.
    assert json.loads(lines["lines"][-1]) == {"line": "how are you", "at_ns": 1_050_000}
    assert lines["now_ns"] == 2_000_000
    silent = rig.ask({**question, "line": None, "timeout_s": 0.25})
    assert "within 0.25 s of virtual time" in silent["message"]


def test_a_trial_can_be_stopped(rigs: Any) -> None:
    rig = rigs(service_ns=1, delay_ns=0, queue=1)
    asked = {"cmd": "trial", "id": "long", "duration_s": 80_000.0, "streams": [stream(64, rate_fps=1_000.0)]}
    rig.process.stdin.write(json.dumps(asked) + "\n")
    result = rig.ask({"cmd": "stop"})
    assert result["stopped_early"]
    assert result["streams"][0]["unsent"] > 0
    assert rig.trial(stream(64, rate_fps=1_000.0))["streams"][0]["lost"] == 0  # the next one is whole


def burn() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def test_two_runs_are_the_same_to_the_byte_on_a_busy_host(rigs: Any) -> None:
    def run() -> list[str]:
        rig = rigs(service_ns=11_111, delay_ns=7_777, queue=17)
        console = {"cmd": "console", "port": "west", "line": "x", "until": "{", "timeout_s": 1}
        streams = (stream(64, 0, rate_fps=61_234.5), stream(1024, 1, rate_fps=43_210.9))
        lines = [rig.line(console), rig.trial_line(*streams, id="a"), rig.trial_line(*streams, id="b")]
        return [*lines, json.dumps(rig.end())]

    first = run()
    burning = [burn() for _ in range(2 * (os.cpu_count() or 1))]
    try:
        second = run()
    finally:
        for process in burning:
            process.kill()
            process.wait()
    assert first == second
    assert json.loads(first[1])["streams"][0]["lost"] > 0  # there was something to differ in


def test_each_branch_begins_in_the_same_state(rigs: Any) -> None:
    """The next branch has nothing that a trial left behind, here a queue and the time of day."""
    rig = rigs(service_ns=11_111, delay_ns=7_777, queue=17)
    asked = {"cmd": "console", "port": "west", "line": "x", "until": "{", "timeout_s": 1}
    rig.ask(asked)
    streams = (stream(64, 0, rate_fps=61_234.5), stream(1024, 1, rate_fps=43_210.9))
    seen = []
    for seconds in (0.01, 0.02, 0.01):
        assert rig.ask({"cmd": "branch"}) == {"event": "branched", "now_ns": 1_000_000}
        seen.append([rig.trial_line(*streams, duration_s=seconds), rig.line(asked)])
    assert seen[0] == seen[2]
    assert seen[0] != seen[1]
    assert sorted(path.name for path in rig.folder.iterdir()) == ["east", "west"]  # no copy is left behind


def test_copies_made_anew_begin_where_the_guests_booted(rigs: Any) -> None:
    """A case leaves nothing to the next one: it has a copy of the guests, of which its trials have copies."""
    asked = {"cmd": "console", "port": "west", "line": "x", "until": "{", "timeout_s": 1}
    anew = {"cmd": "branch", "anew": True}

    def case(rig: Rig, load_fps: float) -> list[str]:
        """Tell what a case is answered that asks the gateway once, and makes the same trial twice."""
        told = [rig.line(asked)]
        for _ in range(2):
            told.append(rig.line({"cmd": "branch"}))
            told.append(rig.trial_line(stream(64, rate_fps=load_fps), duration_s=0.01))
        return [*told, rig.line(asked)]

    rig, fresh = (rigs(service_ns=11_111, delay_ns=7_777, queue=17) for _ in range(2))
    for each in (rig, fresh):
        each.ask(asked)
    seen = []
    for load_fps in (95_123.4, 91_234.5, 95_123.4):
        assert rig.ask(anew) == {"event": "branched", "now_ns": 1_000_000}
        seen.append(case(rig, load_fps))
    assert seen[0] == seen[2] == case(fresh, 95_123.4)
    assert seen[0][2] == seen[0][4] != seen[1][2]
    assert json.loads(seen[0][2])["streams"][0]["lost"] > 0
    assert sorted(path.name for path in rig.folder.iterdir()) == ["east", "west"]


ERRING = {
    "west": ["--lose", "0.01", "--late", "0.05", "--late-ns", "60000"],
    "east": ["--flip", "1e-6", "--late", "0.02", "--late-ns", "3000"],
}


def test_what_links_lose_damage_and_delay_is_what_the_trial_finds(rigs: Any) -> None:
    """Both ends of both links: the generator's, and the gateway's, whose program is C."""
    rig = rigs(service_ns=1_000, delay_ns=0, queue=64, errors=ERRING)
    rig.ask({"cmd": "branch", "seed": 11})
    both = (stream(512, 0, rate_fps=40_000.0), stream(512, 1, rate_fps=40_000.0))
    result = rig.trial(*both)
    links = {port["name"]: port["link"] for port in result["ports"]}
    both = result["streams"]
    lost = sum(way["lost"] for way in both)
    assert lost == sum(link["lost"] + link["damaged"] for link in links.values())
    # Both directions together have 80,000 frames; the tolerances are four standard deviations.
    assert links["west"]["lost"] == pytest.approx(800, abs=4 * 28)
    assert links["east"]["damaged"] == pytest.approx(80_000 * 512 * 8 * 1e-6, abs=4 * 18)
    assert links["west"]["late"] == pytest.approx(4_000, abs=4 * 62)
    assert (links["east"]["lost"], links["west"]["damaged"]) == (0, 0)
    # A frame each 25 us: one that is 60 us late comes behind two others, one that is 3 us late behind none.
    for way in both:
        assert 0.03 < way["reordered"] / way["rx_frames"] < 0.06
        assert way["corrupted"] == 0
        assert way["latency_us"]["max"] > latency_us(512, 1_000, 0) + 60


def test_which_frames_err_is_the_seeds(rigs: Any) -> None:
    rig = rigs(service_ns=1_000, delay_ns=0, queue=64, errors=ERRING)
    seen = []
    for seed in (11, 12, 11):
        rig.ask({"cmd": "branch", "seed": seed})
        seen.append(rig.trial_line(stream(512, rate_fps=40_000.0), duration_s=0.05))
    assert seen[0] == seen[2]
    assert json.loads(seen[0])["streams"][0]["lost"] > 0
    assert seen[0] != seen[1]


def test_nothing_errs_outside_of_branches(rigs: Any) -> None:
    """Gateways are set up there."""
    rig = rigs(service_ns=1_000, delay_ns=0, queue=64, errors=ERRING)
    [way] = rig.trial(stream(512, rate_fps=40_000.0), duration_s=0.05)["streams"]
    assert (way["lost"], way["reordered"]) == (0, 0)


def test_a_peer_that_dies_is_named(rigs: Any) -> None:
    rig = rigs(service_ns=1, delay_ns=0, queue=1)
    rig.trial(stream(64, rate_fps=1_000.0), duration_s=0.01)
    rig.mirror.send_signal(signal.SIGKILL)
    rig.mirror.wait()
    failed = rig.trial(stream(64, rate_fps=1_000.0))
    assert failed["event"] == "error"
    assert f"process {rig.mirror.pid} at its other end died at virtual time 0." in failed["message"]
    assert str(rig.links["west"]) in failed["message"]


def test_a_generator_that_dies_ends_the_gateway(rigs: Any) -> None:
    rig = rigs(service_ns=1, delay_ns=0, queue=1)
    rig.trial(stream(64, rate_fps=1_000.0), duration_s=0.01)
    rig.process.send_signal(signal.SIGKILL)
    rig.process.wait()
    _, errors = rig.mirror.communicate(timeout=PATIENCE_S)
    assert rig.mirror.returncode == 1
    assert "the process at its other end died" in errors


def test_mistakes_are_told(rigs: Any, tmp_path: Path) -> None:
    rig = rigs(service_ns=1, delay_ns=0, queue=1)
    again = subprocess.run(
        [native.binary(), "link", rig.links["west"]], capture_output=True, text=True, check=False
    )
    assert again.returncode == 1
    assert "a file that does not exist yet" in again.stderr
    other = Generator()

    def refused(*ports: dict[str, Any]) -> str:
        event = other.ask({"cmd": "open", "ports": ports})
        assert event["event"] == "error", event
        return str(event["message"])

    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(bytes(9_000))
    assert f"process {rig.process.pid} has end 0" in refused({"name": "a", "link": str(rig.links["west"])})
    assert "it is no link" in refused({"name": "a", "link": str(rubbish)})
    middle = tmp_path / "middle"
    subprocess.run([native.binary(), "link", middle, "--step-ns", "25000"], check=True)
    assert "exchange promises each 25000 ns" in refused({"name": "a", "link": str(middle)})
    assert "No such file" in refused({"name": "a", "link": str(tmp_path / "nothing")})
    assert "one of interface and link" in refused({"name": "a", "link": str(rubbish), "interface": "eth0"})
    rig.end()
    assert "end 0 was used before" in refused({"name": "a", "link": str(rig.links["west"])})
    other.close()
