# SPDX-License-Identifier: Apache-2.0
"""How fast and how exact is the native generator? Prints its offered rate against trafgen's, and its pacing.

    t1 ── a0 ═══ a1 ── t2        (veth; a1 receives on its own NAPI kthread in the first part)

Run as root; `--help` lists what can be shortened. Both generators send 64-byte
frames from one core, in turns, on the same link, so that the ratio holds on a busy machine too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

BINARY = Path(__file__).parents[1] / "traffic" / "target" / "release" / "espbench-traffic"
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
        run(
            "ip",
            "link",
            "add",
            "a0",
            "netns",
            self.west,
            "type",
            "veth",
            "peer",
            "name",
            "a1",
            "netns",
            self.east,
        )
        run("ip", "-n", self.west, "link", "set", "a0", "up")
        run("ip", "-n", self.east, "link", "set", "a1", "up")

    def own_thread(self) -> None:
        """Let the far end receive on a kthread of its own, so that the sender pays for sending only."""
        inside(self.west, "ethtool", "-K", "a0", "tso", "off", "gso", "off")
        inside(self.east, "ethtool", "-K", "a1", "gro", "on")
        inside(self.east, "sh", "-c", "echo 1 > /sys/class/net/a1/threaded")

    def sent(self) -> int:
        """Frames that left a0, and those that a1's full ring refused."""
        [link] = json.loads(inside(self.west, "ip", "-j", "-s", "link", "show", "a0"))
        return int(link["stats64"]["tx"]["packets"]) + int(link["stats64"]["tx"]["dropped"])

    def close(self) -> None:
        for name in (self.west, self.east):
            subprocess.run(["ip", "netns", "del", name], check=False)


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def inside(namespace: str, *command: str) -> str:
    return run("ip", "netns", "exec", namespace, *command)


def native(link: Link, seconds: float, *more: str) -> dict[str, Any]:
    command = [str(BINARY), "trial", "--json", "--west", f"a0@{link.west}", "--east", f"a1@{link.east}"]
    result: dict[str, Any] = json.loads(run(*command, "--seconds", str(seconds), "--tx-cpu", "0", *more))
    return result


def trafgen(link: Link, seconds: float) -> float:
    """Frames per second of trafgen sending from CPU 0."""
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write(TRAFGEN)
        config.flush()
        command = ["trafgen", "--no-sock-mem", "-i", config.name, "-o", "a0", "-P1", "-b", "0", "-q", "-t0"]
        process = subprocess.Popen(
            ["ip", "netns", "exec", link.west, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            time.sleep(0.5)  # it starts up
            before, begin = link.sent(), time.monotonic()
            time.sleep(seconds)
            rate = (link.sent() - before) / (time.monotonic() - begin)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # it sends from a child that outlives its parent
            process.wait()
    return rate


def compare(seconds: float, rounds: int) -> None:
    """Offered rate at 64 bytes, in turns with trafgen."""
    link = Link()
    try:
        link.own_thread()
        ours, theirs = [], []
        for _ in range(rounds):
            [stream] = native(link, seconds, "--size", "64", "--rx-cpu", "1")["streams"]
            ours.append(stream["tx_frames"] / stream["duration_s"])
            theirs.append(trafgen(link, seconds))
    finally:
        link.close()
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"offered, 64 B, one sending core: {mine / 1e3:.0f} kfps; trafgen {other / 1e3:.0f} kfps")
    print(f"  ratio to trafgen {mine / other:.2f}; to the target of 800 kfps {mine / 800e3:.2f}")


def pacing(rates: list[int], seconds: float) -> None:
    """Achieved against intended rate, and loss to an idle receiver on the same CPU."""
    print(
        f"{'intended fps':>12} {'achieved':>10} {'error %':>8} {'sent':>9}"
        f" {'unsent':>7} {'lost':>6} {'late p99 µs':>12}"
    )
    link = Link()
    try:
        for rate in rates:
            result = native(link, seconds, "--rate", str(rate), "--rx-cpu", "0", "--watch-cpus", "0")
            [stream] = result["streams"]
            achieved = stream["tx_frames"] / stream["duration_s"]
            error = (achieved / rate - 1) * 100
            print(
                f"{rate:>12} {achieved:>10.1f} {error:>+8.3f} {stream['tx_frames']:>9} {stream['unsent']:>7}"
                f" {stream['lost']:>6} {stream['lateness_us']['p99']:>12.1f}"
                f"   host stalls {sum(result['host_stall_ms_total'].values()):.1f} ms"
            )
    finally:
        link.close()


def main() -> None:
    """Read the options and print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each paced trial")
    parser.add_argument("--flood-seconds", type=float, default=3.0, help="length of each flood")
    parser.add_argument("--rounds", type=int, default=3, help="floods of each generator")
    parser.add_argument("--rates", default="1000,10000,50000,100000,200000", help="intended rates, fps")
    options = parser.parse_args()
    compare(options.flood_seconds, options.rounds)
    pacing([int(rate) for rate in options.rates.split(",")], options.seconds)


if __name__ == "__main__":
    main()
