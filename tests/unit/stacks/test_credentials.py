# SPDX-License-Identifier: Apache-2.0
"""Secrets of a pair: new each time, but of a seed where two runs are to be the same."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from espbench.catalogue.certificate_keys import CertificateKey
from espbench.platforms.chance import Chance
from espbench.stacks.daemons import credentials


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
