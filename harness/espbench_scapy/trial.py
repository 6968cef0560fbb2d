# SPDX-License-Identifier: GPL-2.0-only
"""Runs one trial: sends, waits for the residue, counts, reports. One thread does everything, slowly but simply."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from espbench_scapy.clock import StepWatch, now_ns
from espbench_scapy.failure import Failure
from espbench_scapy.frames import RunKey, Template
from espbench_scapy.judging import Expected
from espbench_scapy.pacing import Schedule
from espbench_scapy.port import Port
from espbench_scapy.receiving import PortCount, StreamCount
from espbench_scapy.sending import Outgoing

LEAD_NS = 30_000_000
# A trial sends all its frames. If that takes longer than intended, it may take LONGEST times its duration plus
# LONGEST_MORE_NS, as in traffic/src/send/pace.rs.
LONGEST, LONGEST_MORE_NS = 1.5, 500_000_000
SETTLE_S, SILENCE_S, PROGRESS_NS = 0.03, 0.1, 500_000_000
FASTEST_FPS = 50e6
_AT_ONCE = 16  # frames that are sent, then received, before the loop does anything else
_SPIN_NS = 200_000  # the end of a wait is spun, since a sleeping process wakes late
_EPISODES = 1000
# No thread of this generator watches the CPUs of the host.
NOT_MEASURED = ["stalls of the host", "speed of the CPUs"]
_MISSING = {
    "steps": "keeps one rate for a trial",
    "tag_at_s": "tags no frame",
    "gaps_over_s": "tells only the longest gap",
}


class Bench:
    """The parts of the session that a trial needs.

    `poll` reads commands and returns whether to stop; `other` gets frames of no stream (questions for our address).
    """

    def __init__(
        self,
        ports: dict[str, Port],
        key: RunKey,
        poll: Callable[[], bool],
        other: Callable[[Port, bytes], None],
        emit: Callable[[dict[str, Any]], None],
    ) -> None:
        self.ports, self.key, self.poll, self.other, self.emit = ports, key, poll, other, emit
        self.next_sequence = 0  # over all trials: a late frame of an earlier one is foreign


def run(bench: Bench, asked: dict[str, Any]) -> dict[str, Any]:
    """Run a trial and return the protocol's event `trial`; raise Failure."""
    check(asked, bench.ports)
    try:
        return _Trial(bench, asked).run()
    except Failure as failure:
        raise Failure(f"trial {asked['id']}: {failure.message}", failure.hint) from failure


def check(asked: dict[str, Any], ports: dict[str, Port]) -> None:
    """Raise Failure for a request that makes no sense, before any frame is sent."""
    limits = {"duration_s": (0.001, 86_400.0), "residue_s": (0.0, 3600.0), "quiet_s": (0.0, 3600.0)}
    for name, (least, most) in limits.items():
        value = asked.get(name)
        if value is not None and not least <= value <= most:
            raise Failure(f"{name} is {value}, expected {least:g} to {most:g} seconds")
    streams = asked["streams"]
    if not streams:
        raise Failure("streams is empty", "give one stream for each direction of traffic")
    if len({stream["id"] for stream in streams}) < len(streams):
        raise Failure("a stream's id is used twice", "each stream needs an id of its own")
    _check_kinds(asked)
    for stream in streams:
        for end in ("from", "to"):
            if stream[end] not in ports:
                known = ", ".join(ports) or "none"
                raise Failure(
                    f"stream {stream['id']}: port '{stream[end]}' is not open", f"open ports: {known}"
                )
        rate = stream.get("rate_fps")
        if rate is not None and not 0 < rate <= FASTEST_FPS:
            raise Failure(f"stream {stream['id']}: rate_fps is {rate}, expected at most {FASTEST_FPS:g}")
        if stream.get("burst_frames") == 0:
            raise Failure(f"stream {stream['id']}: burst_frames is 0", "a burst has at least one frame")


def _check_kinds(asked: dict[str, Any]) -> None:
    """Raise Failure for a request that only the native generator can fulfil."""
    native = "use generator: native"
    if asked.get("noise"):
        raise Failure("expected no noise beside the streams; generator scapy is too slow for it", native)
    for stream in asked["streams"]:
        for key, what in _MISSING.items():
            if stream.get(key) not in (None, []):
                raise Failure(
                    f"stream {stream['id']}: expected no {key}, got {stream[key]}; generator scapy {what}",
                    native,
                )


class _Trial:
    def __init__(self, bench: Bench, asked: dict[str, Any]) -> None:
        self._bench, self._asked = bench, asked
        self._streams: list[dict[str, Any]] = asked["streams"]
        duration_ns = int(asked["duration_s"] * 1e9)
        templates = [Template(stream, bench.key) for stream in self._streams]
        self._check_sizes(templates)
        for port in bench.ports.values():
            port.begin()
        self._steps = StepWatch()
        self._start_ns = now_ns() + LEAD_NS
        self._deadline_ns = self._start_ns + int(duration_ns * LONGEST) + LONGEST_MORE_NS
        self._cut_ns = 0  # the time when sending ended
        self._ports = {name: PortCount() for name in bench.ports}
        self._out: list[Outgoing] = []
        self._in: list[StreamCount] = []
        for stream, template in zip(self._streams, templates, strict=True):
            schedule = Schedule(
                self._start_ns, stream.get("rate_fps"), asked["duration_s"], stream.get("burst_frames")
            )
            if schedule.planned is None:  # a flood lasts exactly as long as requested
                self._deadline_ns = self._start_ns + duration_ns
            first = bench.next_sequence
            self._out.append(Outgoing(template, schedule, first, bench.ports[stream["from"]]))
            arriving = self._ports[stream["to"]]
            arriving.expected.append(Expected(template, bench.key, first, schedule.planned))
            arriving.streams.append(StreamCount(self._start_ns, duration_ns))
            self._in.append(arriving.streams[-1])
        self._next_progress_ns = self._start_ns + PROGRESS_NS
        self._stopped_early = False
        self._sending = True

    def run(self) -> dict[str, Any]:
        busy_ns, waited_ns = time.thread_time_ns(), _run_queue_wait_ns()
        self._tell(now_ns())
        self._send()
        self._sending = False
        self._tell(now_ns())
        last_tx_ns = max(self._start_ns, *(out.last_tx_ns for out in self._out))
        for out, count in zip(self._out, self._in, strict=True):
            out.close()
            count.stopped_ns = max(1, out.last_tx_ns)
        while not self._stopped_early and not self._residue_over(last_tx_ns):
            self._wait(10_000_000)
        while self._receive():
            pass
        self._steps.sample()
        self._bench.next_sequence += max(out.sent for out in self._out) + 1
        run_ms = (time.thread_time_ns() - busy_ns) / 1e6
        return self._result(run_ms, (_run_queue_wait_ns() - waited_ns) / 1e6)

    def _check_sizes(self, templates: list[Template]) -> None:
        for stream, template in zip(self._streams, templates, strict=True):
            for end in ("from", "to"):
                port = self._bench.ports[stream[end]]
                most = max(template.ip_lengths())
                if most > port.mtu:
                    raise Failure(
                        f"stream {stream['id']}: frame size {template.longest + 4} exceeds what {port.interface} can "
                        f"carry: {most} bytes of IP, MTU {port.mtu}",
                        "use smaller frames, or raise the MTU of both ends",
                    )

    def _send(self) -> None:
        while True:
            now = now_ns()
            if now >= self._deadline_ns or self._stopped_early or all(o.schedule.finished for o in self._out):
                self._cut_ns = now
                return
            left = [out.step() for _ in range(_AT_ONCE) for out in self._out]
            self._receive()
            if any(left):
                self._look_around()
                continue
            due = min((o.schedule.next_ns() for o in self._out if not o.schedule.finished), default=now)
            self._wait(min(due, self._deadline_ns) - now_ns() - _SPIN_NS)

    def _wait(self, ns: int) -> None:
        """Wait until a frame arrives or the time is over, at most 50 ms; receive frames."""
        if ns > 0:
            # select() is used because poll() rounds up to whole milliseconds.
            select.select(list(self._bench.ports.values()), [], [], min(ns / 1e9, 0.05))
        self._receive()
        self._look_around()

    def _look_around(self) -> None:
        now = now_ns()
        if now < self._next_progress_ns:
            return
        self._next_progress_ns = now + PROGRESS_NS
        self._steps.sample()
        self._stopped_early = self._bench.poll() or self._stopped_early
        self._tell(now)

    def _tell(self, now: int) -> None:
        self._bench.emit(
            {
                "event": "progress", "id": self._asked["id"], "sending": self._sending,
                "elapsed_s": max(0, now - self._start_ns) / 1e9,
                "tx_frames": sum(out.sent for out in self._out),
                "rx_frames": sum(count.sequence.received for count in self._in),
            }
        )  # fmt: skip

    def _receive(self) -> bool:
        """Receive some of the frames that have arrived; return whether there were any."""
        any_came = False
        for name, port in self._bench.ports.items():
            for _ in range(_AT_ONCE):
                came = port.receive()
                if came is None:
                    break
                any_came = True
                frame, wall_ns = came
                if not self._ports[name].count(frame, wall_ns - self._steps.offset_ns):
                    self._bench.other(port, frame)
        return any_came

    def _residue_over(self, last_tx_ns: int) -> bool:
        now = now_ns()
        waited_s = (now - last_tx_ns) / 1e9
        silent_s = (now - max(last_tx_ns, *(count.last_rx_ns for count in self._in))) / 1e9
        complete = all(c.sequence.accounted >= o.sent for o, c in zip(self._out, self._in, strict=True))
        quiet_s = self._asked.get("quiet_s")
        if quiet_s is not None and complete and silent_s >= max(quiet_s, SETTLE_S):
            return True
        residue_s, most_s = self._asked.get("residue_s", 2.0), self._asked.get("residue_max_s", 30.0)
        return waited_s >= max(residue_s, SETTLE_S) and (silent_s >= SILENCE_S or waited_s >= most_s)

    def _result(self, run_ms: float, wait_ms: float) -> dict[str, Any]:
        streams = [self._of_stream(*parts) for parts in zip(self._streams, self._out, self._in, strict=True)]
        merging = [self._bench.ports[name].interface for name, count in self._ports.items() if count.merged]
        return {
            "event": "trial",
            "id": self._asked["id"],
            "start_ns": self._start_ns,
            "last_tx_ns": max(out.last_tx_ns for out in self._out),
            "duration_s": max(stream["duration_s"] for stream in streams),
            "intended_duration_s": self._asked["duration_s"],
            "streams": streams,
            "ports": [
                {
                    "name": name, "rx_overrun": self._bench.ports[name].overrun(), "foreign": count.foreign,
                    "rx_total": count.total, "merged": count.merged,
                }
                for name, count in self._ports.items()
            ],
            "host_stalls": [], "host_stall_ms_total": {}, "host_stalls_more": 0, "stalls_watched": False,
            "senders_run_ms": run_ms, "senders_wait_ms": wait_ms, "receivers_run_ms": 0.0, "receivers_wait_ms": 0.0,
            "clock_step_ns": self._steps.step_ns,
            "stopped_early": self._stopped_early,
            "warnings": [
                f"the receive offload of {interface} merges frames, which then count as damaged "
                f"(ethtool -K {interface} gro off)"
                for interface in merging
            ],
            "notes": [],
            "not_measured": NOT_MEASURED,
        }  # fmt: skip

    def _of_stream(self, stream: dict[str, Any], out: Outgoing, count: StreamCount) -> dict[str, Any]:
        sequence, planned = count.sequence, out.schedule.planned
        missing = sequence.missing_runs(out.sent)
        return {
            "id": stream["id"], "from": stream["from"], "to": stream["to"],
            "intended_frames": planned,
            "tx_frames": out.sent,
            "tx_refused": out.refused,
            "unsent": 0 if planned is None else planned - out.sent,
            "tx_retries": out.retries,
            "duration_s": self._sending_s(out),
            "departure_fps": out.departure_fps(),
            "rx_frames": sequence.received,
            "lost": sequence.lost(out.sent),
            "duplicated": sequence.duplicated,
            "reordered": sequence.reordered,
            "corrupted": sequence.corrupted,
            "rx_after_stop": count.after_stop,
            "drain_s": max(0, count.last_rx_ns - out.last_tx_ns) / 1e9 if count.last_rx_ns else 0.0,
            "latency_us": count.latency.statistics(),
            "slices": count.slices(),
            "loss_episodes": [
                {"from_ns": out.sent_at(first), "to_ns": out.sent_at(last), "frames": last - first + 1}
                for first, last in missing[:_EPISODES]
            ],
            "loss_episodes_more": max(0, len(missing) - _EPISODES),
            "first_lost_ns": out.sent_at(missing[0][0]) if missing and sequence.lost(out.sent) else None,
            "last_lost_ns": out.sent_at(missing[-1][1]) if missing and sequence.lost(out.sent) else None,
            "first_rx_ns": count.arrived_ns and count.arrived_ns[0],
            "last_rx_ns": count.arrived_ns and count.arrived_ns[1],
            "longest_gap": count.longest_gap
            and {"from_ns": count.longest_gap[0], "to_ns": count.longest_gap[1]},
            "late_frames": out.late_frames,
            "lateness_us": out.lateness.lateness(),
            "tx_stalls": out.stalls,
            "tx_stalls_more": out.stalls_more,
            "tx_stalls_more_ms": out.stalls_more_ns / 1e6,
        }  # fmt: skip

    def _sending_s(self, out: Outgoing) -> float:
        """Return the time spent sending, s, with the last frame's interval; until the end if frames were left over."""
        if not out.sent:
            return 0.0
        spent = (max(0, out.last_tx_ns - self._start_ns) + out.schedule.interval_ns) / 1e9
        if out.schedule.planned is None or out.sent == out.schedule.planned or self._stopped_early:
            return spent
        return max(spent, (self._cut_ns - self._start_ns) / 1e9)


def _run_queue_wait_ns() -> int:
    """Return how long this thread has been runnable without a CPU since it started, ns."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
