# SPDX-License-Identifier: Apache-2.0
"""PSKs and certificates for one pair of gateways, kept in memory only: new for each pair, or of a seed.

In virtual time two runs are the same to the byte, so there they are the same ones in each run: functions of the
plan's seed and of a text that anybody can read here. They are no secret and protect nothing else.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from espbench.catalogue.certificate_keys import DEFAULT_KEY, CertificateKey
from espbench.platforms.base import SIDES, Side
from espbench.platforms.chance import Chance
from espbench.stacks.daemons.daemon import PKCS12_PASSWORD, Credentials

_CURVES = {"ecdsa256": ec.SECP256R1(), "ecdsa384": ec.SECP384R1()}
_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_PSK_BYTES = 32
_SEEDED_PSK = "espbench: the PSK of gateways in virtual time"
# Guests may have a clock of their own: a certificate must be valid on it too.
_VALID = timedelta(days=30)


def make(
    auth: Literal["psk", "certificates"],
    chance: Chance | None = None,
    kind: CertificateKey = DEFAULT_KEY,
) -> dict[Side, Credentials]:
    """Make what both ends of a pair need; identities are the sides' names.

    chance: a PSK of it, the same every time. kind: of the keys of both certificates and of their CA.
    """
    if auth == "psk":
        psk = secrets.token_hex(_PSK_BYTES) if chance is None else _seeded_psk(chance)
        return dict.fromkeys(SIDES, Credentials(psk=psk))
    ca_key = _key(kind)
    ca = _certificate("espbench CA", ca_key.public_key(), "espbench CA", ca_key, is_ca=True)
    return {side: _of(side, ca, ca_key, kind) for side in SIDES}


def _seeded_psk(chance: Chance) -> str:
    text = f"{_SEEDED_PSK}: {chance.said}" if chance.said else _SEEDED_PSK
    return hashlib.sha256(text.encode()).hexdigest()


def _of(side: Side, ca: x509.Certificate, ca_key: _Key, kind: CertificateKey) -> Credentials:
    key = _key(kind)
    certificate = _certificate(side, key.public_key(), "espbench CA", ca_key, is_ca=False)
    return Credentials(
        ca_pem=_pem(ca),
        certificate_pem=_pem(certificate),
        key_pem=key.private_bytes(
            serialization.Encoding.PEM,
            # The older format has no name for Ed25519.
            serialization.PrivateFormat.PKCS8
            if isinstance(key, ed25519.Ed25519PrivateKey)
            else serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        ).decode(),
        pkcs12=pkcs12.serialize_key_and_certificates(
            side.encode(),
            key,
            certificate,
            [ca],
            serialization.BestAvailableEncryption(PKCS12_PASSWORD.encode()),
        ),
    )


def _key(kind: CertificateKey) -> _Key:
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind in _CURVES:
        return ec.generate_private_key(_CURVES[kind])
    return rsa.generate_private_key(public_exponent=65537, key_size=int(kind.removeprefix("rsa")))


def _hash(key: _Key) -> hashes.SHA256 | hashes.SHA384 | None:
    """Return the hash that a certificate is signed with; Ed25519 has its own."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    is_long = isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.key_size > 256
    return hashes.SHA384() if is_long else hashes.SHA256()


def _certificate(
    subject: str,
    public: rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey,
    issuer: str,
    issuer_key: _Key,
    *,
    is_ca: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _VALID)
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )
    if not is_ca:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(subject)]), critical=False)
    return builder.sign(issuer_key, _hash(issuer_key))


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
