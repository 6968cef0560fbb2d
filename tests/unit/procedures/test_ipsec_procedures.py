# SPDX-License-Identifier: Apache-2.0
"""The IPsec tests on daemons and gateways whose truth is known by arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.catalogue.certificate_keys import CertificateKey
from espbench.errors import EspbenchError
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken
from espbench.measure.proof.readiness import InClear, NotReady
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
from espbench.platforms.base import CommandResult, Testbed
from espbench.procedures.ipsec import capacity, rekey_rate, set_up_rate
from espbench.procedures.ipsec.ipsec_common import restarted
from espbench.procedures.ipsec.rekey_rate import busy_s
from espbench.procedures.procedure import TrialMaker
from espbench.sentences import Code
from espbench.stacks.daemons import public_key_speed
from espbench.stacks.daemons.daemon import IkeOptions, NegotiationFailed
from espbench.stacks.daemons.sa_events import SaEvent, Span
from espbench.terms import Quantity, Trial
from support.simulated import ike_pair
from support.simulated.ike_pair import (
    REAL_TIME,
    SPEED,
    Pair,
    SilentGateway,
    answered,
    made,
    trial_of,
    values,
)


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


@pytest.mark.parametrize(("home", "office", "bound"), [(1, 1, 1), (8, 8, 8), (8, 2, 2)])
def test_set_ups_together_are_bound_by_all_cpus_of_the_slower_gateway(
    home: int, office: int, bound: int
) -> None:
    """One set-up costs each gateway 0.59 ms of CPU time (1/20,000 + 1/2,000 + 2/50,000 s)."""
    pair = Pair(auth="certificates")
    for side, n in (("home", home), ("office", office)):
        cast(Any, pair.maker.setup.bed.gateways)[side].cpus = n
    quantities = values(answered(made(SetUpRate(tunnels=100, together=True)), pair))
    assert quantities["public-key bound"] == pytest.approx(bound * 1e3 / 0.59, abs=1e-3)
    overhead = quantities["protocol and other overhead"]
    assert overhead == pytest.approx(100 * (1 - 0.59 / 20 / bound), abs=0.01)


@pytest.mark.parametrize("together", [False, True])
def test_a_rate_beyond_openssls_has_no_bound(monkeypatch: pytest.MonkeyPatch, *, together: bool) -> None:
    """A daemon's library may be faster than OpenSSL; there is no overhead below zero."""
    for name in ("PHASE_1", "TUNNEL"):
        monkeypatch.setattr(ike_pair, name, 0.0001)
    finding = answered(made(SetUpRate(tunnels=100, together=together)), Pair(auth="certificates"))
    (warning,) = finding.warnings
    assert (finding.status, warning.code) == ("OK", Code.FASTER_THAN_PUBLIC_KEY)
    assert not {"public-key bound", "protocol and other overhead"} & {*values(finding)}
    assert "would allow" not in finding.words


@pytest.mark.parametrize(
    ("status", "cpuinfo", "n"),
    [
        ("Cpus_allowed:\tff\nCpus_allowed_list:\t0-7\n", "processor\t: 0\nprocessor\t: 1\n", 2),
        ("Cpus_allowed_list:\t1,3,5-6\n", "processor\t: 0\n" * 8, 4),
        ("Cpus_allowed_list:\t0\n", None, 1),
    ],
)
def test_the_cpus_of_a_gateway_are_those_that_its_programs_may_use(
    status: str, cpuinfo: str | None, n: int
) -> None:
    texts = {"/proc/self/status": status, "/proc/cpuinfo": cpuinfo}
    gateway = SimpleNamespace(side="home", read=lambda paths: {path: texts[path] for path in paths})
    assert public_key_speed.cpus(cast(Any, gateway)) == n


@pytest.mark.parametrize("together", [False, True])
def test_set_ups_within_the_same_millisecond_of_the_log_have_a_rate(
    monkeypatch: pytest.MonkeyPatch, *, together: bool
) -> None:
    """A daemon's log may show that a set-up took no time."""
    for name in ("PHASE_1", "PHASE_2", "TUNNEL"):
        monkeypatch.setattr(ike_pair, name, 0.0)
    finding = answered(made(SetUpRate(tunnels=1, public_key=False, together=together)), Pair())
    assert values(finding)["tunnel set-up rate"] == 1000.0


def test_a_daemon_that_shares_its_ike_sa_has_no_tunnel_rate() -> None:
    """Counted are IKE SAs, not what was asked for."""
    pair = Pair()
    pair.daemons["home"].shares = True
    finding = answered(made(SetUpRate(tunnels=5, retries=0, public_key=False)), pair)
    assert finding.status == "INVALID"
    assert "1 tunnels with an IKE SA each were set up, but 5 were asked for" in finding.reasons[0].text


def test_rekey_rates_are_of_the_time_in_which_rekeys_are_under_way() -> None:
    """10 SAs that end one after the other, 4 ms each, no two at once: 250 a second, for two lifetimes."""
    pair = Pair()
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


def test_a_tester_that_cannot_send_is_no_end_of_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator sent too few probe frames: nobody knows what the tunnels carry, so the trial is broken."""

    def show(setup: Setup, case: Case, tunnels: int) -> dict[str, Any]:
        if tunnels > 20:
            raise NotReady("the generator sent 10 of 80 probe frames", Code.PROBES_NOT_SENT)
        return {}

    monkeypatch.setattr(capacity, "show_all_carry", show)
    with pytest.raises(NotReady, match="sent 10 of 80"):
        answered(made(Capacity(limit=60, step=20)), Pair())


def test_probe_frames_that_are_lost_end_a_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(setup: Setup, case: Case, tunnels: int) -> dict[str, Any]:
        if tunnels > 20:
            raise NotReady("79 of 80 frames arrived", Code.PROBES_LOST)
        return {}

    monkeypatch.setattr(capacity, "show_all_carry", show)
    finding = answered(made(Capacity(limit=60, step=20)), Pair())
    assert (finding.status, finding.quantities[0].value) == ("OK", 20)
    assert "40 did not: 79 of 80 frames arrived" in finding.words


@pytest.mark.parametrize(("slow_s", "most"), [(2.1, 20), (1.9, 60)])
def test_a_step_that_takes_longer_than_trial_is_the_last(
    slow_s: float, most: int, carried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second step takes this long, of 2 s; it is not even shown to carry, and the figure is of the first."""
    pair = Pair()
    home = pair.daemons["home"]
    bring_up = home.bring_up

    def slowly(numbers: Sequence[int], timeout_s: float) -> None:
        bring_up(numbers, timeout_s)
        if 20 in numbers:
            pair.clock.now += slow_s - 20 * ike_pair.TUNNEL

    monkeypatch.setattr(home, "bring_up", slowly)
    finding = answered(made(Capacity.model_validate({"limit": 60, "step": 20, "trial": "2s"})), pair)
    assert (finding.status, finding.quantities[0].value) == ("OK", most)
    assert carried == list(range(20, most + 1, 20))
    assert ("40 did not: the step took 2.1 s, longer than trial (2 s)" in finding.words) == (most == 20)


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


@pytest.mark.parametrize("waits", [(0.0, 0.0), (2.0, 7.0), (6.0, 12.0)], ids=str)
def test_rekey_loss_counts_the_rekeys_of_a_gateway_that_rekeys_every_five_seconds(
    waits: tuple[float, float],
) -> None:
    """17 s of traffic: three rekeys, two frames lost at each; those in the waits around it are not counted."""
    pair = Pair(lambda request: trial_of(request, lost=6), waits)
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
    asked: list[IkeOptions] = []

    def events(after: int = 0) -> list[SaEvent]:
        asked.append(pair.stack.options)
        up_s = max(home.up.values())
        if not after:
            return [SaEvent(up_s, 2, "established", "up", "0")]
        return [
            event
            for number in range(rekeys)
            for event in (
                SaEvent(up_s + number, 2, "begun", str(number), "0"),
                SaEvent(up_s + number + 0.01, 2, "rekeyed", str(number), "0"),
            )
        ]

    home.events = events  # type: ignore[method-assign]
    settings = {"load": "1000fps", "trial": "17s", "lifetime_bytes": "400kB", "retries": 0}
    finding = answered(made(RekeyLoss.model_validate(settings)), pair)
    assert finding.status == status
    assert {(options.lifetime_bytes, options.lifetime_s) for options in asked} == {(400_000, 0.0)}
    if status == "OK":
        assert values(finding)["lifetime of the ESP SAs in bytes"] == 400_000
    else:
        assert "7 rekeys were seen; at least 8 were due" in finding.reasons[0].text


def test_the_draft_asks_for_a_third_of_the_trial() -> None:
    assert RekeyLoss.model_validate({"trial": "61s"}).lifetime_s == 20


def test_public_key_operations_of_both_gateways() -> None:
    finding = answered(made(PublicKey()), Pair())
    quantities = values(finding)
    assert (quantities["RSA-2048 sign, home"], quantities["X25519 derive, office"]) == (2000.0, 31705.0)
    assert "2,000 times/s" in finding.words


def test_public_key_operations_that_did_not_come_are_told() -> None:
    """A warning lists them for each gateway; all other operations keep their rates."""
    pair = Pair()
    lines = [line for line in SPEED.splitlines(keepends=True) if not line.startswith("+F2")]
    pair.maker.setup.bed.gateways["office"].run = (  # type: ignore[method-assign]
        lambda argv, stdin="", timeout_s=30.0: CommandResult(0, "".join(lines), "")
    )
    finding = answered(made(PublicKey()), pair)
    home, office = (warning.values["operations"] for warning in finding.warnings)
    assert finding.status == "OK"
    assert ("RSA-2048 sign" in home, "RSA-2048 sign" in office) == (False, True)
    assert "RSA-2048 sign, home" in values(finding)


def test_the_set_up_rate_needs_no_public_key_operation() -> None:
    """An OpenSSL that gives no rate of a certificate's signature costs the bound, not the rates."""
    pair = Pair(auth="certificates", certificate="rsa1024")
    finding = answered(made(SetUpRate(tunnels=3)), pair)
    (warning,) = finding.warnings
    assert warning.text == (
        "no public-key bound: home: openssl speed gave no rate of RSA-1024 sign, RSA-1024 verify"
    )
    assert finding.status == "OK"


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


@pytest.mark.parametrize("more", ["", ":48000.000000:1900.000000"], ids=["3.0", "3.2"])
def test_rsa_in_the_words_of_every_openssl(more: str) -> None:
    """Since 3.2 the rates of encryption and decryption follow."""
    operations = public_key_speed.parse(f"+F2:2:2048:2000.000000:50000.000000{more}\n")
    assert {o.name: o.per_s for o in operations} == {"RSA-2048 sign": 2000.0, "RSA-2048 verify": 50000.0}


def test_every_operation_asked_for_has_the_name_of_its_line() -> None:
    """A rate under another name would be told as absent."""
    text = "".join(
        f"+F2:0:{bits}:1.0:1.0:1.0:1.0\n" for bits in (512, 1024, 2048)
    ) + "+F4:0:256:1:1\n+F4:0:384:1:1\n+F5:0:256:1:1\n+F5:0:384:1:1\n+F5:0:253:1:1\n"  # fmt: skip
    came = [operation.name for operation in public_key_speed.parse(text)]
    wanted = [name for names in public_key_speed.OPERATIONS.values() for name in names]
    assert public_key_speed.absent(wanted, came) == public_key_speed.absent(came, wanted) == []


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
    setup = replace(pair.maker.setup, bed=cast(Testbed, SimpleNamespace(gateways=gateways, **REAL_TIME)))
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
