# SPDX-License-Identifier: Apache-2.0
"""Fits the cycles of the public-key unit to one half of the published times, and compares them with the other half.

Entries are counted along the printed table, row by row. The first, third, fifth … are fitted; the second, fourth …
(50, 83, 133 and 333 MHz) are held out. With d, the number of 32-bit digits of the modulus, and e, the bits of the
exponent, the cycles are p d^2 + q d + 3/2 e (a d^2 + b d + c), which is linear in five constants (3/2 multiplications
per bit of the exponent are assumed). The weight of each time follows from the number of cycles that its last printed
digit leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from espbench.results.published import documents

_DIGIT_BITS = 32
HALF_A_DIGIT_MS = 0.005
_SIGNIFICANT = 2


@dataclass(frozen=True)
class Printed:
    """One printed time, ms, with its sizes and the clock of the unit."""

    modulus_bits: int
    exponent_bits: int
    mhz: int
    ms: float


@dataclass(frozen=True)
class Constants:
    """The five constants that give the cycles of an operation."""

    preparation: tuple[float, float]  # of d^2, d
    multiplication: tuple[float, float, float]  # of d^2, d, 1

    def ms(self, entry: Printed) -> float:
        """Return the time of an entry's operation at its clock, ms."""
        terms = _terms(entry.modulus_bits, entry.exponent_bits)
        cycles = sum(k * t for k, t in zip((*self.preparation, *self.multiplication), terms, strict=True))
        return float(cycles) / entry.mhz / 1e3

    def rounded(self) -> Constants:
        """Return the constants with two significant digits, as the emulator has them."""
        p, q, a, b, c = (float(f"{k:.{_SIGNIFICANT}g}") for k in (*self.preparation, *self.multiplication))
        return Constants((p, q), (a, b, c))


def table() -> list[Printed]:
    """Return the printed times along the table, row by row."""
    return [
        Printed(time.modulus_bits, time.exponent_bits, mhz, ms)
        for document in documents().values()
        for time in document.times
        for mhz, ms in time.ms.items()
    ]


def half(which: str) -> list[Printed]:
    """Return the entries that are `fitted`, or those `held out`."""
    return table()[0 if which == "fitted" else 1 :: 2]


def fit(entries: Sequence[Printed]) -> Constants:
    """Return the constants by least squares; a time's weight follows from the cycles of half its last digit."""
    return _fitted(tuple(entries))


@cache  # a page of claims asks for the same fits again and again
def _fitted(entries: tuple[Printed, ...]) -> Constants:
    rows = [
        (_terms(e.modulus_bits, e.exponent_bits), Fraction(str(e.ms)) * e.mhz * 1000, Fraction(1, e.mhz * 5))
        for e in entries
    ]
    size = len(rows[0][0])
    matrix = [
        [sum(w * w * t[i] * t[j] for t, _, w in rows) for j in range(size)]
        + [sum(w * w * t[i] * y for t, y, w in rows)]
        for i in range(size)
    ]
    p, q, a, b, c = map(float, _solved([[Fraction(value) for value in row] for row in matrix]))
    return Constants((p, q), (a, b, c))


def as_printed(constants: Constants, entries: Sequence[Printed]) -> tuple[int, float]:
    """Return how many computed times are as printed, and the greatest difference, ms."""
    off = [abs(constants.ms(entry) - entry.ms) for entry in entries]
    return sum(each <= HALF_A_DIGIT_MS for each in off), max(off)


def without_size(modulus_bits: int, exponent_bits: int) -> float:
    """Return the error, %, of a pair of sizes at the lowest clock whose time is predicted from the other pairs."""
    own, others = _split(modulus_bits, exponent_bits)
    return 100 * (fit(others).ms(own[0]) / own[0].ms - 1)


def follows_from_others(modulus_bits: int, exponent_bits: int) -> bool:
    """Return whether all times of a pair of sizes are as printed, by cycles that are fitted to the other pairs."""
    own, others = _split(modulus_bits, exponent_bits)
    return as_printed(fit(others), own)[0] == len(own)


def _split(modulus_bits: int, exponent_bits: int) -> tuple[list[Printed], list[Printed]]:
    """Return the entries of a pair of sizes, and all others."""
    pair = (modulus_bits, exponent_bits)
    own = [entry for entry in table() if (entry.modulus_bits, entry.exponent_bits) == pair]
    return own, [entry for entry in table() if entry not in own]


def _terms(modulus_bits: int, exponent_bits: int) -> tuple[Fraction, ...]:
    d, e = Fraction(modulus_bits, _DIGIT_BITS), Fraction(3 * exponent_bits, 2)
    return d * d, d, e * d * d, e * d, e


def _solved(matrix: list[list[Fraction]]) -> list[Fraction]:
    """Return the exact solution of linear equations by elimination; the last column is the right-hand side."""
    size = len(matrix)
    for column in range(size):
        pivot = next(row for row in range(column, size) if matrix[row][column])
        matrix[column], matrix[pivot] = matrix[pivot], matrix[column]
        head = matrix[column][column]
        matrix[column] = [value / head for value in matrix[column]]
        for row in range(size):
            if row != column:
                factor = matrix[row][column]
                matrix[row] = [v - factor * w for v, w in zip(matrix[row], matrix[column], strict=True)]
    return [row[-1] for row in matrix]
