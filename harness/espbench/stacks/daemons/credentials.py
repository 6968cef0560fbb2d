# SPDX-License-Identifier: Apache-2.0
"""Makes PSKs and certificates for one pair of gateways, in memory only: new for each pair, or derived from a seed.

In virtual time two runs must be equal to the byte, so the PSKs and keys are the same in each run. They are functions
of the plan's seed and of texts in this file, so they are not secret, and they must not protect anything else.
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
from espbench.stacks.daemons import seeded_rsa
from espbench.stacks.daemons.daemon import PKCS12_PASSWORD, Credentials

_CURVES = {"ecdsa256": ec.SECP256R1(), "ecdsa384": ec.SECP384R1()}
_Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
_EXPONENT = 65537
_PSK_BYTES = 32
_SEEDED_PSK = "espbench: the PSK of gateways in virtual time"
_SEEDED_KEY = "espbench: the key of gateways in virtual time,"
_VALID_SEEDED = datetime(1970, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)
# Guests may have their own clock; a certificate must also be valid at the time of that clock.
_VALID = timedelta(days=30)


def make(
    auth: Literal["psk", "certificates"],
    chance: Chance | None = None,
    kind: CertificateKey = DEFAULT_KEY,
) -> dict[Side, Credentials]:
    """Return the credentials of both ends of a pair; the IKE identities are the sides' names.

    chance: the seed from which all keys are derived, so that they are equal every time; None: they are random. kind:
    the kind of key of both certificates and of their CA.
    """
    if auth == "psk":
        psk = secrets.token_hex(_PSK_BYTES) if chance is None else _seeded_psk(chance)
        return dict.fromkeys(SIDES, Credentials(psk=psk))
    issuer = _Issuer(chance, kind)
    ca_key = issuer.key("CA")
    ca = issuer.certificate("espbench CA", ca_key.public_key(), "espbench CA", ca_key, is_ca=True)
    return {side: _of(issuer, side, ca, ca_key) for side in SIDES}


def _seeded_psk(chance: Chance) -> str:
    text = f"{_SEEDED_PSK}: {chance.said}" if chance.said else _SEEDED_PSK
    return hashlib.sha256(text.encode()).hexdigest()


def _of(issuer: _Issuer, side: Side, ca: x509.Certificate, ca_key: _Key) -> Credentials:
    key = issuer.key(side)
    certificate = issuer.certificate(side, key.public_key(), "espbench CA", ca_key, is_ca=False)
    return Credentials(
        ca_pem=_pem(ca),
        certificate_pem=_pem(certificate),
        key_pem=key.private_bytes(
            serialization.Encoding.PEM,
            # The traditional format does not support Ed25519.
            serialization.PrivateFormat.PKCS8
            if isinstance(key, ed25519.Ed25519PrivateKey)
            else serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        ).decode(),
        # A PKCS #12 file has random salts, so two files with the same key would differ.
        pkcs12=b""
        if issuer.seeded
        else pkcs12.serialize_key_and_certificates(
            side.encode(),
            key,
            certificate,
            [ca],
            serialization.BestAvailableEncryption(PKCS12_PASSWORD.encode()),
        ),
    )


def _hash(key: _Key) -> hashes.SHA256 | hashes.SHA384 | None:
    """Return the hash for signatures with this key; None for Ed25519, which has a fixed one."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    is_long = isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.key_size > 256
    return hashes.SHA384() if is_long else hashes.SHA256()


class _Issuer:
    """Makes keys and serial numbers, random or derived from a seed, and signs certificates; kind: of all keys."""

    def __init__(self, chance: Chance | None, kind: CertificateKey) -> None:
        self.seeded = chance is not None
        self._seed = chance.said if chance else ""
        self._kind = kind

    def key(self, of: str) -> _Key:
        """Return a key for this owner; with a seed it is the same key each time."""
        if self.seeded:
            return self._seeded_key(f"{_SEEDED_KEY} {of}: {self._seed}")
        if self._kind == "ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        if self._kind in _CURVES:
            return ec.generate_private_key(_CURVES[self._kind])
        return rsa.generate_private_key(public_exponent=_EXPONENT, key_size=self._rsa_bits)

    def _seeded_key(self, text: str) -> _Key:
        drawn = hashlib.shake_256(text.encode()).digest(64)
        if self._kind == "ed25519":
            return ed25519.Ed25519PrivateKey.from_private_bytes(drawn[:32])
        if self._kind in _CURVES:
            curve = _CURVES[self._kind]
            # The number has 8 bits less than the curve's order, so it is below the order: it is a key unless it is 0.
            return ec.derive_private_key(int.from_bytes(drawn[: curve.key_size // 8 - 1]) | 1, curve)
        return seeded_rsa.key(text, self._rsa_bits, _EXPONENT)

    @property
    def _rsa_bits(self) -> int:
        return int(self._kind.removeprefix("rsa"))

    def certificate(
        self, subject: str, public: _PublicKey, issuer: str, issuer_key: _Key, *, is_ca: bool
    ) -> x509.Certificate:
        """Return a signed certificate. With a seed it is valid from 1970 to 2049, since a guest's clock may start at
        0.
        """
        now = datetime.now(UTC)
        serial, valid = x509.random_serial_number(), (now - _VALID, now + _VALID)
        if self.seeded:
            serial, valid = _serial_number(public), _VALID_SEEDED
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name(issuer))
            .public_key(public)
            .serial_number(serial)
            .not_valid_before(valid[0])
            .not_valid_after(valid[1])
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
            )
        )
        if not is_ca:
            name = x509.SubjectAlternativeName([x509.DNSName(subject)])
            builder = builder.add_extension(name, critical=False)
        # ECDSA normally draws a random number for each signature; two certificates from one seed would then differ.
        repeated = True if self.seeded and isinstance(issuer_key, ec.EllipticCurvePrivateKey) else None
        return builder.sign(issuer_key, _hash(issuer_key), ecdsa_deterministic=repeated)


def _serial_number(public: _PublicKey) -> int:
    """Return a serial number of 64 bits that is derived from the key."""
    if isinstance(public, rsa.RSAPublicKey):
        return public.public_numbers().n % 2**64
    of_key = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return int.from_bytes(hashlib.sha256(of_key).digest()[:8]) | 1


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
