# SPDX-License-Identifier: Apache-2.0
"""libreswan without a daemon: proposals and configuration in its words, its answers parsed, its mismatches."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.catalogue.suites import suites
from espbench.plan.keys.stack_choice import IKE_WORDS
from espbench.platforms.base import CommandResult, Gateway
from espbench.stacks.daemons.builds import Build
from espbench.stacks.daemons.daemon import Credentials, End
from espbench.stacks.libreswan import libreswan_config as config
from espbench.stacks.libreswan import libreswan_status as status
from espbench.stacks.libreswan.pluto import Libreswan, mismatches
from espbench.stacks.strongswan import strongswan_status
from support.gateways.ends import END

# Pluto 4.10 answered this, shortened to the lines that matter and a few that do not.
STATUS = """\
000 using kernel interface: xfrm
000 pluto_version=4.10, pluto_vendorid=OE-Libreswan-4.10, audit-log=yes
000 Connection list:
000
000 "t0": 198.18.0.0/17===192.0.2.1[@home]...192.0.2.2[@office]===198.19.0.0/17; erouted; eroute owner: #3
000 "t0":   our auth:secret, their auth:secret, our autheap:none, their autheap:none;
000 "t0":   modecfg info: us:none, them:none, modecfg policy:push, dns:unset, domains:unset, cat:unset;
000 "t0":   ike_life: 86400s; ipsec_life: 86400s; ipsec_max_bytes: 2^63B; replay_window: 32; rekey_margin: 8640s;
000 "t0":   policy: IKEv2+PSK+ENCRYPT+TUNNEL+DONT_REKEY+UP+IKE_FRAG_ALLOW+ESN_NO+failureDROP;
000 "t0":   v2-auth-hash-policy: none;
000 "t0":   nat-traversal: encaps:no; keepalive:no
000 "t0":   ESP algorithm newest: 3DES_CBC_192-HMAC_SHA1_96; pfsgroup=<N/A>
000 "t1": 198.18.128.0/17===192.0.2.1[@home]...192.0.2.2[@office]===198.19.128.0/17; erouted; eroute owner: #2
000 "t1":   our auth:secret, their auth:secret, our autheap:none, their autheap:none;
000 "t1":   ike_life: 86400s; ipsec_life: 86400s; ipsec_max_bytes: 2^63B; replay_window: 32; rekey_margin: 8640s;
000 "t1":   policy: IKEv2+PSK+ENCRYPT+TUNNEL+DONT_REKEY+UP+IKE_FRAG_ALLOW+ESN_NO+failureDROP;
000 "t1":   nat-traversal: encaps:no; keepalive:no
000 "t1":   IKEv2 algorithm newest: AES_CBC_128-HMAC_SHA2_256-DH19
000 "t1":   ESP algorithm newest: 3DES_CBC_192-HMAC_SHA1_96; pfsgroup=<N/A>
000
000 Total IPsec connections: loaded 2, active 2
000 #2: "t1":500 STATE_V2_ESTABLISHED_CHILD_SA (established Child SA); EXPIRE in 86348s; newest; eroute owner; idle;
"""
# Debian 13 has it so.
STATUS_OF_5 = """\
pluto_version=5.2, pluto_vendorid=OE-Libreswan-5.2
"t0": 198.19.0.0/16===192.0.2.2[@office]...192.0.2.1[@home]===198.18.0.0/16; routed-tunnel; my_ip=unset; their_ip=unset;
"t0":   host: oriented; local: 192.0.2.2; remote: 192.0.2.1; established IKE SA: #1;
"t0":   our auth:secret, their auth:secret, our autheap:none, their autheap:none;
"t0":   ike_life: 86400s; ipsec_life: 86400s; ipsec_max_bytes: 2^63B; ipsec_max_packets: 2^63; replay_window: 32;
"t0":   policy: IKEv2+PSK+ENCRYPT+TUNNEL+DONT_REKEY+IKE_FRAG_ALLOW+ESN_NO+failureDROP;
"t0":   nat-traversal: encapsulation:no; keepalive:no
"t0":   IKE algorithms: AES_CBC_128-HMAC_SHA2_256-DH19
"t0":   IKEv2 algorithm newest: AES_CBC_128-HMAC_SHA2_256-DH19
"t0":   ESP algorithm newest: AES_GCM_16_128-NONE; pfsgroup=<N/A>

Total IPsec connections: loaded 1, active 1
#2: "t0":500 ESTABLISHED_CHILD_SA (established Child SA); EXPIRE in 86399s; newest; eroute owner; IKE SA #1; idle;
#2: "t0" esp.149dd3fa@192.0.2.1 esp.d0ad2161@192.0.2.2 tun.0@192.0.2.1 tun.0@192.0.2.2 Traffic: ESPin=24KB ESPout=24KB
"""
GLOBAL = """\
config.setup.ike.max_halfopen=50000
current.states.all=4
current.states.ipsec=2
current.states.ike=1
current.states.enumerate.STATE_V2_NEW_CHILD_I1=1
current.states.enumerate.STATE_V2_ESTABLISHED_IKE_SA=1
current.states.enumerate.STATE_V2_ESTABLISHED_CHILD_SA=2
total.ike.ikev2.established=1
"""


def with_options(**keys: Any) -> End:
    """END with other options."""
    return replace(END, options=replace(END.options, **keys))


@pytest.mark.parametrize(
    ("proposal", "conf", "shown"),
    [
        ("aes128-sha256-ecp256", "aes128-sha2_256-dh19", "AES_CBC_128-HMAC_SHA2_256-DH19"),
        ("3des-sha1-modp2048", "3des-sha1-dh14", "3DES_CBC-HMAC_SHA1-MODP2048"),
        ("aes256gcm16-sha384-ecp384", "aes_gcm_c_256-sha2_384-dh20", "AES_GCM_16_256-HMAC_SHA2_384-DH20"),
    ],
)
def test_ike_proposals_in_libreswans_words(proposal: str, conf: str, shown: str) -> None:
    """Proposals are written as ipsec.conf takes them, and as the status shows them."""
    assert config.ike_words(proposal) == (conf, shown)


def test_both_daemons_have_words_for_all_a_plan_may_propose() -> None:
    """Every IKE proposal, and every suite but ESP without any protection (RFC 4303 3.1 forbids it)."""
    for words in product(*(words for _, words in IKE_WORDS)):
        assert config.ike_words("-".join(words)).conf.count("-") == 2
        assert strongswan_status.ike_words("-".join(words)).count("-") in (2, 3)
    for known in (config.ESP, strongswan_status.ESP):
        assert set(suites()) - set(known) == {"null-null"}


def test_connections_of_a_psk_pair() -> None:
    """One connection for each tunnel, all with one alias; nothing that talks by itself; no secret."""
    text = config.connections_text(END)
    for line in (
        "left=192.0.2.1", "leftid=@home", "right=192.0.2.2", "rightid=@office", "ikev2=insist", "pfs=no",
        "ike=aes128-sha2_256-dh19", "esp=3des-sha1", "authby=secret", "replay-window=32", "esn=no",
        "encapsulation=no", "nopmtudisc=no", "rekey=no", "salifetime=86400s", "nat-keepalive=no", "mobike=no",
        "nic-offload=no",
    ):  # fmt: skip
        assert f"\n\t{line}\n" in text
    assert text.count("\nconn t") == text.count("connalias=tunnels") == 2
    assert (
        "conn t1\n\tconnalias=tunnels\n\tleftsubnet=198.18.128.0/17\n\trightsubnet=198.19.128.0/17\n" in text
    )
    assert "dpd" not in text
    assert "ipsec-interface" not in text
    assert "secret\n" in text
    assert "very secret" not in text


def test_connections_with_every_option() -> None:
    """Certificates, ESN, UDP encapsulation, DF cleared."""
    end = with_options(auth="certificates", replay_window=0, esn=True, udp_encapsulation=True, df="clear")
    text = config.connections_text(end)
    for line in (
        "authby=rsasig", "leftcert=home", "rightca=%same", "replay-window=0", "esn=yes", "encapsulation=yes",
        "nopmtudisc=yes",
    ):  # fmt: skip
        assert f"\n\t{line}\n" in text
    assert config.secrets_text(end) == ""


def test_an_interface_is_asked_for_by_its_number() -> None:
    """The XFRM interface's if_id, which is the number in pluto's name of the device."""
    assert "\n\tipsec-interface=2544\n" in config.connections_text(with_options(interface=True))


def test_what_watches_its_peer_may_bring_the_tunnel_up_again() -> None:
    """Pluto revives no connection that it may not rekey. No SA ends in a trial: they are kept for a day."""
    home = config.connections_text(with_options(dpd_s=2))
    for line in ("rekey=yes", "dpdaction=restart", "dpddelay=2s", "salifetime=86400s", "ikelifetime=86400s"):
        assert f"\n\t{line}\n" in home
    office = config.connections_text(replace(with_options(dpd_s=2), initiates=False))
    assert "\n\trekey=no\n" in office


def test_lifetimes() -> None:
    """Rekeyed by Home when the plan says so, a tenth later at an end in both."""
    home = config.connections_text(with_options(lifetime_s=60, ike_lifetime_s=600))
    for line in ("rekey=yes", "salifetime=66s", "ikelifetime=606s", "rekeymargin=6s", "rekeyfuzz=0%"):
        assert f"\n\t{line}\n" in home
    assert "ipsec-max-bytes" not in home
    in_bytes = config.connections_text(with_options(lifetime_bytes=10_000_000))
    for line in (
        "rekey=yes",
        "salifetime=86400s",
        "ipsec-max-bytes=32000000",
    ):
        assert f"\n\t{line}\n" in in_bytes
    office = config.connections_text(replace(with_options(lifetime_s=60), initiates=False))
    assert "\n\trekey=no\n" in office
    assert "\n\tsalifetime=66s\n" in office
    assert "\n\tikelifetime=86400s\n" in office


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_any_psk_is_one_word_of_the_secrets_file(psk: str) -> None:
    """Quotes, spaces and %words in it mean nothing to libreswan."""
    text = config.secrets_text(replace(END, credentials=Credentials(psk=psk)))
    start, _, digits = text.strip().partition(" 0x")
    assert start == "@home @office : PSK"
    assert bytes.fromhex(digits).decode() == psk


def test_a_status_is_parsed() -> None:
    """Algorithms, keys and tunnels of both connections."""
    read = status.status(STATUS)
    assert (read.version, read.loaded) == ("4.10", 2)
    assert read.ike == {"AES_CBC_128-HMAC_SHA2_256-DH19": 1}
    assert read.esp == {"3DES_CBC_192-HMAC_SHA1_96": 2}
    assert read.tunnels == list(END.tunnels)
    assert read.keys == {
        "policy": {"IKEv2+PSK+ENCRYPT+TUNNEL+DONT_REKEY+UP+IKE_FRAG_ALLOW+ESN_NO+failureDROP": 2},
        "our auth": {"secret": 2},
        "replay_window": {"32": 2},
        "ike_life": {"86400s": 2},
        "ipsec_life": {"86400s": 2},
        "encaps": {"no": 2},
    }


@pytest.mark.parametrize("text", ["", "whack: Pluto is not running", "000 Total IPsec connections: loaded x"])
def test_an_answer_that_is_no_status(text: str) -> None:
    """Nothing is up, nothing raises."""
    read = status.status(text)
    assert (read.loaded, read.tunnels, read.ike.total()) == (0, [], 0)
    assert status.progress(text) == status.Progress(up=0, under_way=0)


def test_progress_counts_what_is_up_and_what_is_not_yet() -> None:
    """One child is still being negotiated."""
    assert status.progress(GLOBAL) == status.Progress(up=2, under_way=1)
    of_libreswan_5 = GLOBAL.replace("STATE_V2_", "")
    assert status.progress(of_libreswan_5) == status.Progress(up=2, under_way=1)


def test_the_status_of_libreswan_5() -> None:
    """Its lines begin without 000, a tunnel that is up is `routed-tunnel`, and encapsulation is written out."""
    read = status.status(STATUS_OF_5)
    assert (read.version, read.loaded) == ("5.2", 1)
    assert read.ike == {"AES_CBC_128-HMAC_SHA2_256-DH19": 1}
    assert read.esp == {"AES_GCM_16_128-NONE": 1}
    assert read.tunnels == [("198.19.0.0/16", "198.18.0.0/16")]
    assert {key: dict(values) for key, values in read.keys.items()} == {
        "policy": {"IKEv2+PSK+ENCRYPT+TUNNEL+DONT_REKEY+IKE_FRAG_ALLOW+ESN_NO+failureDROP": 1},
        "our auth": {"secret": 1},
        "replay_window": {"32": 1},
        "ike_life": {"86400s": 1},
        "ipsec_life": {"86400s": 1},
        "encaps": {"no": 1},
    }


def test_a_status_as_asked_has_no_mismatch() -> None:
    """The key length pluto adds to a cipher with only one is none either."""
    assert mismatches(END, status.status(STATUS)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ESP algorithm newest: 3DES_CBC_192", "ESP algorithm newest: AES_CBC_128", "ESP proposal: expected 3DES_CBC"),
        ("newest: AES_CBC_128-HMAC", "newest: AES_CBC_256-HMAC", "IKE proposal: expected AES_CBC_128"),
        ("replay_window: 32", "replay_window: 64", "replay window: expected 32, libreswan has 64"),
        ("our auth:secret", "our auth:never", "authentication: expected secret, libreswan has never"),
        ("encaps:no", "encaps:yes", "UDP encapsulation: expected no, libreswan has yes"),
        ("ESN_NO", "ESN_NO+ESN_YES", "ESN: expected"),
        ("198.19.128.0/17; erouted", "198.19.128.0/18; erouted", "no SA between 198.18.128.0/17 and 198.19.128.0/17"),
        ("198.19.128.0/17; erouted", "198.19.128.0/17; unrouted", "no SA between 198.18.128.0/17 and 198.19.128.0/17"),
        ("198.18.0.0/17===192", "192", "no SA between 198.18.0.0/17 and 198.19.0.0/17"),
        ('"t1":   IKEv2 algorithm', '"t1":   nothing', "IKE SAs: expected 1, libreswan has 0"),
    ],
)  # fmt: skip
def test_each_mismatch_is_found(old: str, new: str, said: str) -> None:
    """One thing pluto has otherwise than asked for is said, whichever it is."""
    assert old in STATUS
    assert any(
        problem.startswith(said) for problem in mismatches(END, status.status(STATUS.replace(old, new)))
    )


def test_tunnels_that_are_not_up_are_a_mismatch() -> None:
    """One of two."""
    read = status.status(STATUS.replace("198.19.0.0/17; erouted", "198.19.0.0/17; unrouted"))
    assert "tunnels up: expected 2, libreswan has 1" in mismatches(END, read)


LOG = """\
Nov 21 06:43:01.859622: loading secrets from "/run/espbench/secrets"
Nov 21 06:43:02.164473: "t0" #1: initiating IKEv2 connection
Nov 21 06:43:02.167124: "t0" #1: sent IKE_SA_INIT request to 192.0.2.2:500
{line}
Nov 21 06:43:02.174122: "t0" #1: encountered fatal error in state STATE_V2_PARENT_I2
Nov 21 06:43:02.174523: "t0" #1: deleting state (STATE_V2_PARENT_I2) aged 0.010203s and NOT sending notification
"""


@pytest.mark.parametrize(
    ("line", "hopeless"),
    [
        ("IKE SA authentication request rejected by peer: AUTHENTICATION_FAILED", False),
        (
            "authentication failed: computed hash does not match hash received from peer ID_FQDN '@home'",
            False,
        ),
        ("no local proposal matches remote proposals 1:IKE:ENCR=AES_CBC_128;DH=ECP_256", False),
        ("dropping unexpected IKE_SA_INIT message containing NO_PROPOSAL_CHOSEN notification", True),
        (
            "ERROR: asynchronous network error report on vec1 (192.0.2.1:500): Connection refused [errno 111]",
            True,
        ),
        ("STATE_V2_PARENT_I1: 8 second timeout exceeded after 4 retransmits.  No response", False),
    ],
)
def test_the_reason_is_the_telling_line(line: str, hopeless: bool) -> None:
    """The reason lacks time, connection and state; its words tell whether waiting is useless."""
    log = LOG.format(line=f'Nov 21 06:43:02.174088: "t0" #1: {line}')
    assert status.reason(log) == line
    assert status.hopeless(log) is hopeless


def test_a_log_without_trouble_has_no_reason() -> None:
    """But a last line."""
    log = LOG.partition("{line}")[0]
    assert status.reason(log) == status.reason("") == status.last_line("") == ""
    assert status.last_line(log) == "sent IKE_SA_INIT request to 192.0.2.2:500"


def test_repeated_lines_are_said_once_and_the_last_three_only() -> None:
    """A retransmission's answer comes again and again."""
    lines = [f'Nov 21 06:43:02.1: "t{i % 2}" #{i}: {what} failed' for i, what in enumerate("aabbccddcc")]
    assert status.reason("\n".join(lines)) == "b failed; d failed; c failed"


def test_pluto_logs_in_a_time_zone_without_daylight_saving_time() -> None:
    """Its log has local times; an hour's jump in it would be taken for the time of a rekey."""
    scripts: list[str] = []

    def run(argv: list[str]) -> CommandResult:
        scripts.append(argv[-1])
        return CommandResult(0, "", "")

    gateway = cast(Gateway, SimpleNamespace(side="home", run=run, write=lambda *_: None))
    build = cast(Build, SimpleNamespace(programs={"pluto": "/opt/pluto", "whack": "/opt/whack"}))
    Libreswan(gateway, END, build).start()
    assert "\nTZ=UTC0 /opt/pluto --config" in scripts[-1]
