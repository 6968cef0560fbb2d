# SPDX-License-Identifier: Apache-2.0
"""charon's answers judged: what is as asked for is no mismatch, each thing that is not is one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from espbench.catalogue.suites import suites
from espbench.stacks.daemons.daemon import End, IkeOptions, final_words
from espbench.stacks.strongswan import strongswan_status as status
from support.gateways import ends

END = replace(ends.END, suite=suites()["aes128-sha1"], options=IkeOptions(udp_encapsulation=True))
CHILD = {
    "state": "INSTALLED", "mode": "TUNNEL", "protocol": "ESP", "encap": "yes", "encr-alg": "AES_CBC",
    "encr-keysize": "128", "integ-alg": "HMAC_SHA1_96", "packets-in": "7",
}  # fmt: skip
SA: dict[str, Any] = {
    "state": "ESTABLISHED", "local-id": "home", "remote-id": "office", "encr-alg": "AES_CBC", "encr-keysize": "128",
    "integ-alg": "HMAC_SHA2_256_128", "prf-alg": "PRF_HMAC_SHA2_256", "dh-group": "ECP_256",
    "child-sas": {
        f"tunnel{n}-{n}": CHILD | {"name": f"tunnel{n}", "local-ts": [own], "remote-ts": [peer]}
        for n, (own, peer) in enumerate(END.tunnels)
    },
}  # fmt: skip
LOG = """\
06[IKE] <gateways|1> authentication of 'home' (myself) with pre-shared key
08[IKE] <gateways|1> authentication of 'office' with pre-shared key successful
08[IKE] <gateways|1> IKE_SA gateways[1] established between 192.0.2.1[home]...192.0.2.2[office]
"""
PSK = ("pre-shared key", "pre-shared key")


def said(sas: list[dict[str, Any]], end: End = END, methods: tuple[str, str] = PSK) -> list[str]:
    return status.mismatches(end, sas, methods, user_space=True)


def test_an_answer_as_asked_has_no_mismatch() -> None:
    assert status.authentication(LOG) == PSK
    assert said([SA]) == []


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("state", "REKEYING", "IKE SA: expected ESTABLISHED, charon has REKEYING"),
        (
            "encr-keysize",
            "256",
            "IKE proposal: expected AES_CBC_128-HMAC_SHA2_256_128-PRF_HMAC_SHA2_256-ECP_256",
        ),
        (
            "prf-alg",
            "PRF_HMAC_SHA1",
            "IKE proposal: expected AES_CBC_128-HMAC_SHA2_256_128-PRF_HMAC_SHA2_256",
        ),
        ("dh-group", "MODP_2048", "IKE proposal: expected AES_CBC_128"),
        ("remote-id", "somebody", "peer's identity: expected office, charon has somebody"),
        ("child-sas", {}, "no child between 198.18.0.0/17 and 198.19.0.0/17"),
    ],
)
def test_each_mismatch_of_the_ike_sa_is_found(key: str, value: Any, words: str) -> None:
    assert any(problem.startswith(words) for problem in said([SA | {key: value}]))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("state", "REKEYED", "no child between 198.18.128.0/17 and 198.19.128.0/17"),
        ("remote-ts", ["198.19.0.0/16"], "no child between 198.18.128.0/17 and 198.19.128.0/17"),
        ("mode", "TRANSPORT", "mode: expected TUNNEL, charon has TRANSPORT"),
        ("encap", "no", "UDP encapsulation: expected yes, charon has no"),
        (
            "encr-keysize",
            "256",
            "suite: expected AES_CBC_128-HMAC_SHA1_96, charon has AES_CBC_256-HMAC_SHA1_96",
        ),
    ],
)
def test_each_mismatch_of_a_child_is_found(key: str, value: Any, words: str) -> None:
    """One of two children differs."""
    sa = deepcopy(SA)
    sa["child-sas"]["tunnel1-1"][key] = value
    assert said([sa]) == [words]


def test_a_second_ike_sa_and_another_authentication_are_mismatches() -> None:
    assert said([SA, SA]) == ["2 IKE SAs instead of 1"]
    certificates = replace(END, options=replace(END.options, auth="certificates"))
    assert said([SA], certificates) == ["authentication: expected RSA, charon's log says pre-shared key"]
    assert said([SA], certificates, ("RSA_EMSA_PKCS1_SHA2_384", "RSA_EMSA_PKCS1_SHA2_384")) == []
    assert said([SA], methods=status.authentication("nothing of the kind"))
    ed25519 = replace(END, options=replace(certificates.options, certificate="ed25519"))
    assert said([SA], ed25519, ("ED25519", "ED25519")) == []
    assert said([SA], ed25519, ("ED25519", "RSA_EMSA_PKCS1_SHA2_256")) == [
        "authentication: expected ED25519, charon's log says RSA_EMSA_PKCS1_SHA2_256"
    ]


def test_the_last_telling_lines_are_the_reason() -> None:
    log = LOG + "09[IKE] <gateways|2> received AUTHENTICATION_FAILED notify error\n"
    assert status.reason(log) == "received AUTHENTICATION_FAILED notify error"
    assert status.reason(LOG) == ""


@pytest.mark.parametrize(
    ("text", "final"),
    [
        ("received AUTHENTICATION_FAILED notify error", True),
        ("tried 1 shared key for 'office' - 'home', but MAC mismatched", True),
        ("received NO_PROPOSAL_CHOSEN notify error", True),
        ("received TS_UNACCEPTABLE notify, no CHILD_SA built", True),
        ("no local proposal matches remote proposals 1:ESP", True),
        ("giving up after 3 retransmits", False),
        ("8 second timeout exceeded after 4 retransmits. No response", False),
        ("Connection refused", False),
        ("charon has died (out of memory?)", False),
    ],
)
def test_an_answer_is_final_and_silence_is_not(text: str, final: bool) -> None:
    assert final_words(text) is final


def test_swanctls_complaint_is_the_line_that_says_why() -> None:
    """The line is not that an empty folder is none, nor how many connections there are."""
    why = "loading connection 'gateways' failed: invalid value for: proposals"
    folder = "opening directory '/run/x509aa' failed: No such file or directory"
    assert status.complaint(f"{folder}\n{why}\nloaded 0 of 1 connections\n") == why
    assert status.complaint("one\ntwo\n") == "two"
    assert status.complaint("") == ""
