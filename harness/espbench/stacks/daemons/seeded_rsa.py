# SPDX-License-Identifier: Apache-2.0
"""Derives RSA keys from a text, so that two runs in virtual time have the same keys. The keys are not secret."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric import rsa

# A random odd number of 1024 bits that passes one round is composite with a probability below 2^-80; more witnesses
# make this probability smaller.
_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19)
_SMALL = math.prod(n for n in range(3, 2000, 2) if all(n % d for d in range(3, math.isqrt(n) + 1, 2)))


def key(text: str, bits: int, exponent: int) -> rsa.RSAPrivateKey:
    """Return the RSA key of this text: its primes are the first two among the numbers derived from the text."""
    p, q = sorted(_primes(text, bits // 2, exponent), reverse=True)
    d = pow(exponent, -1, math.lcm(p - 1, q - 1))
    return rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), rsa.RSAPublicNumbers(exponent, p * q)
    ).private_key()


def _primes(text: str, bits: int, exponent: int) -> tuple[int, int]:
    primes = (n for n in _numbers(text, bits) if (n - 1) % exponent and _is_prime(n))
    return next(primes), next(primes)


def _numbers(text: str, bits: int) -> Iterator[int]:
    """Yield odd numbers with both highest bits set, so that the product of two has exactly twice as many bits."""
    number = 0
    while True:
        drawn = hashlib.shake_256(f"{text} {number}".encode()).digest(bits // 8)
        yield int.from_bytes(drawn) | 3 << (bits - 2) | 1
        number += 1


def _is_prime(n: int) -> bool:
    """Return whether n passes the Miller-Rabin primality test for all witnesses."""
    if math.gcd(n, _SMALL) != 1:
        return False
    odd = (n - 1) >> (twos := ((n - 1) & -(n - 1)).bit_length() - 1)
    for witness in _WITNESSES:
        power = pow(witness, odd, n)
        if power in (1, n - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % n
            if power == n - 1:
                break
        else:
            return False
    return True
