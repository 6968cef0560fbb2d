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
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from espbench.platforms.base import SIDES, Side
from espbench.platforms.chance import Chance
from espbench.stacks.daemons import seeded_rsa
from espbench.stacks.daemons.daemon import PKCS12_PASSWORD, Credentials

_RSA_BITS, _EXPONENT = 2048, 65537
_PSK_BYTES = 32
_SEEDED_PSK = "espbench: the PSK of gateways in virtual time"
_SEEDED_KEY = "espbench: the key of gateways in virtual time,"
_VALID_SEEDED = datetime(1970, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)
# Guests may have a clock of their own: a certificate must be valid on it too.
_VALID = timedelta(days=30)


def make(auth: Literal["psk", "certificates"], chance: Chance | None = None) -> dict[Side, Credentials]:
    """Make what both ends of a pair need; identities are the sides' names. chance: of it, the same every time."""
    if auth == "psk":
        psk = secrets.token_hex(_PSK_BYTES) if chance is None else _seeded_psk(chance)
        return dict.fromkeys(SIDES, Credentials(psk=psk))
    issuer = _Issuer(chance)
    ca_key = issuer.key("CA")
    ca = issuer.certificate("espbench CA", ca_key.public_key(), "espbench CA", ca_key, is_ca=True)
    return {side: _of(issuer, side, ca, ca_key) for side in SIDES}


def _seeded_psk(chance: Chance) -> str:
    text = f"{_SEEDED_PSK}: {chance.said}" if chance.said else _SEEDED_PSK
    return hashlib.sha256(text.encode()).hexdigest()


def _of(issuer: _Issuer, side: Side, ca: x509.Certificate, ca_key: rsa.RSAPrivateKey) -> Credentials:
    key = issuer.key(side)
    certificate = issuer.certificate(side, key.public_key(), "espbench CA", ca_key, is_ca=False)
    return Credentials(
        ca_pem=_pem(ca),
        certificate_pem=_pem(certificate),
        key_pem=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        ).decode(),
        # Its salts are drawn by chance, so it is not the same twice.
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


class _Issuer:
    """Draws keys and serial numbers, by chance or of a seed, and signs certificates."""

    def __init__(self, chance: Chance | None) -> None:
        self.seeded = chance is not None
        self._seed = chance.said if chance else ""

    def key(self, of: str) -> rsa.RSAPrivateKey:
        """Return a key; the same one again if there is a seed."""
        if not self.seeded:
            return rsa.generate_private_key(public_exponent=_EXPONENT, key_size=_RSA_BITS)
        return seeded_rsa.key(f"{_SEEDED_KEY} {of}: {self._seed}", _RSA_BITS, _EXPONENT)

    def certificate(
        self,
        subject: str,
        public: rsa.RSAPublicKey,
        issuer: str,
        issuer_key: rsa.RSAPrivateKey,
        *,
        is_ca: bool,
    ) -> x509.Certificate:
        """Sign one. With a seed it is valid in any year, as a guest's clock may stand at its zero."""
        now = datetime.now(UTC)
        serial, valid = x509.random_serial_number(), (now - _VALID, now + _VALID)
        if self.seeded:
            serial, valid = public.public_numbers().n % 2**64, _VALID_SEEDED
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
        return builder.sign(issuer_key, hashes.SHA256())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
