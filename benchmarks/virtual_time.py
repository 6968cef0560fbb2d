# SPDX-License-Identifier: Apache-2.0
"""What does virtual time cost? Host seconds per virtual second, idle and under load, and who spends them.

    generator ── west ── gateway 1 ── … ── gateway N ── east ── generator      (links in shared memory)

By default the gateways are mirrors, which do nothing but forward: that is the cost of the links and the generator.
With --gateway they are what a command starts, for instance an emulated board. In it {a} and {b} are its links, {ea}
and {eb} its ends of them, {ca} and {cb} are ",console=con" for the link that its console uses, {n} is its number,
from 1. --setup N=FILE types the lines of a file into the console of gateway N, which must be the first or the last;
each is answered by a line that begins with --until. Needs no root.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BINARY = Path(
    os.environ.get("ESPBENCH_TRAFFIC") or ROOT / "traffic" / "target" / "release" / "espbench-traffic"
)
MIRROR = ROOT / "dut-profiles" / "e500" / "qemu" / "mirror.c"
# What two guests and the source cost when links were stream sockets, and what issue 5 asks for.
PROTOTYPE = {0: 0.9, 20_000: 2.6, 40_000: 4.7}
WANTED = {40_000: 2.35}


class Chain:
    """A generator with a chain of gateways between its two ports."""

    def __init__(self, gateways: list[str], folder: Path, latency_ns: int, mbps: int) -> None:
        links = [folder / f"link-{number}" for number in range(len(gateways) + 1)]
        self.links = links
        for link in links:
            options = ["--latency-ns", str(latency_ns), "--mbps", str(mbps)]
            if link not in (links[0], links[-1]):
                options += ["--step-ns", str(latency_ns // 2)]
            subprocess.run([BINARY, "link", link, *options], check=True)
        pipe = subprocess.PIPE
        self.processes = {
            "generator": subprocess.Popen([BINARY, "serve"], stdin=pipe, stdout=pipe, text=True)
        }
        for number, command in enumerate(gateways, 1):
            words = {
                "a": links[number - 1],
                "b": links[number],
                "ea": 1,
                "eb": int(number == len(gateways)),  # between two gateways the western one has end 0
                "ca": ",console=con" if number == 1 else "",
                "cb": ",console=con" if number == len(gateways) != 1 else "",
                "n": number,
            }
            filled = shlex.split(command.format(**words))
            with (folder / f"gateway-{number}.log").open("wb") as log:
                process = subprocess.Popen(
                    filled, stdin=subprocess.DEVNULL, stdout=log, stderr=log, text=True
                )
            self.processes[f"gateway {number}"] = process
        ports = [{"name": "west", "link": str(links[0])}, {"name": "east", "link": str(links[-1])}]
        self.ask({"cmd": "open", "ports": ports})

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        """The event that answers a command."""
        generator = self.processes["generator"]
        assert generator.stdin is not None
        assert generator.stdout is not None
        generator.stdin.write(json.dumps(command) + "\n")
        generator.stdin.flush()
        while True:
            event: dict[str, Any] = json.loads(generator.stdout.readline())
            if event["event"] == "error":
                raise SystemExit(f"{event['message']} ({event['hint']})")
            if event["event"] != "progress":
                return event

    def cpu_s(self) -> dict[str, float]:
        """CPU time of each process so far."""
        found = {}
        for name, process in self.processes.items():
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            found[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


@contextlib.contextmanager
def chain(gateways: list[str], latency_ns: int, mbps: int) -> Iterator[Chain]:
    """A chain that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="esplink-"))
    made = Chain(gateways, folder, latency_ns, mbps)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder)


def mirrors(count: int, folder: Path) -> list[str]:
    """Commands of so many mirrors, each with 5 µs for a frame."""
    program = folder / "mirror"
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-o", program, MIRROR], check=True)
    return [f"{program} {{a}} {{b}} 5000 0 64 {{ea}} {{eb}}"] * count


def measure(made: Chain, fps: int, size: int, seconds: float, macs: dict[str, str]) -> dict[str, Any]:
    """One trial, one way, or as long a time without frames."""
    frame = {"frames": [{"size": size}], "src_mac": "02:00:00:00:00:01", "dst_mac": macs["west"]}
    flow = {"src": "198.18.0.2", "dst": "198.19.0.2", "ip_version": 4, "src_port": 49184, "dst_port": 7}
    # A trial needs a stream: idle is one frame, then waiting for so long.
    load = {"rate_fps": float(fps)} if fps else {"burst_frames": 1}
    stream = {"id": 0, "from": "west", "to": "east", **frame, **flow, **load}
    wait_s = 0.05 if fps else seconds
    trial = {"id": "t", "duration_s": seconds if fps else 0.001, "residue_s": wait_s, "quiet_s": wait_s}
    before, begin = made.cpu_s(), time.monotonic()
    event = made.ask({"cmd": "trial", **trial, "streams": [stream]})
    host_s = time.monotonic() - begin
    virtual_s = event["duration_s"] + event["streams"][0]["drain_s"] + wait_s
    cpu = {name: spent - before[name] for name, spent in made.cpu_s().items()}
    lost = event["streams"][0]["lost"]
    return {"host": host_s / virtual_s, "cpu": {n: s / virtual_s for n, s in cpu.items()}, "lost": lost}


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gateway", help="command of each gateway [default: a mirror]")
    parser.add_argument("--gateways", type=int, default=2, help="how many in the chain")
    parser.add_argument("--setup", action="append", default=[], metavar="N=FILE")
    parser.add_argument("--until", default="{", help="how a line begins that answers a line typed in")
    parser.add_argument("--boot", help="how the line begins with which a gateway says that it is up")
    parser.add_argument("--next-hop", default="02:00:00:00:01:01", help="MAC address of the first gateway")
    parser.add_argument("--rates", default="0,20000,40000", help="frames per second")
    parser.add_argument("--size", type=int, default=64, help="of a frame with FCS")
    parser.add_argument("--seconds", type=float, default=2.0, help="of virtual time, each")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many is told")
    parser.add_argument("--latency-ns", type=int, default=50_000)
    parser.add_argument("--mbps", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        count = options.gateways
        gateways = [options.gateway] * count if options.gateway else mirrors(count, Path(folder))
        print(f"{count} gateways, {options.size} B, one way; host seconds per virtual second")
        print(
            f"{'fps':>8} {'host s':>8} {'prototype':>10} {'wanted':>7}  CPU s per virtual second; frames lost"
        )
        with chain(gateways, options.latency_ns, options.mbps) as made:
            ends = {1: "west", count: "east"}
            ask = {"cmd": "console", "until": options.until, "timeout_s": 60}
            for port in ends.values() if options.boot else []:
                made.ask({**ask, "port": port, "line": None, "until": options.boot})
            for setup in options.setup:
                number, _, file = setup.partition("=")
                for line in Path(file).read_text().splitlines():
                    made.ask({**ask, "port": ends[int(number)], "line": line})
            for fps in (int(rate) for rate in options.rates.split(",")):
                macs = {"west": options.next_hop}
                found = [
                    measure(made, fps, options.size, options.seconds, macs) for _ in range(options.rounds)
                ]
                median = sorted(found, key=lambda one: one["host"])[len(found) // 2]
                spent = ", ".join(f"{name} {cpu:.2f}" for name, cpu in median["cpu"].items())
                before, wanted = PROTOTYPE.get(fps, ""), WANTED.get(fps, "")
                host_s = statistics.median(one["host"] for one in found)
                print(f"{fps:>8} {host_s:>8.3f} {before:>10} {wanted:>7}  {spent}; {median['lost']}")


if __name__ == "__main__":
    main()
