# SPDX-License-Identifier: Apache-2.0
"""Simulates a pair of gateways whose IKE daemons take exact times, and runs the IPsec tests on it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from espbench.catalogue.suites import suites
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup
from espbench.plan import Case
from espbench.plan.keys.stack_choice import StackChoice
from espbench.platforms.base import CommandResult, Side, Testbed
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import CaseFacts, Known, Procedure, TrialMaker
from espbench.runs.procedure_kinds import procedure_for
from espbench.stacks.base import Tunnel
from espbench.stacks.daemons.daemon import End, IkeOptions, IkeReading, NegotiationFailed
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.daemons.sa_events import Phase, SaEvent
from espbench.terms import DirectionReading, Finding, GatewayReading, Trial
from support.gateways.ends import END

# Every set-up on these daemons takes these times, s.
PHASE_1, TUNNEL, PHASE_2, REKEY = 0.016, 0.020, 0.005, 0.004
SPEED = """\
+F2:0:512:22392.929293:357156.000000
+F2:2:2048:2000.000000:50000.000000
+F4:3:256:16803.030303:13440.206186
+F5:3:256:20000.000000:0.000050
+F5:22:253:31705.000000:0.000032
+F8:0:2048:3707.594937:0.000270
"""


@dataclass
class Clock:
    """The time of a pair, s; it passes only when somebody sleeps."""

    now: float = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class ExactDaemon:
    """Sets up what it is asked for in exactly the times above, one after the other, and rekeys on time."""

    clock: Clock
    name: str = "exact"
    end: End = END
    room: int = 10_000
    shares: bool = False  # one IKE SA for all tunnels, whatever was asked for
    up: dict[int, float] = field(default_factory=dict)
    log: list[SaEvent] = field(default_factory=list)
    stopped: list[bool] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)  # its starts, and its loads of the configuration
    died: bool = False

    def install(self) -> None: ...

    def start(self) -> None:
        self.up, self.log = {}, []
        self.begun.append("start")

    def load(self) -> None:
        self.begun.append("load")

    def stop(self, *, suddenly: bool) -> None:
        self.stopped.append(suddenly)

    def initiate(self, timeout_s: float) -> None:
        self.bring_up(range(len(self.end.tunnels)), timeout_s)

    def bring_up(self, numbers: Sequence[int], timeout_s: float) -> None:
        for number in numbers:
            if len(self.up) == self.room:
                raise NegotiationFailed("out of memory")
            each = self.end.options.ike_sa_each and not self.shares
            own, ike = each or not self.up, str(number) if each else "0"
            at = self.clock.now
            if own:
                self.log += [
                    SaEvent(at, 1, "begun", ike, ike),
                    SaEvent(at + PHASE_1, 1, "established", ike, ike),
                ]
            else:
                self.log.append(SaEvent(at, 2, "begun", f"c{number}", ike))
            self.clock.now += TUNNEL if own else PHASE_2
            self.log.append(SaEvent(self.clock.now, 2, "established", f"c{number}", ike))
            self.up[number] = self.clock.now

    def rekey(self, phase: Phase) -> None: ...

    def mark(self) -> int:
        return len(self.log)

    def events(self, after: int = 0) -> list[SaEvent]:
        o, listed = self.end.options, [*self.log[after:]]
        for phase, lifetime in ((1, o.ike_lifetime_s), (2, o.lifetime_s)):
            for number, up in self.up.items() if lifetime else ():
                at = up + lifetime
                while at < self.clock.now:
                    name = f"{number} at {at}"
                    steps = ((at, "begun"), (at + REKEY, "rekeyed"))
                    listed += [SaEvent(when, phase, what, name, "0") for when, what in steps]  # type: ignore[arg-type]
                    at += lifetime
        return sorted(listed, key=lambda event: event.at_s)

    def reason(self) -> str:
        return ""

    def alive(self) -> bool:
        return not self.died

    def reading(self) -> IkeReading:
        raise AssertionError("no set-up or rekey test reads IKE back")


class SilentGateway:
    """Takes every message, and has OpenSSL."""

    byte_order = "little"
    cpus = 1

    def __init__(self, side: Side, clock: Clock) -> None:
        self.side, self.clock = side, clock

    def now_s(self) -> float:
        return self.clock.now - 700  # other than that of its daemon's log

    def pause(self, seconds: float) -> None:
        self.clock.sleep(seconds)

    def cpu_ns(self) -> int | None:
        return None

    def waited_ns(self) -> int | None:
        return None

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        return [[] for _ in messages]

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 30.0) -> CommandResult:
        return CommandResult(0, SPEED, "")

    def read(self, paths: list[str]) -> dict[str, str | None]:
        processors = "".join(f"processor\t: {n}\n" for n in range(self.cpus))
        text = f"MemAvailable:    102400 kB\nCpus_allowed_list:\t0-{self.cpus - 1}\n{processors}"
        return dict.fromkeys(paths, text)


REAL_TIME = {
    "virtual_time": False, "platform": "netns", "as_one_trial": nullcontext, "kept_waiting_ns": lambda: None,
    "turns": lambda: None,
    "placement": SimpleNamespace(cpus={"home": [3]}),
}  # fmt: skip


class Pair:
    """A field of exact daemons; trials are answered by `trial`."""

    def __init__(self, trial: Any = None, waits: tuple[float, float] = (0.0, 0.0), **options: Any) -> None:
        """waits: before and after the sending of a trial, s."""
        self.clock, self.waits = Clock(), waits
        self.requests: list[Request] = []
        self.actions: list[str] = []
        sides: tuple[Side, ...] = ("home", "office")
        gateways = {side: SilentGateway(side, self.clock) for side in sides}
        bed = cast(Testbed, SimpleNamespace(gateways=gateways, **REAL_TIME))
        made = IkeOptions(**options)
        tunnel = Tunnel(4, "192.0.2.1", "192.0.2.2", "198.18.0.0/16", "198.19.0.0/16")
        self.daemons = {side: ExactDaemon(self.clock, end=replace(END, options=made)) for side in sides}
        self.stack = IkeStack("exact", bed, tunnel, suites()["aes128gcm16"], made, {**self.daemons})
        self._trial = trial
        self.maker = TrialMaker(Setup(bed, cast(Any, None), self.stack, {}), self.make)

    def make(self, request: Request, actions: Sequence[Action]) -> Trial:
        self.requests.append(request)
        self.clock.sleep(self.waits[0])
        done = []
        for action in actions:
            report = action.act()
            done.append({"name": action.name, "began_s": action.at_s, "ended_s": action.at_s + 0.5, **report})
        self.clock.sleep(request.duration_s + self.waits[1])
        trial = cast(Trial, self._trial(request))
        return trial.model_copy(update={"measured": trial.measured | {"actions": done}})


def trial_of(request: Request, lost: int = 0, **reading: Any) -> Trial:
    """One direction of this load, with so many frames lost."""
    sent = round(request.load_fps * request.duration_s)
    shown = {"lost": lost, "corrupted": 0, **reading}
    direction = DirectionReading(
        intended_fps=request.load_fps, offered_fps=request.load_fps, tx_frames=sent, rx_frames=sent - lost,
        duplicated=0, reordered=0, **shown,
    )  # fmt: skip
    return Trial(
        case="0001-x", sequence=0, phase="measure", attempt=request.attempt, intended_fps=request.load_fps,
        offered_fps=request.load_fps, duration_s=request.duration_s, intended_duration_s=request.duration_s,
        tx_frames=sent, rx_frames=sent - lost, lost=lost, duplicated=0, reordered=0, corrupted=0,
        frame_loss_ratio=lost / sent, validity="VALID", per_direction={"west-east": direction},
        gateways={"home": GatewayReading(cpu_pct=10.0), "office": GatewayReading(cpu_pct=5.0)},
    )  # fmt: skip


def made(settings: Any, frame_size: int = 256) -> Procedure:
    """Return the procedure of a test with these settings, for frames of this size, B, one way."""
    case = Case(
        id="0001-x", test="test", settings=settings, stack=StackChoice(stack="strongswan"), suite="aes128gcm16",
        frame_size=frame_size, sizes=((frame_size, 1),), mean_frame_size=float(frame_size),
        direction="one-way", ip_version=4, repeat=1, dut="uml",
    )  # fmt: skip
    return procedure_for(case, Known(Limits(10.0, 100_000.0, 1e6, None, 1e9), {}, (256,)), [])


def answered(procedure: Procedure, pair: Pair) -> Finding:
    """Return the finding, after all that the procedure asks for was measured on this pair."""
    while (request := procedure.next()) is not None:
        procedure.add(procedure.measure(request, pair.maker))
        assert len(procedure.trials) < 50
    (finding,) = procedure.results(CaseFacts("uml", "proven", []))
    assert isinstance(finding, Finding)
    return finding


def values(finding: Finding) -> dict[str, float | None]:
    """Return name → value of each quantity."""
    return {quantity.name: quantity.value for quantity in finding.quantities}
