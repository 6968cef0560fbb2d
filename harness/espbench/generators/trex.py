# SPDX-License-Identifier: Apache-2.0
"""TRex as a generator: stateless streams on a server of the user's, or on one launched from TREX_DIR.

TRex only counts frames per port. What it cannot measure is None in the record and named in `not_measured`. Several
faults that TRex does not report are checked here. It stretches a schedule that it cannot keep: so the trial is
timed, and cut off at its end. A dropped link and frames above the MTU look like loss: so both are checked. An
AF_PACKET port sends a frame again if the next device's full ring refused it, so that this loss becomes a delay; and
it counts frames as sent that still wait there. On a launched server the kernel's counters show both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from espbench.errors import GeneratorFailed, UsageError
from espbench.generators.base import (
    Noise,
    Offered,
    OnProgress,
    PortCounts,
    Stream,
    StreamCounts,
    WirePath,
    longest_s,
)
from espbench.generators.trex_account import Account, shortfall, stream_counts
from espbench.generators.trex_ports import Counters, TrexPorts
from espbench.generators.trex_streams import frames_of, trex_streams
from espbench.platforms.base import Port, PortName
from espbench.sentences import Code
from espbench.terms import FCS_BYTES, Remark
from espbench.this_machine.registry import Registry

NOT_MEASURED = [
    "latency",
    "backlog",
    "corrupted, duplicated and reordered frames; frames of others count as received",
    "when frames left, when lost ones did, and when they arrived",
    "stalls of the tester and of the host",
    "speed of the CPUs",
]
_FRAMING_BYTES = 14 + FCS_BYTES
# The server checks its ports every 10 ms; it may need as long again to begin.
_NOTICED_S, _BEGUN_S = 0.01, 0.05
# The state of TRex may have been unknown for this long at most when it ended; in a long trial, for this share
# of it.
_UNSEEN_S, _UNSEEN_SHARE = 0.05, 0.005
_PROGRESS_S = 0.25
# Frames leave AF_PACKET once a millisecond, in bursts of all frames that are due.
_BURSTY, _TICKS = "af_packet", 1000.0
# Port counters are refreshed twice a second: unchanged for this long, they are final.
SETTLED_S, _COUNTER_POLL_S = 1.1, 0.1
_STRAGGLERS_S = 30.0
# The rate of a flood is more than any port can send (64 B frames on 100 Gbit/s).
_FLOOD_FPS = 150e6


class TrexGenerator:
    """Two ports of one TRex server. server: `(host, port)`, None: launch one; indices: its port numbers of west and
    east.
    """

    name = "trex"

    def __init__(
        self,
        registry: Registry,
        log: Path,
        server: tuple[str, int] | None = None,
        indices: tuple[int, int] = (0, 1),
    ) -> None:
        self._trex = TrexPorts(registry, log, server, indices)
        self._holds_frames = False

    def paths(self) -> list[str]:
        """Return nothing: the server was started with its path, so there is no choice."""
        return []

    def take(self, path: WirePath) -> None:
        """Do nothing: there is only one path."""

    def open(self, ports: list[Port], watch_cpus: list[int]) -> list[dict[str, Any]]:
        self._holds_frames = False
        return self._trex.take(ports)

    def resolve(
        self, port: PortName, address: str, gateway: str, timeout_s: float = 10.0, tags: bytes = b""
    ) -> str:
        raise UsageError(
            f"generator trex: expected the MAC address of {gateway} (port {port}), got none; TRex neither asks "
            f"for it nor answers for {address}\n"
            f"  to fix it: write gateway_mac under ports.{port} of the plan, and give the DUT a static "
            f"neighbour for {address}"
        )

    def offer(
        self,
        streams: list[Stream],
        duration_s: float,
        residue_s: float,
        quiet_s: float | None = None,
        on_progress: OnProgress | None = None,
        noise: Sequence[Noise] = (),
    ) -> Offered:
        self._check(streams, noise)
        if self._holds_frames:  # they would leave with the first frames of this trial: restart the server
            self.open(list(self._trex.ports.values()), [])
        planned = {s.id: None if s.rate_fps is None else frames_of(s, duration_s) for s in streams}
        self._load(streams, planned)
        before, links = self._trex.counters(), self._trex.links()

        def is_complete(now: dict[PortName, Counters]) -> bool:
            moved = {name: c.since(before[name]) for name, c in now.items()}
            return all(moved[s.from_].opackets == moved[s.to].ipackets == planned[s.id] for s in streams)

        cpu_before, start_ns = self._cpu_ns(), time.monotonic_ns()
        flood = any(count is None for count in planned.values())
        took_s, unseen_s, dropped = self._transmit(streams, duration_s, flood, on_progress)
        last_tx_ns = time.monotonic_ns()
        after, faults = self._final_counters(residue_s, quiet_s, is_complete)
        links_after = self._trex.links()
        dropped |= {name for name, now in links_after.items() if now.flapped_since(links[name])}
        accounts = {
            name: Account.of(
                after[name].since(before[name]), links_after[name].since(links[name]) if links else None
            )
            for name in self._trex.ports
        }
        self._holds_frames = any(account.held for account in accounts.values())
        counts = [stream_counts(s, planned[s.id], accounts) for s in streams]
        return Offered(
            start_ns=start_ns,
            last_tx_ns=last_tx_ns,
            duration_s=took_s,
            intended_duration_s=duration_s,
            streams=counts,
            ports=[
                PortCounts(name=name, rx_overrun=a.overrun, foreign=None, rx_total=a.received)
                for name, a in accounts.items()
            ],
            stalls_watched=False,
            # TRex polls its ports until its end, so its CPU time in that time is not foreign load.
            senders_run_ms=(self._cpu_ns() - cpu_before) / 1e6,
            faults=[*faults, *_end_unseen(unseen_s, duration_s), *self._link_faults(dropped, counts)],
            shortfall=shortfall(accounts, streams, is_late=took_s > duration_s),
            warnings=self._warnings(streams),
            not_measured=NOT_MEASURED,
        )

    def ping(self) -> None:
        self._trex.ask("ping")

    def pid(self) -> int:
        """Return the process id of the launched server; of this process if none was launched."""
        return self._trex.launched.pid if self._trex.launched else os.getpid()

    def close(self) -> None:
        self._trex.close()

    def _check(self, streams: list[Stream], noise: Sequence[Noise]) -> None:
        """Raise UsageError if the ports cannot carry these streams, or if there is noise besides them."""
        if len({s.from_ for s in streams}) < len(streams):
            raise UsageError(
                "generator trex: expected one stream from each port, got two: its counters are the ports'"
            )
        for s in streams:
            port = self._trex.ports[s.from_]
            largest = max(share.size for share in s.frames)
            if largest - _FRAMING_BYTES > port.mtu:
                raise UsageError(
                    f"generator trex: expected frames of at most {port.mtu + _FRAMING_BYTES} B "
                    f"(the MTU of {port.interface} is {port.mtu}), got {largest} B; TRex would call them lost"
                )
        if noise:
            raise UsageError(
                "generator trex: expected streams only, got noise beside them: its counters are the ports', "
                "and could not tell one from the other: use generator: native"
            )

    def _load(self, streams: list[Stream], planned: Mapping[int, int | None]) -> None:
        """Replace the ports' streams by these; planned: the number of frames by stream id, None for a flood."""
        for name in self._trex.ports:
            self._trex.tell(name, "stop_traffic")
            self._trex.tell(name, "remove_all_streams")
        for s in streams:
            made = trex_streams(s, planned[s.id], s.rate_fps or _FLOOD_FPS)
            for number, one in enumerate(made, start=1):
                self._trex.tell(s.from_, "add_stream", stream_id=number, stream=one)

    def _transmit(
        self, streams: list[Stream], duration_s: float, flood: bool, on_progress: OnProgress | None
    ) -> tuple[float, float, set[PortName]]:
        """Send all frames. Streams that still send at the longest time (base.longest_s) are stopped.

        Return how long it took (s, at least as long as intended), how long of this it was unknown whether TRex still
        sent (s), and the ports whose link was down meanwhile. Raise GeneratorFailed if TRex does not stop.
        """
        before_start = time.monotonic()
        if on_progress:
            on_progress({"elapsed_s": 0.0, "sending": True})
        for s in streams:
            self._trex.start(s.from_, s.rate_fps or _FLOOD_FPS)
        started = time.monotonic()
        end = started + (duration_s if flood else longest_s(duration_s) + _BEGUN_S)
        give_up = end + _STRAGGLERS_S
        dropped: set[PortName] = set()
        last_seen = started
        sending = [s.from_ for s in streams]
        while sending:
            now = time.monotonic()
            if now >= end:
                for name in sending:
                    self._trex.tell(name, "stop_traffic")
                end = now + 1.0  # stop it once more then, if it did not react
            elif (rest := started + duration_s - now) > _PROGRESS_S:
                time.sleep(min(_PROGRESS_S, rest - _PROGRESS_S / 2))
                if on_progress:
                    on_progress({"elapsed_s": time.monotonic() - started, "sending": True})
                dropped |= {name for name in self._trex.ports if self._trex.is_down(name)}
            else:
                time.sleep(_NOTICED_S)
            asked = time.monotonic()
            sending = [name for name in sending if self._trex.is_sending(name)]
            ended = time.monotonic()
            if sending:
                last_seen = asked
                if asked > give_up:
                    raise GeneratorFailed("TRex does not stop sending")
        if on_progress:
            on_progress({"elapsed_s": ended - started, "sending": False})
        # TRex ended between the last check that found it sending and the first that did not. It took longer
        # than intended only if even the former was late. Then the duration is counted from the request, since
        # TRex may have begun at once; so the rate does not come out too high.
        is_late = flood or last_seen - started - _NOTICED_S > duration_s
        unseen_s = ended - max(last_seen, started + duration_s)
        return ended - before_start if is_late else duration_s, unseen_s, dropped

    def _final_counters(
        self,
        residue_s: float,
        quiet_s: float | None,
        is_complete: Callable[[dict[PortName, Counters]], bool],
    ) -> tuple[dict[PortName, Counters], list[str]]:
        """Return the counters once the residue has passed and they no longer change, and the faults.

        If all frames are accounted for, quiet_s seconds without a change are enough.
        """
        over = time.monotonic() + residue_s
        give_up = over + _STRAGGLERS_S
        counters, changed = self._trex.counters(), time.monotonic()
        while True:
            end = max(over, changed + SETTLED_S)
            if quiet_s is not None and is_complete(counters):
                end = changed + quiet_s
            if time.monotonic() >= end:
                return counters, []
            if changed > give_up:
                return counters, [
                    "frames still arrived long after the trial: TRex cannot tell whose they are"
                ]
            time.sleep(_COUNTER_POLL_S)
            now = self._trex.counters()
            if now != counters:
                counters, changed = now, time.monotonic()

    def _link_faults(self, dropped: set[PortName], counts: list[StreamCounts]) -> list[str]:
        ports = self._trex.ports
        return [
            f"link of port {name} ({ports[name].interface}) went down during the trial"
            for name in sorted(dropped)
        ] + [
            f"{c.from_}-{c.to}: nothing at all arrived: TRex cannot tell loss from a dropped link"
            for c in counts
            if c.tx_frames and not c.rx_frames
        ]

    def _warnings(self, streams: list[Stream]) -> list[Remark]:
        """Return the remarks that apply to every figure of these streams."""
        remarks = [Remark.of(Code.BACKLOG_NOT_JUDGED), Remark.of(Code.OTHERS_COUNT)]
        by_af_packet = [s for s in streams if _BURSTY in self._trex.drivers[s.from_]]
        if any((s.rate_fps or 0) > _TICKS for s in by_af_packet):
            remarks.append(Remark.of(Code.LEAVES_IN_BURSTS))
        if by_af_packet and self._trex.launched is None:
            remarks.append(Remark.of(Code.FIRST_LOSS_UNSEEN))
        return remarks

    def _cpu_ns(self) -> int:
        return self._trex.launched.cpu_ns() if self._trex.launched else 0


def _end_unseen(unseen_s: float, duration_s: float) -> list[str]:
    """Return a fault if the end of the trial was not observed closely: its frames may have taken longer than
    assumed.
    """
    if unseen_s <= max(_UNSEEN_S, _UNSEEN_SHARE * duration_s):
        return []
    return [
        f"nobody looked for {1e3 * unseen_s:.0f} ms whether TRex still sent: how long it took is not known"
    ]
