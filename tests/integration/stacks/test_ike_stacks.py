# SPDX-License-Identifier: Apache-2.0
"""Every stack on real gateways: it negotiates, carries what it encrypted, and fails in its own words.

Libreswan's suites, options and failures are in test_libreswan_pair.py, static SAs in test_xfrm_options.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from espbench.catalogue.suites import suites
from espbench.measure.inputs.setup import Setup, TrialBroken
from espbench.measure.proof import readiness
from espbench.stacks import policies
from espbench.stacks.daemons.daemon import Credentials, NegotiationFailed
from espbench.stacks.libreswan import pluto
from espbench.stacks.strongswan import strongswan_config
from support.gateways.workshop import TRAFFIC, Workshop, established, trial_of
from support.session.slow import slow_but

pytestmark = [pytest.mark.uml, pytest.mark.untimed]

QUICK = [("strongswan", "aes128gcm16"), ("libreswan", "aes128gcm16"), ("strongswan-libipsec", "aes128gcm16")]
# strongSwan with aes128-sha1 is in the test that looks for secrets.
OTHERS = [
    ("strongswan", "3des-sha1"), ("strongswan", "null-sha1"), ("strongswan-libipsec", "3des-sha1"),
    ("strongswan-libipsec", "aes128-sha1"), ("strongswan-libipsec", "null-sha1"),
]  # fmt: skip


@pytest.mark.parametrize(("stack", "suite"), slow_but(QUICK, [*QUICK, *OTHERS]))
def test_each_stack_negotiates_each_suite_and_carries_traffic(shop: Workshop, stack: str, suite: str) -> None:
    """Real daemons, real kernels: as many frames encrypted and decrypted as were sent.

    On a busy machine the tester may end a trial before all intended frames are sent.
    """
    with shop.pair(stack, suite) as (setup, _):
        context = established(setup)
        trial = trial_of(setup)
    assert trial.proof == {"kind": trial.proof["kind"], "proven": True, "problems": []}
    assert trial.rx_frames == trial.tx_frames >= 20
    home, office = trial.gateways["home"], trial.gateways["office"]
    for sender, receiver in ((home, office), (office, home)):
        assert sender.encrypted_frames == receiver.decrypted_frames
    assert home.encrypted_frames is not None
    assert office.encrypted_frames is not None
    assert home.encrypted_frames + office.encrypted_frames == trial.tx_frames
    expected = suites()[suite].integrity or suites()[suite].aead
    assert expected is not None
    if stack == "strongswan-libipsec":
        assert "Swan" in context["home"]["daemon"]
    else:
        assert expected.kernel_name in str(context["home"]["security_associations"])


@pytest.mark.slow
def test_a_daemon_that_deletes_the_policies_leaves_cleartext_blocked(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libreswan 5 deletes all policies of the kernel when it starts; here version 4 is made to.

    The Security Context has no mismatch, so the policies that block are there.
    """
    start = pluto.Libreswan.start

    def and_delete(daemon: pluto.Libreswan) -> None:
        start(daemon)
        policies.flush(daemon._gateway)

    monkeypatch.setattr(pluto.Libreswan, "start", and_delete)
    with shop.pair("libreswan", "aes128gcm16") as (setup, _):
        established(setup)
        trial = trial_of(setup)
    assert trial.rx_frames == trial.tx_frames
    assert trial.proof["proven"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("home", "office", "auth"),
    [("libreswan", "strongswan", "psk"), ("strongswan", "libreswan", "certificates")],
)
def test_the_daemons_interoperate(shop: Workshop, home: str, office: str, auth: str) -> None:
    """Home's is not Office's; the Security Context names both."""
    with shop.pair({"home": home, "office": office, "auth": auth}, "aes128gcm16") as (setup, _):
        context = established(setup)
        trial = trial_of(setup)
    assert trial.proof["proven"] is True
    assert trial.rx_frames == trial.tx_frames
    for side, name in (("home", home), ("office", office)):
        assert name in context["stack_version"][side].lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stack", "certificate", "shown"),
    [
        ("strongswan", "rsa1024", "RSA-1024"),
        ("strongswan", "rsa4096", "RSA-4096"),
        ("strongswan", "ecdsa384", "ECDSA P-384"),
        ("strongswan", "ed25519", "Ed25519"),
        ("libreswan", "rsa4096", "RSA-4096"),
    ],
)
def test_each_kind_of_certificate_authenticates(
    shop: Workshop, stack: str, certificate: str, shown: str
) -> None:
    """The daemon reads the key, and its log names the kind of signature (else there are mismatches).

    The default, RSA-2048, is in the test of options; ECDSA P-256 is in boards/x86/test_x86_ike.py.
    """
    options = {"stack": stack, "auth": "certificates", "certificate": certificate}
    with shop.pair(options, "aes128gcm16") as (setup, _):
        context = established(setup)
        trial = trial_of(setup)
    assert f"{shown} certificates" in context["keying"]
    assert trial.proof["proven"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "shows"),
    [
        ({"auth": "certificates", "esn": True, "replay_window": 128}, {"esn": True, "replay_window": 128}),
        ({"udp_encapsulation": True, "df": "clear"}, {"udp_encapsulation": "4500 → 4500", "df": "cleared"}),
        ({"ike": "aes256-sha384-modp2048", "replay_window": 0}, {"replay_window": 0}),
    ],
    ids=["certificates, ESN", "in UDP, DF cleared", "no replay check"],
)
def test_options_are_what_the_kernel_then_holds(
    shop: Workshop, options: dict[str, Any], shows: dict[str, Any]
) -> None:
    """Each key of a stack, read back from the running gateways."""
    with shop.pair({"stack": "strongswan", **options}, "aes128gcm16") as (setup, _):
        context = established(setup)
        trial = trial_of(setup)
    assert trial.proof["proven"] is True
    inbound = next(sa for sa in context["home"]["security_associations"] if sa["to"] == "192.0.2.1")
    assert {key: inbound[key] for key in shows} == shows


@pytest.mark.slow
def test_many_tunnels_share_the_traffic(shop: Workshop) -> None:
    """Twelve tunnels: every one of them carries its share, both ways."""
    tunnels = 12
    with shop.pair({"stack": "strongswan", "tunnels": tunnels}, "aes128gcm16") as (setup, _):
        traffic = replace(TRAFFIC, tunnels=tunnels, tunnel_bits=20)
        established(setup, traffic)
        trial = trial_of(setup, traffic)
        listing = setup.bed.gateways["home"].run(["ip", "-s", "xfrm", "state"]).out
    assert trial.proof["proven"] is True
    assert trial.rx_frames == trial.tx_frames
    assert listing.count("(packets)") >= 2 * tunnels
    assert "\t  0(bytes), 0(packets)" not in listing


@pytest.mark.slow
def test_a_wrong_psk_is_told_in_the_daemons_own_words(shop: Workshop) -> None:
    with shop.pair("strongswan", "aes128gcm16") as (setup, _):
        tamper(setup, "home", credentials=Credentials(psk="c0ffee" * 8))
        text = failure(setup)
    assert "AUTH" in text.upper()
    assert "c0ffee" not in text


@pytest.mark.slow
def test_no_common_proposal_is_told_in_the_daemons_own_words(shop: Workshop) -> None:
    with shop.pair("strongswan", "aes128gcm16") as (setup, _):
        tamper(setup, "office", suite=suites()["3des-sha1"])
        text = failure(setup)
    assert "PROPOSAL" in text.upper()


@pytest.mark.slow
def test_a_dead_peer_is_told_within_seconds(shop: Workshop) -> None:
    """Charon counts its retransmissions."""
    with shop.pair("strongswan", "aes128gcm16") as (setup, _):
        assert setup.stack is not None
        dead = setup.stack.daemons["office"]  # type: ignore[attr-defined]
        dead.start = dead.load = lambda: None
        text = failure(setup)
    assert "retransmi" in text


def tamper(setup: Setup, side: str, **changes: Any) -> None:
    """Give one daemon something its peer does not agree with."""
    daemon = setup.stack.daemons[side]  # type: ignore[union-attr]
    daemon.end = replace(daemon.end, **changes)


def failure(setup: Setup) -> str:
    with pytest.raises(NegotiationFailed) as caught:
        readiness.establish(setup, TRAFFIC)
    return str(caught.value)


@pytest.mark.slow
def test_an_overload_of_user_space_esp_does_not_reach_the_next_trial(shop: Workshop) -> None:
    """Its queue is unbounded: what a flood left in it is gone before the next trial begins."""
    with shop.pair("strongswan-libipsec", "aes128gcm16") as (setup, _):
        established(setup)
        one_way = replace(TRAFFIC, direction="one-way")
        trial_of(setup, one_way, fps=40_000, seconds=1.0)
        after = trial_of(setup, one_way, fps=200, seconds=0.5)
    assert after.proof["proven"] is True
    assert after.rx_frames == after.tx_frames


def test_a_tunnel_that_goes_down_lets_nothing_pass_in_clear(shop: Workshop) -> None:
    """The daemon takes its policies along; those that block are still there."""
    with shop.pair("strongswan", "aes128gcm16") as (setup, _):
        established(setup)
        command = (
            "SWANCTL_DIR=/run/espbench/strongswan/swanctl swanctl --terminate --ike gateways "
            "--uri unix:///run/espbench/strongswan/vici"
        )
        done = setup.bed.gateways["home"].run(["sh", "-c", command])
        assert done.rc == 0, done.err
        with pytest.raises(TrialBroken, match=r"home holds 0 of 2 SAs; office holds 0 of 2 SAs"):
            trial_of(setup)
        streams = TRAFFIC.streams(setup.bed, setup.next_hops, 400.0)
        assert [s.rx_frames for s in setup.generator.offer(streams, 0.5, 0.3).streams] == [0, 0]


CHARON = ("strongswan", "charon", strongswan_config.LOG)
PLUTO = ("libreswan", "pluto", pluto.LOG)


@pytest.mark.parametrize(
    ("stack", "program", "log", "auth"),
    slow_but([(*CHARON, "psk")], [(*CHARON, "psk"), (*CHARON, "certificates"), (*PLUTO, "certificates")]),
)
def test_no_secret_is_in_logs_or_process_lists(
    shop: Workshop, stack: str, program: str, log: str, auth: str
) -> None:
    """PSK, private key and keys of the SAs: not in the run's or the daemon's log, not in a command line."""
    with shop.pair({"stack": stack, "auth": auth}, "aes128-sha1") as (setup, _):
        established(setup)
        made = setup.stack
        assert made is not None
        credentials = made.daemons["home"].end.credentials  # type: ignore[attr-defined]
        hidden = [sa[key] for sa in made.secrets() for key in ("encryption_key", "integrity_key")]
        hidden += credentials.key_pem.splitlines()[1:-1] if auth == "certificates" else [credentials.psk]
        home = setup.bed.gateways["home"]
        commands = home.run(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).out
        daemons = home.read([log])[log] or ""
    logs = "".join(file.read_text(errors="replace") for file in shop.folder.glob("*.log"))
    # Texts and secrets are the real ones: otherwise the search below would find nothing in any case.
    assert program in commands
    assert len(daemons) > 1000
    assert program in logs
    assert len(hidden) > 4
    assert min(map(len, hidden[:-1])) >= 32
    for secret in hidden:
        assert secret not in logs
        assert secret not in commands
        assert secret not in daemons
