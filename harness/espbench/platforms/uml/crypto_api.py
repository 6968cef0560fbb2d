# SPDX-License-Identifier: Apache-2.0
"""Executes the driver-level accelerator test in a UML guest: a program uses its kernel's crypto API (crypto_api.c).

The last output of each test is computed again on this machine, by libraries that are independent of the guest.
"""

from __future__ import annotations

import hmac
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.base import Gateway

SOURCE = Path(__file__).with_name("crypto_api.c")
HEADER_BYTES = 8  # SPI and sequence number: authenticated, not encrypted
_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Algorithm:
    """The name of a suite in the crypto API, and the lengths of its keys, IV and ICV in bytes."""

    name: str
    cipher: type[AES] | type[TripleDES]
    cipher_key: int
    hash: str
    hash_key: int
    iv: int
    icv: int


SUITES = {
    "3des-sha1": Algorithm("authenc(hmac(sha1),cbc(des3_ede))", TripleDES, 24, "sha1", 20, 8, 12),
    "3des-md5": Algorithm("authenc(hmac(md5),cbc(des3_ede))", TripleDES, 24, "md5", 16, 8, 12),
    "aes128-sha1": Algorithm("authenc(hmac(sha1),cbc(aes))", AES, 16, "sha1", 20, 16, 12),
    "aes256-sha1": Algorithm("authenc(hmac(sha1),cbc(aes))", AES, 32, "sha1", 20, 16, 12),
    "aes256-sha256": Algorithm("authenc(hmac(sha256),cbc(aes))", AES, 32, "sha256", 32, 16, 16),
}


@dataclass(frozen=True)
class Asked:
    """The settings of one test, with the values of a plan's variant."""

    suite: str
    size: int
    operations: int
    operation: str
    data: str
    keys: int
    check: str

    @property
    def words(self) -> list[str]:
        """The arguments of the program."""
        by = SUITES[self.suite]
        numbers = (by.cipher_key, by.hash_key, by.iv, by.icv, self.size, self.operations, self.keys)
        return [by.name, *map(str, numbers), self.operation, self.data, self.check]


def build(folder: Path) -> Path:
    """Compile the program into a folder that is visible in guests. Raise MachineLacks without a C compiler."""
    program = folder / "crypto_api"
    try:
        done = subprocess.run(
            ["cc", "-O2", "-o", str(program), str(SOURCE)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise MachineLacks(
            "no C compiler for the driver-level test of a UML guest", "apt-get install gcc libc6-dev"
        ) from None
    if done.returncode:
        raise EspbenchError(f"cannot build {SOURCE.name}: {done.stderr.strip()}")
    return program


def load(gateway: Gateway) -> None:
    """Load the kernel's module for AF_ALG sockets (its crypto API). Raise EspbenchError if there is none."""
    done = gateway.run(["modprobe", "algif_aead"])
    if done.rc:
        raise EspbenchError(
            f"gateway {gateway.side}: its kernel has no AF_ALG (CONFIG_CRYPTO_USER_API_AEAD): {done.err.strip()}"
        )


def measure(gateway: Gateway, program: Path, asked: Asked) -> dict[str, int]:
    """Execute one test, and return after_ns, at_once_ns and full of the program's output (crypto_api.c).

    Raise EspbenchError if the program fails, or if its last output is wrong.
    """
    done = gateway.run([str(program), *asked.words], timeout_s=_TIMEOUT_S)
    if done.rc:
        raise EspbenchError(f"gateway {gateway.side}: {asked.suite}, {asked.size} B: {done.err.strip()}")
    said = dict(word.split("=", 1) for word in done.out.split())
    prove(asked, said)
    return {name: int(said[name]) for name in ("after_ns", "at_once_ns", "full")}


def prove(asked: Asked, said: Mapping[str, str]) -> None:
    """Raise EspbenchError unless the last output is equal to the result of other code for this suite."""
    by = SUITES[asked.suite]
    number = int(said["key"])
    keys = bytes((37 * i + 11 + number) % 256 for i in range(by.hash_key + by.cipher_key))
    given = bytes.fromhex(said["input"])
    encryptor = Cipher(by.cipher(keys[by.hash_key :]), CBC(bytes.fromhex(said["iv"]))).encryptor()
    sealed = given[:HEADER_BYTES] + encryptor.update(given[HEADER_BYTES:]) + encryptor.finalize()
    expected = sealed + hmac.digest(keys[: by.hash_key], sealed, by.hash)[: by.icv]
    if bytes.fromhex(said["output"]) != expected:
        raise EspbenchError(
            f"{asked.suite}, {asked.size} B: the guest's crypto API gives another result than this machine's libraries"
        )
