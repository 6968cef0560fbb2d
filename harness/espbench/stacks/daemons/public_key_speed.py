# SPDX-License-Identifier: Apache-2.0
"""Measures what public-key operations cost on a gateway (`openssl speed`), and says which of them a set-up needs."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.catalogue.certificate_keys import CERTIFICATE_KEYS, DEFAULT_KEY, CertificateKey
from espbench.errors import EspbenchError
from espbench.platforms.base import Gateway

# The names in `openssl speed`. RSA's public exponent is 65,537 in all of them.
ALGORITHMS = ("rsa512", "rsa1024", "rsa2048", "ecdsap256", "ecdsap384", "ecdhp256", "ecdhp384", "ecdhx25519")
# Group of an IKE proposal → its name in `openssl speed`, and the operation as `parse` names it.
_GROUPS = {
    "ecp256": ("ecdhp256", "ECDH P-256 derive"),
    "ecp384": ("ecdhp384", "ECDH P-384 derive"),
    "x25519": ("ecdhx25519", "X25519 derive"),
    "modp2048": ("ffdh2048", "DH 2048 derive"),
    "modp3072": ("ffdh3072", "DH 3072 derive"),
}
# Lines of `openssl speed -mr`: kind, number, bits, operations/s.
_PAIRS = {
    "+F2": ("RSA-{} sign", "RSA-{} verify"),
    "+F4": ("ECDSA P-{} sign", "ECDSA P-{} verify"),
    "+F6": ("{} sign", "{} verify"),  # EdDSA, by the name behind the bits
}
_SINGLE = {"+F5": "ECDH P-{} derive", "+F8": "DH {} derive"}


@dataclass(frozen=True)
class Operation:
    """One operation and how often a second one CPU of the gateway does it."""

    name: str
    per_s: float

    @property
    def ms(self) -> float:
        return 1e3 / self.per_s


def speed(gateway: Gateway, algorithms: tuple[str, ...], seconds: int) -> list[Operation]:
    """Run each operation for so many seconds, by the gateway's own OpenSSL on one CPU; rates are per s of CPU time."""
    asked = ["openssl", "speed", "-mr", "-seconds", str(seconds), *algorithms]
    done = gateway.run(asked, timeout_s=30.0 + 6 * seconds * len(algorithms))
    operations_run = parse(done.out)
    if done.rc or not operations_run:
        said = (done.err.strip().splitlines() or ["it said nothing"])[-1]
        raise EspbenchError(f"{gateway.side}: openssl speed: {said}")
    return operations_run


def parse(text: str) -> list[Operation]:
    """Return the result lines of `openssl speed -mr`."""
    rates = []
    for line in text.splitlines():
        kind, *fields = line.split(":")
        if kind in _PAIRS and len(fields) == (5 if kind == "+F6" else 4):
            rates += [
                Operation(name.format(fields[-3]), float(rate))
                for name, rate in zip(_PAIRS[kind], fields[-2:], strict=True)
            ]
        elif kind in _SINGLE and len(fields) == 4:
            name = "X25519 derive" if fields[1] == "253" else _SINGLE[kind].format(fields[1])
            rates.append(Operation(name, float(fields[2])))
    return [operation for operation in rates if operation.per_s > 0]


def of_set_up(
    ike: str, auth: str, certificate: CertificateKey = DEFAULT_KEY
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List what each end does for an IKE SA of this proposal: (names for `speed`, operations as it tells them).

    One Diffie-Hellman secret is derived; with certificates one signature is made, and the peer's and its
    certificate's are checked. Making the DH key is left out, since a daemon may do that beforehand: a bound stays one.
    """
    algorithm, derive = _GROUPS[ike.rpartition("-")[2]]
    if auth != "certificates":
        return (algorithm,), (derive,)
    key = CERTIFICATE_KEYS[certificate]
    sign, verify = f"{key.shown} sign", f"{key.shown} verify"
    return (algorithm, key.speed), (derive, sign, verify, verify)
