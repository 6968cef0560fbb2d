# SPDX-License-Identifier: Apache-2.0
"""Tests that compare what an e500 guest says of its crypto with what was asked for."""

from __future__ import annotations

import pytest

from espbench.catalogue import board_crypto
from espbench.catalogue.board_crypto import Behaviour
from espbench.catalogue.suites import suites

SAID = """behaviour={behaviour}
sec={sec}
single_pass=12
cipher=3
digest=4
polled=12
waited_ns=34567
"""
SINGLE = "authenc-hmac-sha1-cbc-3des-talitos"
DUAL = "authenc(hmac-sha1-talitos,cbc-3des-talitos)"
GENERIC = "authenc(hmac(sha1-generic),cbc(des3_ede-generic))"
NAME = "authenc(hmac(sha1),cbc(des3_ede))"
SUITE = suites()["3des-sha1"]


def block(name: str, driver: str, priority: int, selftest: str = "passed") -> str:
    return (
        f"name         : {name}\ndriver       : {driver}\nmodule       : kernel\npriority     : {priority}\n"
        f"refcnt       : 2\nselftest     : {selftest}\ninternal     : no\ntype         : aead\n\n"
    )


def guest(behaviour: str, *blocks: str, sec: str = "fsl,sec2.1") -> board_crypto.Crypto:
    texts = dict(
        zip(board_crypto.FILES, (SAID.format(behaviour=behaviour, sec=sec), "".join(blocks)), strict=True)
    )
    return board_crypto.read_back(texts)


def test_everything_is_read() -> None:
    crypto = guest("polling", block(NAME, SINGLE, 3000))
    assert (crypto.behaviour, crypto.sec, crypto.polled, crypto.waited_ns) == (
        "polling",
        "fsl,sec2.1",
        12,
        34567,
    )
    assert (crypto.single_pass, crypto.cipher, crypto.digest, crypto.descriptors) == (12, 3, 4, 19)
    assert crypto.drivers == {NAME: SINGLE}
    assert guest("software", sec="none").sec is None


@pytest.mark.parametrize("order", [1, -1])
def test_the_driver_is_the_one_that_a_user_would_get(order: int) -> None:
    """The driver has the highest priority, and it never is one that failed its test."""
    blocks = [
        block(NAME, GENERIC, 1100), block(NAME, SINGLE, 3000), block(NAME, "broken", 9000, selftest="unknown"),
    ]  # fmt: skip
    assert guest("async", *blocks[::order]).drivers == {NAME: SINGLE}


def test_esps_own_wrapping_is_taken_off() -> None:
    crypto = guest("async", block(f"echainiv({NAME})", f"echainiv({SINGLE})", 3000))
    assert board_crypto.driver(crypto, SUITE) == SINGLE
    assert board_crypto.driver(crypto, suites()["aes128-sha1"]) is None
    gcm = suites()["aes128gcm16"]
    by = "rfc4106(gcm_base(ctr-aes-talitos,ghash-generic))"
    crypto = guest("async", block("seqiv(rfc4106(gcm(aes)))", f"seqiv({by})", 3000))
    assert board_crypto.driver(crypto, gcm) == by
    assert board_crypto.mistakes("async", crypto, gcm) == []


@pytest.mark.parametrize(
    ("asked", "by"),
    [("async", SINGLE), ("polling", SINGLE + "-hsna"), ("dual-pass", DUAL), ("software", GENERIC)],
)
def test_each_behaviour_has_drivers_of_its_own(asked: Behaviour, by: str) -> None:
    assert board_crypto.mistakes(asked, guest(asked, block(NAME, by, 3000)), SUITE) == []
    others = {SINGLE, DUAL, GENERIC} - {by, by.removesuffix("-hsna")}
    for other in others:
        (problem,) = board_crypto.mistakes(asked, guest(asked, block(NAME, other, 3000)), SUITE)
        assert asked in problem
        assert other in problem


def test_another_behaviour_is_named() -> None:
    (problem,) = board_crypto.mistakes("polling", guest("async", block(NAME, SINGLE, 3000)), SUITE)
    assert problem == "crypto: expected polling, the guest's kernel says async"
    (problem,) = board_crypto.mistakes("async", guest("async"), SUITE)
    assert NAME in problem


def test_half_of_a_dual_pass_in_software_is_found() -> None:
    half = "authenc(hmac(sha1-generic),cbc-3des-talitos)"
    assert board_crypto.mistakes("dual-pass", guest("dual-pass", block(NAME, half, 3000)), SUITE)
    assert board_crypto.mistakes("software", guest("software", block(NAME, half, 3000)), SUITE)
