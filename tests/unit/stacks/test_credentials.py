# SPDX-License-Identifier: Apache-2.0
"""Secrets of a pair: new each time, but of a seed where two runs are to be the same."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from espbench.catalogue.certificate_keys import CertificateKey
from espbench.platforms.chance import Chance
from espbench.stacks.daemons import credentials
from support.session.slow import slow_but

KINDS = ("rsa1024", "rsa2048", "ecdsa256", "ecdsa384", "ed25519")


def test_a_pair_shares_a_psk_of_its_own() -> None:
    first, second = credentials.make("psk"), credentials.make("psk")
    assert first["home"].psk == first["office"].psk
    assert first["home"].psk != second["home"].psk


def test_in_virtual_time_every_pair_has_the_same_one() -> None:
    first, second = credentials.make("psk", Chance()), credentials.make("psk", Chance())
    assert first["home"].psk == first["office"].psk == second["home"].psk
    assert len(first["home"].psk) == 64


def test_another_seed_or_repeat_has_another_one() -> None:
    drawn = {
        credentials.make("psk", Chance(seed, repeat))["home"].psk for seed in (1, 2) for repeat in (1, 2)
    }
    assert len(drawn) == 4


def test_no_secret_is_shown() -> None:
    made = credentials.make("psk", Chance())["home"]
    assert made.psk not in repr(made)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("rsa1024", (1024, "rsa")),
        ("rsa2048", (2048, "rsa")),
        ("ecdsa256", (256, "ec")),
        ("ecdsa384", (384, "ec")),
        ("ed25519", (0, "ed")),
    ],
)
def test_a_certificate_has_the_kind_of_key_that_is_asked_for(
    kind: CertificateKey, shape: tuple[int, str]
) -> None:
    """It is signed by a CA with a key of the same kind, and the private key belongs to it."""
    made = credentials.make("certificates", kind=kind)["home"]
    certificate = x509.load_pem_x509_certificate(made.certificate_pem.encode())
    ca = x509.load_pem_x509_certificate(made.ca_pem.encode())
    certificate.verify_directly_issued_by(ca)
    public = certificate.public_key()
    assert (
        getattr(public, "key_size", 0),
        type(public).__name__.lower().lstrip("_")[: len(shape[1])],
    ) == shape
    key = load_pem_private_key(made.key_pem.encode(), None)
    assert key.public_key() == public


@pytest.mark.parametrize("kind", slow_but(set(KINDS) - {"rsa2048"}, KINDS))
def test_certificates_of_a_seed_are_the_same_and_valid_whatever_a_guests_clock_says(
    kind: CertificateKey,
) -> None:
    """A guest without a battery begins in 1970; each key fits its certificate, which the CA signed."""
    first, second = (credentials.make("certificates", Chance(), kind) for _ in range(2))
    assert first == second
    assert credentials.make("certificates", Chance(2), kind)["home"].key_pem != first["home"].key_pem
    assert first["home"].key_pem != first["office"].key_pem
    for made in first.values():
        ca = x509.load_pem_x509_certificate(made.ca_pem.encode())
        own = x509.load_pem_x509_certificate(made.certificate_pem.encode())
        own.verify_directly_issued_by(ca)
        key = load_pem_private_key(made.key_pem.encode(), None)
        assert key.public_key() == own.public_key()
        assert own.not_valid_before_utc.year == ca.not_valid_before_utc.year == 1970
        assert own.not_valid_after_utc.year > 2040
        assert not made.pkcs12
