# SPDX-License-Identifier: Apache-2.0
"""Lists the kinds of keys that certificates may have, with their names in plans, in reports and in OpenSSL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

CertificateKey = Literal["rsa1024", "rsa2048", "rsa3072", "rsa4096", "ecdsa256", "ecdsa384", "ed25519"]
DEFAULT_KEY: CertificateKey = "rsa2048"


@dataclass(frozen=True)
class KeyFacts:
    """The names of one kind of key.

    shown: for people. speed: in `openssl speed`. charon: how strongSwan's name of a signature with it begins.
    """

    shown: str
    speed: str
    charon: str


CERTIFICATE_KEYS: Mapping[CertificateKey, KeyFacts] = {
    "rsa1024": KeyFacts("RSA-1024", "rsa1024", "RSA"),
    "rsa2048": KeyFacts("RSA-2048", "rsa2048", "RSA"),
    "rsa3072": KeyFacts("RSA-3072", "rsa3072", "RSA"),
    "rsa4096": KeyFacts("RSA-4096", "rsa4096", "RSA"),
    "ecdsa256": KeyFacts("ECDSA P-256", "ecdsap256", "ECDSA"),
    "ecdsa384": KeyFacts("ECDSA P-384", "ecdsap384", "ECDSA"),
    "ed25519": KeyFacts("Ed25519", "ed25519", "ED25519"),
}
NSS_KEYS: tuple[CertificateKey, ...] = ("rsa2048", "rsa3072", "rsa4096")
"""The kinds of keys that espbench can give to libreswan."""
