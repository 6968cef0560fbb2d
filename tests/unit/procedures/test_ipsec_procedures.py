# SPDX-License-Identifier: Apache-2.0
"""The IPsec tests on daemons and gateways whose truth is known by arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.catalogue.certificate_keys import CertificateKey
from espbench.catalogue.suites import suites
from espbench.errors import EspbenchError
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken
from espbench.measure.proof.readiness import InClear
from espbench.measure.validity import daemons
from espbench.plan import Case
from espbench.plan.keys.ipsec_tests import (
    Attack,
    Capacity,
    Failover,
    FirstPacket,
    PublicKey,
    RekeyLoss,
    RekeyRate,
    Reset,
    SetUpRate,
)
from espbench.plan.keys.stack_choice import StackChoice
from espbench.platforms.base import CommandResult, Side, Testbed
from espbench.procedures.ipsec import capacity, rekey_rate, set_up_rate
from espbench.procedures.ipsec.ipsec_common import outage_s, restarted
from espbench.procedures.ipsec.rekey_rate import busy_s
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import CaseFacts, Known, Procedure, TrialMaker
from espbench.runs.procedure_kinds import procedure_for
from espbench.stacks.base import Tunnel
from espbench.stacks.daemons import public_key_speed
from espbench.stacks.daemons.daemon import End, IkeOptions, IkeReading, NegotiationFailed
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.daemons.sa_events import Phase, SaEvent, Span
from espbench.terms import DirectionReading, Finding, GatewayReading, Quantity, Trial
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

    def __init__(self, side: Side) -> None:
        self.side = side

    def netlink(self, protocol: int, messages: list[bytes]) -> list[list[bytes]]:
        return [[] for _ in messages]

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 30.0) -> CommandResult:
        return CommandResult(0, SPEED, "")

    def read(self, paths: list[str]) -> dict[str, str | None]:
        return dict.fromkeys(paths, "MemAvailable:    102400 kB\n")


_REAL_TIME = {"virtual_time": False, "platform": "netns", "as_one_trial": nullcontext}


class Pair:
    """A field of exact daemons; trials are answered by `trial`."""

    def __init__(self, trial: Any = None, **options: Any) -> None:
        self.clock = Clock()
        self.requests: list[Request] = []
        self.actions: list[str] = []
        sides: tuple[Side, ...] = ("home", "office")
        gateways = {side: SilentGateway(side) for side in sides}
        bed = cast(Testbed, SimpleNamespace(gateways=gateways, **_REAL_TIME))
        made = IkeOptions(**options)
        tunnel = Tunnel(4, "192.0.2.1", "192.0.2.2", "198.18.0.0/16", "198.19.0.0/16")
        self.daemons = {side: ExactDaemon(self.clock, end=replace(END, options=made)) for side in sides}
        self.stack = IkeStack("exact", bed, tunnel, suites()["aes128gcm16"], made, {**self.daemons})
        self._trial = trial
        self.maker = TrialMaker(Setup(bed, cast(Any, None), self.stack, {}), self.make)

    def make(self, request: Request, actions: Sequence[Action]) -> Trial:
        self.requests.append(request)
        self.clock.sleep(request.duration_s)
        done = []
        for action in actions:
            report = action.act()
            done.append({"name": action.name, "began_s": action.at_s, "ended_s": action.at_s + 0.5, **report})
        return cast(Trial, self._trial(request).model_copy(update={"measured": {"actions": done}}))


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


@pytest.fixture(autouse=True)
def carried(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many tunnels were shown to carry traffic, each time; real gateways test the showing."""
    asked: list[int] = []

    def show(setup: Setup, case: Case, tunnels: int) -> dict[str, Any]:
        asked.append(tunnels)
        return {"kind": "shown", "proven": True, "problems": []}

    for module in (set_up_rate, rekey_rate, capacity):
        monkeypatch.setattr(module, "show_all_carry", show)
    return asked


def made(settings: Any) -> Procedure:
    case = Case(
        id="0001-x", test="test", settings=settings, stack=StackChoice(stack="strongswan"), suite="aes128gcm16",
        frame_size=256, sizes=((256, 1),), mean_frame_size=256.0, direction="one-way", ip_version=4, repeat=1,
        dut="uml",
    )  # fmt: skip
    return procedure_for(case, Known(Limits(10.0, 100_000.0, 1e6, None, 1e9), {}, (256,)), [])


def answered(procedure: Procedure, pair: Pair) -> Finding:
    """The finding, after all that the procedure asks for was measured on this pair; as a replay would have it."""
    while (request := procedure.next()) is not None:
        procedure.add(procedure.measure(request, pair.maker))
        assert len(procedure.trials) < 50
    (finding,) = procedure.results(CaseFacts("uml", "proven", []))
    assert isinstance(finding, Finding)
    return finding


def values(finding: Finding) -> dict[str, float | None]:
    return {quantity.name: quantity.value for quantity in finding.quantities}


def test_set_up_rates_are_the_daemons_own_times(carried: list[int]) -> None:
    """100 tunnels of 20 ms one after the other; the certificates' signature and DH bound them."""
    pair = Pair(auth="certificates")
    finding = answered(made(SetUpRate(tunnels=100)), pair)
    quantities = values(finding)
    assert (
        quantities["tunnel set-up rate"],
        quantities["phase 1 set-up rate"],
        quantities["phase 2 set-up rate"],
    ) == (
        50.0,
        62.5,
        200.0,
    )
    assert quantities["tunnel set-up time"] == 20.0
    # 1/20,000 + 1/2,000 + 2/50,000 s on each gateway, which wait for each other.
    assert quantities["public-key time of a set-up, home"] == pytest.approx(0.59)
    assert quantities["public-key bound"] == pytest.approx(1e3 / 1.18, abs=1e-3)
    assert quantities["protocol and other overhead"] == pytest.approx(100 * (1 - 1.18 / 20), abs=0.01)
    assert carried == [100, 101]
    assert finding.status == "OK"
    # Afterwards the pair is as it was.
    assert pair.stack.options == IkeOptions(auth="certificates")
    assert len(pair.daemons["home"].up) == 1


@pytest.mark.parametrize("together", [False, True])
def test_set_ups_within_the_same_millisecond_of_the_log_have_a_rate(
    monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> None:
    """A daemon's log may show that a set-up took no time."""
    for name in ("PHASE_1", "PHASE_2", "TUNNEL"):
        monkeypatch.setitem(globals(), name, 0.0)
    finding = answered(made(SetUpRate(tunnels=1, public_key=False, together=together)), Pair())
    assert values(finding)["tunnel set-up rate"] == 1000.0


def test_a_daemon_that_shares_its_ike_sa_has_no_tunnel_rate() -> None:
    """Counted are IKE SAs, not what was asked for."""
    pair = Pair()
    pair.daemons["home"].shares = True
    finding = answered(made(SetUpRate(tunnels=5, retries=0, public_key=False)), pair)
    assert finding.status == "INVALID"
    assert "1 tunnels with an IKE SA each were set up, but 5 were asked for" in finding.reasons[0].text


def test_rekey_rates_are_of_the_time_in_which_rekeys_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 SAs that end one after the other, 4 ms each, no two at once: 250 a second, for two lifetimes."""
    pair = Pair()
    monkeypatch.setattr("espbench.platforms.gateway_time.time.sleep", pair.clock.sleep)
    finding = answered(
        made(RekeyRate.model_validate({"tunnels": 10, "lifetime": "10s", "lifetimes": 2})), pair
    )
    quantities = values(finding)
    assert (quantities["phase 1 rekey rate"], quantities["phase 2 rekey rate"]) == (250.0, 250.0)
    assert [q.n for q in finding.quantities[:2]] == [20, 20]
    assert finding.warnings == []


def test_time_in_which_something_was_under_way() -> None:
    assert busy_s([Span(0.0, 1.0), Span(0.5, 2.0), Span(5.0, 6.0)]) == 3.0


@pytest.mark.parametrize(("room", "most", "words"), [(43, 40, "out of memory"), (1000, 60, "At least 60")])
def test_capacity_is_the_last_step_that_carried(room: int, most: int, words: str, carried: list[int]) -> None:
    """It holds 43: the step to 60 is refused."""
    pair = Pair()
    pair.daemons["home"].room = room
    finding = answered(made(Capacity(limit=60, step=20)), pair)
    assert finding.quantities[0].value == most
    assert words in finding.words
    assert [row["tunnels"] for row in finding.curve] == carried == [n for n in (20, 40, 60) if n <= most]


def test_a_leak_is_no_end_of_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that cross beside their SAs end the case as VIOLATED; they are no tunnel too many."""

    def show(*_: Any) -> dict[str, Any]:
        raise InClear("home: 40 frames crossed, its SAs counted 39 encrypted and 0 decrypted")

    monkeypatch.setattr(capacity, "show_all_carry", show)
    with pytest.raises(InClear):
        answered(made(Capacity(limit=60, step=20)), Pair())


def test_a_rekey_makes_a_capacity_invalid() -> None:
    """ipsec-meth 8: SAs under test are not replaced."""
    pair = Pair(lifetime_s=0.01)
    finding = answered(made(Capacity(limit=4, step=2, retries=0)), pair)
    assert (finding.status, finding.reasons[0].text[1:]) == ("INVALID", " rekeys during the test")


def test_the_time_to_first_packet_is_from_first_sent_to_first_received() -> None:
    pair = Pair(lambda request: trial_of(request, lost=30, first_lost_s=0.0, first_rx_s=0.0315))
    # Traffic brings the tunnel up while it flows.
    make = pair.make

    def trial(request: Request, actions: Sequence[Action]) -> Trial:
        assert (request.shape.cold, pair.stack.options.on_demand, pair.daemons["home"].up) == (True, True, {})
        pair.daemons["home"].initiate(1)
        return make(request, actions)

    pair.maker = TrialMaker(pair.maker.setup, trial)
    finding = answered(made(FirstPacket.model_validate({"load": "1000fps", "repeats": 3})), pair)
    quantities = values(finding)
    assert (quantities["time to first packet"], quantities["of it, setting up the tunnel"]) == (31.5, 20.0)
    assert quantities["frames lost meanwhile"] == 30.0


def test_no_first_packet_is_unresolvable() -> None:
    pair = Pair(lambda request: trial_of(request, lost=1, first_rx_s=None))
    finding = answered(
        made(FirstPacket.model_validate({"load": "1000fps", "repeats": 1, "retries": 0})), pair
    )
    assert finding.status == "INVALID"  # no tunnel was set up either
    assert "0 tunnels were set up" in finding.reasons[0].text


@pytest.mark.parametrize("virtual", [False, True])
def test_in_virtual_time_a_pair_is_not_brought_back(virtual: bool) -> None:
    """The next trial begins in the state before this one; in real time the daemons are started anew, and initiate."""
    pair = Pair(tunnels=1)
    cast(Any, pair.maker.setup.bed).virtual_time = virtual
    had, home = pair.stack.options, pair.daemons["home"]
    with restarted(pair.stack, 5, lifetime_s=8):
        assert (pair.stack.options.tunnels, len(home.end.tunnels)) == (5, 5)
        stops = len(home.stopped)
    assert pair.stack.options == had
    assert len(home.end.tunnels) == 1
    assert len(home.stopped) - stops == (0 if virtual else 1)


def test_rekey_loss_counts_the_rekeys_of_a_gateway_that_rekeys_every_five_seconds() -> None:
    """17 s of traffic: three rekeys, two frames lost at each."""
    pair = Pair(lambda request: trial_of(request, lost=6))
    finding = answered(
        made(RekeyLoss.model_validate({"load": "1000fps", "trial": "17s", "lifetime": "5s"})), pair
    )
    quantities = values(finding)
    assert (quantities["phase 2 rekeys"], quantities["frames lost"]) == (3, 6)
    assert "(2 for each)" in finding.words
    assert pair.requests[0].duration_s == 17


@pytest.mark.parametrize(("rekeys", "status"), [(7, "INVALID"), (8, "OK")])
def test_rekey_loss_knows_how_many_lifetimes_in_bytes_end_in_a_trial(rekeys: int, status: str) -> None:
    """17,000 packets of 238 B are 9.2 times the 440 kB at which an SA of 400 kB ends at the latest."""
    pair = Pair(trial_of)
    home = pair.daemons["home"]
    steps = [
        event
        for number in range(rekeys)
        for event in (
            SaEvent(number, 2, "begun", str(number), "0"),
            SaEvent(number + 0.01, 2, "rekeyed", str(number), "0"),
        )
    ]
    asked: list[IkeOptions] = []

    def events(after: int = 0) -> list[SaEvent]:
        asked.append(pair.stack.options)
        return steps

    home.events = events  # type: ignore[method-assign]
    settings = {"load": "1000fps", "trial": "17s", "lifetime_bytes": "400kB", "retries": 0}
    finding = answered(made(RekeyLoss.model_validate(settings)), pair)
    assert finding.status == status
    assert [(options.lifetime_bytes, options.lifetime_s) for options in asked] == [(400_000, 0.0)]
    if status == "OK":
        assert values(finding)["lifetime of the ESP SAs in bytes"] == 400_000
    else:
        assert "7 rekeys were seen; at least 8 were due" in finding.reasons[0].text


def test_the_draft_asks_for_a_third_of_the_trial() -> None:
    assert RekeyLoss.model_validate({"trial": "61s"}).lifetime_s == 20


@pytest.mark.parametrize(
    "settings", [Failover(repeats=2), Reset(repeats=2), Reset(what="sa-flush", repeats=2)]
)
def test_an_outage_is_between_the_last_arrival_before_and_the_first_after(settings: Any) -> None:
    """7.5 s at 1,000 frames/s, of which a millisecond is between any two frames."""
    pair = Pair(lambda r: trial_of(r, 7499, longest_gap_s=(3.0, 10.5), first_lost_s=3.0, last_lost_s=10.5))
    finding = answered(made(settings), pair)
    assert finding.quantities[0].value == 7.499
    assert finding.quantities[0].n == 2
    assert values(finding)["frames lost"] == 7499.0


@pytest.mark.parametrize(
    ("gap", "lost", "truth"),
    [((5.0, 5.2), (3.0, 3.024), 0.025), ((3.0, 3.5), (0.1, 3.499), 0.499), ((3.0, 3.5), (None, None), 0.499)],
    ids=["the host stood still elsewhere", "a frame was lost elsewhere", "only arrivals are known"],
)
def test_an_outage_is_neither_a_stall_of_the_host_nor_a_stray_loss(
    gap: tuple[float, float], lost: tuple[float | None, float | None], truth: float
) -> None:
    """The load is 1,000 frames/s."""
    trial = trial_of(
        Request(1000.0, 10.0, "measure"), 25, longest_gap_s=gap, first_lost_s=lost[0], last_lost_s=lost[1]
    )
    assert outage_s(trial.per_direction["west-east"]) == pytest.approx(truth)


@pytest.mark.parametrize("settings", [Failover(repeats=1, retries=0), Reset(repeats=1, retries=0)])
@pytest.mark.parametrize(
    "reading",
    [
        {"longest_gap_s": (3.0, 3.001)},
        {"first_lost_s": 3.0, "last_lost_s": 10.5},
    ],
    ids=["it is not known which frames were lost", "the times of arrivals are not known"],
)
def test_an_outage_whose_losses_have_no_times_is_no_outage_of_0_s(
    settings: Any, reading: dict[str, Any]
) -> None:
    pair = Pair(lambda r: trial_of(r, 7499, **reading))
    finding = answered(made(settings), pair)
    assert (finding.status, finding.quantities) == ("INVALID", [])
    assert [*map(str, finding.reasons)] == ["it is not known when 7,499 frames were lost"]


def test_frames_that_arrived_damaged_are_no_outage() -> None:
    pair = Pair(lambda r: trial_of(r, 20, corrupted=20))
    finding = answered(made(Reset(repeats=1)), pair)
    assert (finding.status, finding.quantities[0].value) == ("OK", 0.0)


def test_a_failover_kills_office_without_a_word() -> None:
    pair = Pair(lambda r: trial_of(r, 1, longest_gap_s=(3.0, 4.0), last_lost_s=3.0))
    answered(made(Failover(repeats=1)), pair)
    # Each time it is given its connections: the standby, too.
    assert pair.daemons["office"].begun == ["start", "load"] * 3
    # Anew for the test, dead in it, anew after it: never with a farewell.
    assert pair.daemons["office"].stopped == [True, True, True]


def test_what_never_recovers_is_unresolvable_and_what_was_not_missed_invalid() -> None:
    lost = Pair(lambda r: trial_of(r, 26_000, longest_gap_s=(3.0, 4.0), last_lost_s=29.99))
    finding = answered(made(Reset(repeats=1)), lost)
    assert finding.status == "UNRESOLVABLE"
    assert "lengthen trial" in finding.reasons[0].text
    unharmed = answered(made(Reset(repeats=1, retries=0)), Pair(trial_of))
    assert (unharmed.status, [*map(str, unharmed.reasons)]) == (
        "INVALID",
        ["no frame was lost, so there is no outage to measure"],
    )


def test_power_is_refused_where_nobody_can_switch_it() -> None:
    finding = answered(made(Reset(what="power", repeats=1, retries=0)), Pair(trial_of))
    assert finding.status == "INVALID"
    assert "cannot switch gateways of platform netns off and on; use dut: uml" in finding.reasons[0].text


@pytest.mark.parametrize("anew", [False, True])
def test_what_espbench_brings_to_a_box_again_is_a_deviation(
    anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest has its files at once; to a box the daemon is brought, which the time includes."""
    pair = Pair(lambda r: trial_of(r, 1, longest_gap_s=(3.0, 4.0), last_lost_s=3.0))
    bed = cast(Any, pair.maker.setup.bed)
    report = {"off_s": 0.1, "boot_s": 2.0} | ({"brought_anew": True} if anew else {})
    bed.no_power_switch, bed.power_cycle = (lambda side: ""), (lambda side, guard: report)
    monkeypatch.setattr(pair.stack, "revive", lambda side: None)
    finding = answered(made(Reset(what="power", repeats=1)), pair)
    assert finding.status == "OK"
    assert any("brings its agent and the daemon" in text.text for text in finding.rfc2544_deviations) == anew


def test_a_box_without_a_switch_says_what_it_lacks() -> None:
    pair = Pair(trial_of)
    bed = cast(Any, pair.maker.setup.bed)
    bed.no_power_switch, bed.power_cycle = (lambda side: f"{side} has no power switch"), str
    finding = answered(made(Reset(what="power", gateway="office", repeats=1, retries=0)), pair)
    assert (finding.status, [r.text for r in finding.reasons]) == ("INVALID", ["office has no power switch"])


def test_an_attack_is_judged_against_the_trial_without_it() -> None:
    """10,000 forged packets/s cost a quarter of the frames, 1,000 none."""
    lost = {0.0: 0, 1000.0: 0, 10_000.0: 2500}
    procedure = made(Attack.model_validate({"load": "1000fps", "trial": "10s"}))
    for rate, frames in lost.items():
        request = procedure.next()
        assert request is not None
        noise = [{"from": "west", "tx_frames": round(10 * rate), "departure_fps": rate}] if rate else []
        procedure.add(
            trial_of(request, frames).model_copy(update={"measured": {"attack_fps": rate, "noise": noise}})
        )
    (finding,) = procedure.results(CaseFacts("uml", "proven", []))
    assert isinstance(finding, Finding)
    quantities = values(finding)
    assert quantities["forwarding rate kept under the fastest attack"] == 75.0
    assert quantities["fastest attack without loss beyond the goal"] == 1000.0
    assert [row["attack_fps"] for row in finding.curve] == [*lost]


def test_what_a_queue_gives_out_after_the_attack_was_not_kept_under_it() -> None:
    """10,000 frames in 10 s, of which 4,000 arrived when all had left: 60 % of the rate, though none was lost."""
    procedure = made(Attack.model_validate({"load": "1000fps", "rates": ["1000fps"], "trial": "10s"}))
    for rate, backlog in ((0.0, 0), (1000.0, 4000)):
        request = procedure.next()
        assert request is not None
        trial = trial_of(request, 0)
        readings = {
            way: reading.model_copy(update={"backlog_frames": backlog})
            for way, reading in trial.per_direction.items()
        }
        noise = [{"from": "west", "tx_frames": round(10 * rate), "departure_fps": rate}] if rate else []
        update = {
            "measured": {"attack_fps": rate, "noise": noise},
            "per_direction": readings,
            "sustained": not backlog,
        }
        procedure.add(trial.model_copy(update=update))
    (finding,) = procedure.results(CaseFacts("uml", "proven", []))
    assert isinstance(finding, Finding)
    assert values(finding)["forwarding rate kept under the fastest attack"] == 60.0


def test_public_key_operations_of_both_gateways() -> None:
    finding = answered(made(PublicKey()), Pair())
    quantities = values(finding)
    assert (quantities["RSA-2048 sign, home"], quantities["X25519 derive, office"]) == (2000.0, 31705.0)
    assert "2,000 times/s" in finding.words


@pytest.mark.parametrize("group", ["modp2048", "modp3072", "ecp256", "ecp384", "x25519"])
@pytest.mark.parametrize("auth", ["psk", "certificates"])
def test_every_proposal_has_its_operations(group: str, auth: str) -> None:
    """RSA only where there are certificates."""
    algorithms, needed = public_key_speed.of_set_up(f"aes128-sha256-{group}", auth)
    assert ("rsa2048" in algorithms) == ("RSA-2048 sign" in needed) == (auth == "certificates")


@pytest.mark.parametrize(
    ("certificate", "algorithm", "sign"),
    [
        ("rsa1024", "rsa1024", "RSA-1024 sign"),
        ("rsa4096", "rsa4096", "RSA-4096 sign"),
        ("ecdsa384", "ecdsap384", "ECDSA P-384 sign"),
        ("ed25519", "ed25519", "Ed25519 sign"),
    ],
)
def test_the_bound_is_of_the_kind_of_certificate(
    certificate: CertificateKey, algorithm: str, sign: str
) -> None:
    """One signature, and the peer's and its certificate's verified."""
    algorithms, needed = public_key_speed.of_set_up("aes128-sha256-ecp256", "certificates", certificate)
    verify = sign.replace("sign", "verify")
    assert algorithms == ("ecdhp256", algorithm)
    assert needed == ("ECDH P-256 derive", sign, verify, verify)


def test_ed25519_in_openssl_s_words() -> None:
    """Its name is behind the bits."""
    (sign, verify) = public_key_speed.parse("+F6:0:253:Ed25519:26025.000000:9221.052632\n")
    assert (sign.name, sign.per_s, verify.name, verify.per_s) == (
        "Ed25519 sign", 26025.0, "Ed25519 verify", 9221.052632,
    )  # fmt: skip


def test_openssl_s_words() -> None:
    rates = {operation.name: operation.per_s for operation in public_key_speed.parse(SPEED)}
    assert rates["DH 2048 derive"] == 3707.594937
    assert rates["ECDSA P-256 verify"] == 13440.206186
    assert len(rates) == 9


def test_quantities_have_a_unit() -> None:
    """The report prints it beside each figure."""
    pair = Pair()
    finding = answered(made(SetUpRate(tunnels=3)), pair)
    assert all(isinstance(q, Quantity) and q.unit for q in finding.quantities)
    assert [*map(str, finding.rfc2544_deviations)] == ["ipsec-meth 12: 3 tunnels instead of 100"]


def test_what_fails_in_a_test_costs_the_trial_and_never_the_pair_for_good() -> None:
    """A daemon that refuses a test's own options would agree to the plan's; any other error is a broken trial."""
    pair = Pair()

    def refuse(numbers: Sequence[int], timeout_s: float) -> None:
        raise NegotiationFailed("AUTHENTICATION_FAILED", final=True)

    pair.daemons["home"].bring_up = refuse  # type: ignore[method-assign]
    procedure = made(SetUpRate())
    request = procedure.next()
    assert request is not None
    with pytest.raises(NegotiationFailed, match="AUTHENTICATION_FAILED") as caught:
        procedure.measure(request, pair.maker)
    assert not caught.value.final

    def die(request: Request, actions: Sequence[Action]) -> Trial:
        raise EspbenchError("no answer")

    gateways = {"home": SimpleNamespace(alive=lambda: True)}
    setup = replace(pair.maker.setup, bed=cast(Testbed, SimpleNamespace(gateways=gateways, **_REAL_TIME)))
    attack = made(Attack.model_validate({"load": "1000fps"}))
    with pytest.raises(TrialBroken, match="no answer"):
        attack.measure(Request(1000.0, 1.0, "measure"), TrialMaker(setup, die))


def test_a_daemon_that_died_is_named_with_its_gateway() -> None:
    pair = Pair()
    assert daemons.dead(pair.maker.setup) == []
    pair.daemons["office"].died = True
    assert daemons.dead(pair.maker.setup) == ["office: exact has died"]
    assert daemons.dead(replace(pair.maker.setup, stack=None)) == []


def test_without_openssl_the_rates_are_there_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emulated board has none."""
    monkeypatch.setattr(
        SilentGateway, "run", lambda self, argv, timeout_s: CommandResult(127, "", "no openssl")
    )
    finding = answered(made(SetUpRate(tunnels=3)), Pair())
    assert (finding.status, [*map(str, finding.warnings)]) == (
        "OK",
        ["no public-key bound: home: openssl speed: no openssl"],
    )
    assert values(finding)["tunnel set-up rate"] == 50.0
    alone = answered(made(PublicKey(retries=0)), Pair())
    assert (alone.status, [*map(str, alone.reasons)]) == ("INVALID", ["home: openssl speed: no openssl"])


def test_only_a_test_that_rfc2544_has_can_keep_its_clauses() -> None:
    """A set-up rate without deviations is no RFC 2544 result; a reset is (26.6)."""
    of_ipsec = (FirstPacket, RekeyLoss, SetUpRate, RekeyRate, Capacity, Failover, Attack, PublicKey)
    assert not any(settings.of_rfc2544 for settings in of_ipsec)
    assert Reset.of_rfc2544
