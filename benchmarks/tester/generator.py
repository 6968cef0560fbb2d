# SPDX-License-Identifier: Apache-2.0
"""Measures how fast and how exact the native generator is: its offered rate compared with other generators, its pacing,
and the times at which frames leave if the host stalls the generator and timers are late.

    t1 ── a0 ═══ a1 ── t2        (veth; both ends with NAPI)

Run it as root; `--help` lists the durations that can be shortened. All generators send 64-byte frames from CPU 0, in
turns, on the same link, so that the ratios are right on a busy machine too. The native generator numbers, stamps and
checksums each frame, and verifies each one on arrival; the others send the same bytes again and again to a port that
drops them. Generators that are not installed are left out and named: trafgen (netsniff-ng), testpmd (dpdk-dev), TRex
(TREX_DIR).

The disturbed trials are made without and with a leeway: the share of a trial by which pauses may make it longer before
the sender catches up. In a search, it is half of the resolution.

The exit code is 1 if frames are unsent without a real overload, or leave in bursts (more than 1.1 times the rate in
10 ms). A real overload is a rate above half of the flood's rate on that path, or pauses longer than a trial may be
extended by.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from espbench.generators import trex_server
from espbench.generators.base import longest_s
from espbench.generators.trex import TrexGenerator
from espbench.measure.inputs.traffic import Traffic
from espbench.platforms.base import Port, PortName, Testbed
from espbench.this_machine.registry import Registry

BINARY = Path(__file__).parents[2] / "traffic" / "target" / "release" / "espbench-traffic"
PATHS = ("xdp", "af-xdp", "af-packet")
# The goals of issue 4: the rate of the native generator over XDP, and its ratio to each of the others.
TARGET_FPS = 5e6
TARGETS = {"trafgen": 5, "testpmd af_packet": 10, "testpmd af_xdp": 10, "TRex af_packet": 15}
# After a pause a sender catches up at this multiple of the intended rate (traffic/src/send/pace.rs).
CATCH_UP = 1.1
WINDOW_NS = 10_000_000
LEEWAYS = "0,0.025"  # none, and that of a search with a resolution of 5 %, which is that of plans/quick.yaml
# The share of the flood's rate that a paced trial must carry: there, receivers and senders share a CPU, and the machine
# may have other users.
SURELY_CARRIED = 0.5
TRAFGEN = """{
  0x02, 0, 0, 0, 0, 2,  0x02, 0, 0, 0, 0, 1,  const16(0x0800),
  0x45, 0, const16(46), const16(0), const16(0), 64, 17, csumip(14, 33),
  198, 18, 0, 2,  198, 19, 0, 2,
  const16(49184), const16(7), const16(26), const16(0), fill(0x5a, 18)
}
"""


class Link:
    """A veth pair between two namespaces of its own."""

    def __init__(self) -> None:
        tag = uuid.uuid4().hex[:8]
        self.west, self.east = f"esp-{tag}-w", f"esp-{tag}-e"
        for name in (self.west, self.east):
            run("ip", "netns", "add", name)
            inside(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        ends = ("a0", "netns", self.west, "type", "veth", "peer", "name", "a1", "netns", self.east)
        run("ip", "link", "add", *ends)
        for name, end in ((self.west, "a0"), (self.east, "a1")):
            inside(name, "ethtool", "-K", end, "gro", "on", "tso", "off", "gso", "off")
        for name, end in ((self.west, "a0"), (self.east, "a1")):
            run("ip", "-n", name, "link", "set", end, "up")

    def own_thread(self) -> None:
        """Let the far end receive in a kernel thread of its own, so that the sending core only sends."""
        inside(self.east, "sh", "-c", "echo 1 > /sys/class/net/a1/threaded")

    def sent(self) -> int:
        """Return the number of frames that left a0, including those that a1's full ring refused."""
        return self._counted("packets") + self.refused()

    def refused(self) -> int:
        """Return the number of frames for which a1's ring had no room."""
        return self._counted("dropped")

    def _counted(self, what: str) -> int:
        [link] = json.loads(inside(self.west, "ip", "-j", "-s", "link", "show", "a0"))
        return int(link["stats64"]["tx"][what])

    def close(self) -> None:
        for name in (self.west, self.east):
            subprocess.run(["ip", "netns", "del", name], check=False)


@contextlib.contextmanager
def linked() -> Iterator[Link]:
    """Yield a link, which is removed afterwards."""
    link = Link()
    try:
        yield link
    finally:
        link.close()


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def inside(namespace: str, *command: str) -> str:
    return run("ip", "netns", "exec", namespace, *command)


# The highest priority, in a session of its own, because with autogrouping a nice value counts only inside a session;
# this_machine/launcher.py does the same.
FIRST = ("setsid", "sh", "-c", 'echo -20 > /proc/self/autogroup; exec nice -n -20 "$@"', "sh")


def native(link: Link, seconds: float, *more: str) -> dict[str, Any]:
    """Make one trial with the native generator; return its result event."""
    command = [str(BINARY), "trial", "--json", "--west", f"a0@{link.west}", "--east", f"a1@{link.east}"]
    paced = [*FIRST, *command, "--seconds", str(seconds), "--residue", "0.5", "--tx-cpu", "0"]
    result: dict[str, Any] = json.loads(run(*paced, *more))
    return result


def rate_of(link: Link, seconds: float, command: list[str], settle_s: float) -> float:
    """Run a sender, return the rate at which frames leave the link's west end, frames/s, and kill the sender.

    settle_s: the time for its start.
    """
    process = subprocess.Popen(
        ["nice", "-n", "-20", "ip", "netns", "exec", link.west, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        time.sleep(settle_s)  # it starts up
        before, begin = link.sent(), time.monotonic()
        time.sleep(seconds)
        return (link.sent() - before) / (time.monotonic() - begin)
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # some send from a child that outlives its parent
        process.wait()


def trafgen(link: Link, seconds: float) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write(TRAFGEN)
        config.flush()
        command = ["trafgen", "--no-sock-mem", "-i", config.name, "-o", "a0", "-P1", "-b", "0", "-q", "-t0"]
        return rate_of(link, seconds, command, 0.5)


def testpmd(device: str) -> Callable[[Link, float], float]:
    """Return a function that measures DPDK's testpmd, sending from CPU 0; its main thread is on CPU 1."""

    def measured(link: Link, seconds: float) -> float:
        options = ["-l", "0,1", "--main-lcore", "1", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry"]
        prefix = f"espbench{uuid.uuid4().hex[:6]}"
        forward = ["--forward-mode=txonly", "--txpkts=60", "--nb-cores=1", "--auto-start", "--stats-period=0"]
        command = ["dpdk-testpmd", *options, "--file-prefix", prefix, f"--vdev={device}", "--", *forward]
        try:
            return rate_of(link, seconds, [*command, "--total-num-mbufs=16384"], 3.0)
        finally:
            shutil.rmtree(f"/run/dpdk/{prefix}", ignore_errors=True)
            shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)

    return measured


def trex(link: Link, seconds: float) -> float:
    """Measure TRex, stateless, started on a0 and on an idle second port, on CPU 0; return its rate, frames/s."""
    run("ip", "-n", link.west, "link", "add", "b0", "type", "veth", "peer", "name", "b1")
    for end in ("b0", "b1"):
        run("ip", "-n", link.west, "link", "set", end, "up")
    with tempfile.TemporaryDirectory() as folder, Registry(uuid.uuid4().hex[:6]) as registry:
        generator = TrexGenerator(registry, Path(folder) / "trex.log")
        addresses: dict[PortName, str] = {"west": "198.18.0.2", "east": "198.19.0.2"}
        ports = {
            name: Port(
                name, interface, f"/run/netns/{link.west}", (0,), 0, "02:00:00:00:00:01", "02:00:00:00:00:02",
                {4: addresses[name]}, {}, 0.0, 1500,
            )
            for name, interface in zip(addresses, ("a0", "b0"), strict=True)
        }  # fmt: skip
        generator.open(list(ports.values()), [])
        bed = SimpleNamespace(ports=ports)
        hops: dict[PortName, str] = {"west": "02:00:00:00:00:02"}
        streams = Traffic(((64, 1),), 4, "one-way").streams(cast(Testbed, bed), hops, None)
        offered = generator.offer(streams, seconds, 0.1, quiet_s=0.1)
        return offered.streams[0].tx_frames / offered.duration_s


def others() -> dict[str, Callable[[Link, float], float]]:
    """Return the other generators that are installed here."""
    senders: dict[str, Callable[[Link, float], float]] = {}
    if shutil.which("trafgen"):
        senders["trafgen"] = trafgen
    if shutil.which("dpdk-testpmd"):
        senders["testpmd af_packet"] = testpmd("net_af_packet0,iface=a0,qdisc_bypass=1")
        senders["testpmd af_xdp"] = testpmd("net_af_xdp0,iface=a0,start_queue=0,queue_count=1")
    if trex_server.readiness().ready:
        senders["TRex af_packet"] = trex
    return senders


def compare(seconds: float, rounds: int, *, own_thread: bool) -> dict[str, float]:
    """Flood with 64-byte frames by each generator in turns; print and return each one's median rate, frames/s.

    own_thread: the far end receives on another core.
    """
    print(f"\nthe far end receives on {'a kthread of its own' if own_thread else 'the core that sends'}")
    rates: dict[str, list[float]] = {}
    lost: dict[str, int] = {}
    for _ in range(rounds):
        for path in PATHS:
            with linked() as link:
                if own_thread:
                    link.own_thread()
                flood = ["--size", "64", "--rx-cpu", "1", "--tx", path, "--rx", "xdp"]
                [stream] = native(link, seconds, *flood)["streams"]
                refused = link.refused()
            rates.setdefault(f"native {path}", []).append(stream["tx_frames"] / stream["duration_s"])
            gone = stream["lost"] - refused
            lost[f"native {path}"] = lost.get(f"native {path}", 0) + gone
        for name, measure in others().items():
            with linked() as link:
                if own_thread:
                    link.own_thread()
                rates.setdefault(name, []).append(measure(link, seconds))
    median = {name: statistics.median(of_one) for name, of_one in rates.items()}
    ours = median["native xdp"]
    print(
        f"{'64 B, one sending core':<22} {'offered kfps':>12} {'native xdp is':>14} {'asked for':>10}  lost on the way"
    )
    for name, fps in median.items():
        wanted = (
            f"≥ {TARGETS[name]}×" if name in TARGETS else f"≥ {TARGET_FPS / 1e3:.0f}" if fps == ours else ""
        )
        behind = f"{lost[name]} after the ring took them" if name in lost else "not counted"
        print(f"{name:<22} {fps / 1e3:>12.0f} {ours / fps:>13.1f}× {wanted:>10}  {behind}")
    for name in TARGETS.keys() - median.keys():
        print(f"{name:<22} {'not installed':>12}")
    return median


def missed_pacing(path: str, rate: float, unsent: int, flood_fps: float) -> list[str]:
    """Return the goals that a paced trial misses, in words; flood_fps: the rate of a flood on this path."""
    if not unsent or rate > SURELY_CARRIED * flood_fps:
        return []
    return [f"{path}, {rate:g} frames/s: {unsent} unsent, though {flood_fps:.0f} frames/s can be sent"]


def missed_disturbed(
    where: str, unsent: int, paused_s: float, fastest: float, *, rate: float, seconds: float
) -> list[str]:
    """Return the goals that a disturbed trial misses, in words.

    fastest: the most frames in 10 ms, as a multiple of the intended rate. paused_s: the sum of the sender's pauses.
    """
    missed = []
    if unsent and paused_s <= longest_s(seconds) - seconds:
        missed.append(f"{where}: {unsent} unsent, though the sender paused for only {paused_s:.3f} s")
    # One more frame may fall into a window, because frames are whole.
    if fastest > CATCH_UP + 1e9 / (rate * WINDOW_NS):
        missed.append(f"{where}: a burst of {fastest:.2f} times the rate in 10 ms")
    return missed


def pacing(path: str, rates: list[int], seconds: float, flood_fps: float) -> list[str]:
    """Print the achieved and the intended rates, and the loss to an idle receiver on the same CPU.

    Return the goals that are missed.
    """
    missed = []
    print(f"\npacing, {path}, {seconds:g} s")
    print(
        f"{'intended fps':>12} {'achieved':>10} {'error %':>8} {'sent':>9} {'unsent':>7} {'refused':>7} {'lost':>6}"
        f" {'late µs p50':>11} {'p99':>8} {'p99.9':>8}"
    )
    with linked() as link:
        for rate in rates:
            asked = ["--rate", str(rate), "--rx-cpu", "0", "--watch-cpus", "0", "--tx", path, "--rx", "xdp"]
            result = native(link, seconds, *asked)
            [stream] = result["streams"]
            achieved = stream["tx_frames"] / stream["duration_s"]
            late = stream["lateness_us"]
            print(
                f"{rate:>12} {achieved:>10.1f} {(achieved / rate - 1) * 100:>+8.3f} {stream['tx_frames']:>9}"
                f" {stream['unsent']:>7} {stream['tx_refused']:>7} {stream['lost']:>6}"
                f" {late['p50']:>11.1f} {late['p99']:>8.1f} {late['p999']:>8.1f}"
                f"   host stalls {sum(result['host_stall_ms_total'].values()):.1f} ms"
            )
            missed += missed_pacing(path, rate, stream["unsent"], flood_fps)
    return missed


# The sniffer reads the sending time of each test frame that arrives at a1, ns, from its test header (docs/traffic.md),
# until the sniffer's input ends.
SNIFFER = """
import array, select, socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
raw.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
raw.bind(("a1", 3))
raw.setblocking(False)
left = array.array("Q")
print("ready", flush=True)
while True:
    ready, _, _ = select.select([raw, sys.stdin], [], [])
    try:
        while raw in ready:
            left.append(int.from_bytes(raw.recv(70)[52:58], "big"))
    except BlockingIOError:
        pass
    if ready == [sys.stdin]:
        break
sys.stdout.write(" ".join(map(str, left)))
"""


def disturbed(
    path: str, rate: float, seconds: float, stall_ms: float, slack_ms: float, leeway: float
) -> tuple[str, list[str]]:
    """Return the table's row of one disturbed trial, and the goals that it misses.

    The generator is stopped for stall_ms four times a second, and its timers may be late by slack_ms. leeway: the
    share of the trial for which the sender need not catch up after pauses.
    """
    command = [str(BINARY), "trial", "--json", "--residue", "0.5", "--tx-cpu", "0", "--rx-cpu", "1"]
    asked = ["--seconds", str(seconds), "--rate", str(rate), "--tx", path, "--rx", "af-packet"]
    asked += ["--leeway", str(leeway)]
    with linked() as link:
        where = ["--west", f"a0@{link.west}", "--east", f"a1@{link.east}"]
        with subprocess.Popen(
            ["ip", "netns", "exec", link.east, sys.executable, "-c", SNIFFER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        ) as sniffer:  # fmt: skip
            assert sniffer.stdout is not None
            sniffer.stdout.readline()
            generator = subprocess.Popen(
                [*FIRST[1:], *command, *where, *asked],
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env={**os.environ, "ESPBENCH_TRAFFIC_TIMER_SLACK_NS": str(round(slack_ms * 1e6) or 1)},
            )
            while generator.poll() is None:
                time.sleep(0.25)
                if stall_ms:
                    generator.send_signal(signal.SIGSTOP)
                    time.sleep(stall_ms / 1e3)
                    generator.send_signal(signal.SIGCONT)
            output, _ = generator.communicate()
            heard, _ = sniffer.communicate("")
    [stream] = json.loads(output)["streams"]
    left = sorted(int(text) for text in heard.split())
    most, first = 0, 0
    for last, at in enumerate(left):
        while at - left[first] >= WINDOW_NS:
            first += 1
        most = max(most, last - first + 1)
    gap = max((later - earlier for earlier, later in itertools.pairwise(left)), default=0)
    late = stream["lateness_us"]
    paused = sum(stall["ms"] for stall in stream["tx_stalls"])
    fastest = (most - 1) / (rate * WINDOW_NS / 1e9)
    trial = f"{path}, timers {slack_ms:g} ms late, stalls of {stall_ms:g} ms, leeway {100 * leeway:g} %"
    missed = missed_disturbed(trial, stream["unsent"], paused / 1e3, fastest, rate=rate, seconds=seconds)
    row = (
        f"{path:<10} {slack_ms:>8g} {stall_ms:>8g} {100 * stream['tx_frames'] / stream['intended_frames']:>7.2f}"
        f" {stream['unsent']:>7} {stream['duration_s']:>7.3f}"
        f" {stream['tx_frames'] / stream['duration_s'] / rate:>9.4f}"
        f" {late['p50'] / 1e3:>8.2f} {late['p99'] / 1e3:>7.2f} {late['max'] / 1e3:>7.2f} {gap / 1e6:>7.2f}"
        f" {fastest:>9.3f} {len(stream['tx_stalls']):>6} {paused:>8.1f}"
    )
    return row, missed


def disturbances(
    rate: float, seconds: float, stalls_ms: list[float], slacks_ms: list[float], leeway: float
) -> list[str]:
    """Make and print all disturbed trials with a leeway, on each path to the wire; return the goals that are missed.

    Late timers are tried only on paths whose senders wait for timers.
    """
    missed = []
    print(
        f"\nstalls and coarse timers: {rate:g} frames/s, {seconds:g} s intended, four stalls a second,"
        f" leeway {100 * leeway:g} %"
    )
    print(
        f"{'way':<10} {'timers':>8} {'stalls':>8} {'sent':>7} {'unsent':>7} {'took':>7} {'offered':>9}"
        f" {'late p50':>8} {'p99':>7} {'max':>7} {'longest':>7} {'fastest':>9} {'stalls':>6} {'in all':>8}\n"
        f"{'':<10} {'late, ms':>8} {'of, ms':>8} {'%':>7} {'':>7} {'s':>7} {'/intended':>9}"
        f" {'ms':>8} {'ms':>7} {'ms':>7} {'gap, ms':>7} {'in 10 ms':>9} {'listed':>6} {'ms':>8}"
    )
    for path in ("af-packet", "xdp"):
        for slack_ms in slacks_ms if path != "xdp" else slacks_ms[:1]:
            for stall_ms in stalls_ms:
                row, of_trial = disturbed(path, rate, seconds, stall_ms, slack_ms, leeway)
                print(row, flush=True)
                missed += of_trial
    return missed


def main() -> int:
    """Print all tables; return the exit code: 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each paced trial")
    parser.add_argument("--flood-seconds", type=float, default=3.0, help="length of each flood")
    parser.add_argument("--rounds", type=int, default=3, help="floods of each generator")
    rates = "1000,10000,50000,100000,200000,500000,1000000"
    parser.add_argument("--rates", default=rates, help="intended rates, fps")
    parser.add_argument("--stalls", default="0,1,5,20,50", help="injected stalls, ms")
    parser.add_argument("--slacks", default="0,0.1,1,4", help="how late timers may fire, ms")
    parser.add_argument("--stall-seconds", type=float, default=2.0, help="length of each disturbed trial")
    parser.add_argument("--leeways", default=LEEWAYS, help="leeways of the disturbed trials, shares")
    parser.add_argument("--only-stalls", action="store_true", help="make only the disturbed trials")
    options = parser.parse_args()
    stalls = [float(text) for text in options.stalls.split(",")]
    slacks = [float(text) for text in options.slacks.split(",")]
    missed: list[str] = []
    if not options.only_stalls:
        floods: dict[str, float] = {}
        for own_thread in (False, True):
            floods = compare(options.flood_seconds, options.rounds, own_thread=own_thread)
        for path in ("xdp", "af-packet"):
            rates_fps = [int(rate) for rate in options.rates.split(",")]
            missed += pacing(path, rates_fps, options.seconds, floods[f"native {path}"])
    for leeway in options.leeways.split(","):
        missed += disturbances(4000.0, options.stall_seconds, stalls, slacks, float(leeway))
    print("\n".join(f"missed: {goal}" for goal in missed))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
