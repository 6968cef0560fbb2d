# SPDX-License-Identifier: Apache-2.0
"""The output of swanctl --raw is read back."""

from espbench.stacks.strongswan import vici_text

LISTED = (
    "list-sa event {gateways {uniqueid=1 version=2 state=ESTABLISHED local-host=192.0.2.1 local-port=500 "
    "local-id=home remote-id=office initiator=yes encr-alg=AES_CBC encr-keysize=128 "
    "integ-alg=HMAC_SHA2_256_128 established=3 tasks-queued=[CHILD_CREATE IKE_AUTH] "
    "child-sas {tunnel0-1 {name=tunnel0 uniqueid=1 state=INSTALLED mode=TUNNEL protocol=ESP encap=yes "
    "bytes-in=100 packets-in=2 local-ts=[198.18.0.0/16] remote-ts=[198.19.0.0/16]} "
    "tunnel1-2 {name=tunnel1 state=REKEYED}}}}"
)


def test_sections_values_and_lists_are_nested_as_charon_nests_them() -> None:
    (message,) = vici_text.messages(LISTED + "\nlist-sas reply {}\n")[:1]
    sa = message["gateways"]
    assert sa["state"] == "ESTABLISHED"
    assert sa["tasks-queued"] == ["CHILD_CREATE", "IKE_AUTH"]
    assert list(sa["child-sas"]) == ["tunnel0-1", "tunnel1-2"]
    assert sa["child-sas"]["tunnel0-1"]["packets-in"] == "2"
    assert sa["child-sas"]["tunnel0-1"]["remote-ts"] == ["198.19.0.0/16"]
    assert sa["child-sas"]["tunnel1-2"] == {"name": "tunnel1", "state": "REKEYED"}


def test_a_value_may_hold_spaces() -> None:
    text = "version reply {daemon=charon version=5.9.8 sysname=Linux release=6.1.0 some words machine=x86_64}"
    assert vici_text.parse(text)["release"] == "6.1.0 some words"
    assert vici_text.parse(text)["machine"] == "x86_64"


def test_an_empty_value_is_empty_not_its_neighbour() -> None:
    assert vici_text.parse("x {a= b=2}") == {"a": "", "b": "2"}


def test_lines_without_a_message_are_passed_over() -> None:
    assert vici_text.messages("loaded connection\n\n") == []
