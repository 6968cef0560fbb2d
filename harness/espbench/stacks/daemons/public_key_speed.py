# SPDX-License-Identifier: Apache-2.0
"""Measures the speed of public-key operations on a gateway (`openssl speed`), and lists those of one IKE
SA's set-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from espbench.catalogue.certificate_keys import CERTIFICATE_KEYS, DEFAULT_KEY, CertificateKey
from espbench.errors import EspbenchError
from espbench.platforms.base import Gateway

# The name of an algorithm in `openssl speed` → its operations as `parse` names them. RSA's public exponent is 65,537
# in all of them.
OPERATIONS = {
    **{f"rsa{bits}": (f"RSA-{bits} sign", f"RSA-{bits} verify") for bits in (512, 1024, 2048)},
    **{f"ecdsap{bits}": (f"ECDSA P-{bits} sign", f"ECDSA P-{bits} verify") for bits in (256, 384)},
    **{f"ecdhp{bits}": (f"ECDH P-{bits} derive",) for bits in (256, 384)},
    "ecdhx25519": ("X25519 derive",),
}
# Group of an IKE proposal → its name in `openssl speed`, and the operation as `parse` names it.
_GROUPS = {
    "ecp256": ("ecdhp256", "ECDH P-256 derive"),
    "ecp384": ("ecdhp384", "ECDH P-384 derive"),
    "x25519": ("ecdhx25519", "X25519 derive"),
    "modp2048": ("ffdh2048", "DH 2048 derive"),
    "modp3072": ("ffdh3072", "DH 3072 derive"),
}
# Lines of `openssl speed -mr`: kind, number, bits, signatures/s, verifications/s. For RSA, OpenSSL 3.2 and newer add
# encryptions/s and decryptions/s.
_PAIRS = {
    "+F2": ("RSA-{} sign", "RSA-{} verify"),
    "+F4": ("ECDSA P-{} sign", "ECDSA P-{} verify"),
    "+F6": ("{} sign", "{} verify"),  # EdDSA; its name follows the bits
}
_SINGLE = {"+F5": "ECDH P-{} derive", "+F8": "DH {} derive"}


@dataclass(frozen=True)
class Operation:
    """A public-key operation, and how many of them one CPU of the gateway does per second."""

    name: str
    per_s: float

    @property
    def ms(self) -> float:
        return 1e3 / self.per_s


def speed(gateway: Gateway, algorithms: tuple[str, ...], seconds: int) -> list[Operation]:
    """Run each operation for `seconds` with the gateway's own OpenSSL on one CPU; rates are per second of CPU time.

    Raise EspbenchError if openssl fails.
    """
    asked = ["openssl", "speed", "-mr", "-seconds", str(seconds), *algorithms]
    done = gateway.run(asked, timeout_s=30.0 + 6 * seconds * len(algorithms))
    operations_run = parse(done.out)
    if done.rc or not operations_run:
        said = (done.err.strip().splitlines() or ["it said nothing"])[-1]
        raise EspbenchError(f"{gateway.side}: openssl speed: {said}")
    return operations_run


def cpus(gateway: Gateway) -> int:
    """Return the number of CPUs that the gateway's programs may use. Raise EspbenchError if it is not known."""
    status, cpuinfo = "/proc/self/status", "/proc/cpuinfo"
    texts = gateway.read([status, cpuinfo])
    allowed = re.search(r"^Cpus_allowed_list:\s+([\d,-]+)$", texts[status] or "", re.MULTILINE)
    if allowed is None:
        raise EspbenchError(f"{gateway.side}: its {status} does not say which CPUs its programs may use")
    ranges = [part.split("-") for part in allowed[1].split(",")]
    n = sum(int(each[-1]) - int(each[0]) + 1 for each in ranges)
    # The list of a kernel can have CPUs that the machine lacks.
    there = len(re.findall(r"^processor\b", texts[cpuinfo] or "", re.MULTILINE))
    return min(n, there) if there else n


def parse(text: str) -> list[Operation]:
    """Return the operations in the output of `openssl speed -mr`; those with a rate of 0 are left out."""
    rates = []
    for line in text.splitlines():
        kind, *fields = line.split(":")
        first = (
            3 if kind == "+F6" else 2
        )  # the field of the first rate; what the names need is in the field before
        if kind in _PAIRS and len(fields) >= first + 2:
            rates += [
                Operation(name.format(fields[first - 1]), float(rate))
                for name, rate in zip(_PAIRS[kind], fields[first : first + 2], strict=True)
            ]
        elif kind in _SINGLE and len(fields) == 4:
            name = "X25519 derive" if fields[1] == "253" else _SINGLE[kind].format(fields[1])
            rates.append(Operation(name, float(fields[2])))
    return [operation for operation in rates if operation.per_s > 0]


def absent(wanted: Iterable[str], measured: Iterable[str]) -> list[str]:
    """Return the operations that were wanted and have no rate, each once, in order."""
    return [name for name in dict.fromkeys(wanted) if name not in set(measured)]


def of_set_up(
    ike: str, auth: str, certificate: CertificateKey = DEFAULT_KEY
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operations of each end for one IKE SA with this proposal: (names for `speed`, names in its result).

    Each end derives one Diffie-Hellman secret. With certificates it also makes one signature, and verifies two: that of
    its peer and that of the peer's certificate. The generation of the DH key does not count, since a daemon may do it
    in advance; so the sum is a lower bound of the cost.
    """
    algorithm, derive = _GROUPS[ike.rpartition("-")[2]]
    if auth != "certificates":
        return (algorithm,), (derive,)
    key = CERTIFICATE_KEYS[certificate]
    sign, verify = f"{key.shown} sign", f"{key.shown} verify"
    return (algorithm, key.speed), (derive, sign, verify, verify)
