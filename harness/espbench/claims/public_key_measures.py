# SPDX-License-Identifier: Apache-2.0
"""Answers the claims about public keys from the measurements of guests (test public_key_unit); pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from espbench.catalogue.board_crypto import DEFAULT
from espbench.claims.model import (
    Claim,
    PublicKeyCpu,
    PublicKeyGain,
    PublicKeyIntensity,
    PublicKeyOverhead,
    PublicKeyTable,
    PublicKeyTest,
    PublicKeyTime,
)
from espbench.claims.our_value import OurValue, lacking, ranged, statement
from espbench.claims.points import Points
from espbench.claims.unit_fit import HALF_A_DIGIT_MS, Printed, half, table
from espbench.results.accelerator import PublicKeyResult

_DEVICE = "mpc8548e"  # the paper names no device; the guest's unit runs at the paper's clocks
_EMPTY_MS = (
    0.001  # the empty operation that is subtracted keeps the unit busy for 31 cycles: 0.94 µs at 33 MHz
)
_SMALL = 3
_LARGE_BLOCK = 1024  # bytes, at least: what a packet has at most, or nearly


def public_key(m: PublicKeyTest, claim: Claim, measured: Points) -> OurValue:
    """Return our value for a claim about public keys."""
    dut = claim.dut(m) or _DEVICE
    results = [r for r in measured.public_keys if r.dut == dut]
    match m:
        case PublicKeyTime():
            return _time(m, results, dut)
        case PublicKeyTable():
            return _table(m, results, dut)
        case PublicKeyOverhead():
            return _beside_ciphers(_overhead(results, dut), measured, dut)
        case PublicKeyGain():
            return _gain(m, results, dut)
        case PublicKeyCpu():
            return _cpu(results, dut)
        case PublicKeyIntensity():
            return _intensity(results, measured, dut)


def _at(results: Sequence[PublicKeyResult], entry: Printed) -> PublicKeyResult | None:
    """Return the result of the unit for a printed time; of several runs, that of the last."""
    wanted = ("unit", "rsa", entry.modulus_bits, entry.exponent_bits, entry.mhz)
    of_unit = (
        r for r in reversed(results) if (r.by, r.operation, r.bits, r.exponent_bits, r.clock_mhz) == wanted
    )
    return next(of_unit, None)


def _all_of(
    entries: Sequence[Printed], results: Sequence[PublicKeyResult], dut: str
) -> list[tuple[Printed, PublicKeyResult]] | OurValue:
    pairs = [(entry, _at(results, entry)) for entry in entries]
    if absent := [e for e, r in pairs if r is None]:
        first = absent[0]
        return lacking(
            f"{dut}: {len(absent)} of {len(entries)} public-key times, such as "
            f"{first.modulus_bits}/{first.exponent_bits} at {first.mhz} MHz"
        )
    return [(entry, result) for entry, result in pairs if result is not None]


def _time(m: PublicKeyTime, results: Sequence[PublicKeyResult], dut: str) -> OurValue:
    entries = [Printed(m.modulus_bits, m.exponent_bits, m.clock_mhz, 0.0)]
    pairs = _all_of(entries, results, dut)
    if isinstance(pairs, OurValue):
        return pairs
    ((_, result),) = pairs
    return ranged([result.unit_ms], text=f"{result.ms:.4f} ms with driver and descriptor")


def _table(m: PublicKeyTable, results: Sequence[PublicKeyResult], dut: str) -> OurValue:
    """Return whether each time of the half is as printed, to half its last digit plus an empty operation."""
    pairs = _all_of(half(m.half), results, dut)
    if isinstance(pairs, OurValue):
        return pairs
    off = [abs(result.unit_ms - entry.ms) for entry, result in pairs]
    agree = sum(each <= HALF_A_DIGIT_MS + _EMPTY_MS for each in off)
    return OurValue(
        holds=agree == len(off),
        text=f"{agree} of {len(off)} measured times, the furthest {max(off):.4f} ms away",
    )


def _overhead(results: Sequence[PublicKeyResult], dut: str) -> OurValue:
    pairs = _all_of(table(), results, dut)
    if isinstance(pairs, OurValue):
        return pairs
    shares = {f"{e.modulus_bits}/{e.exponent_bits} at {e.mhz} MHz": r.overhead_pct for e, r in pairs}
    most = max(shares, key=shares.__getitem__)
    return ranged([*shares.values()], text=f"the most for {most}")


def _beside_ciphers(overhead: OurValue, measured: Points, dut: str) -> OurValue:
    """Return whether the overhead's share is lower in every public-key operation than in any of ciphers and hashes.

    In the driver-level test the engine never waits if all operations are dispatched at once. The overhead is the time
    by which one after the other takes longer.
    """
    shares = [
        100 * (1 - a.at_once_ns / a.after_ns)
        for a in measured.accelerator
        if (a.dut, a.crypto) == (dut, DEFAULT) and not a.variant.words
    ]
    if not overhead.exists:
        return overhead
    if not shares:
        return lacking(f"{dut}: accelerator test")
    text = f"at most {overhead.high:.1f} %; of ciphers and hashes {min(shares):.0f} to {max(shares):.0f} %"
    return statement((), text, holds=overhead.high < min(shares))


_Pair = tuple[PublicKeyResult, PublicKeyResult]
"""The results of one operation, by the unit and in software."""


def _both_ways(results: Sequence[PublicKeyResult]) -> list[_Pair]:
    """Return every operation that was measured by the unit and in software at the same clock of the engine."""
    software = {(r.operation, r.bits, r.exponent_bits): r for r in results if r.by == "software"}
    return [
        (r, other)
        for r in results
        if r.by == "unit"
        and (other := software.get((r.operation, r.bits, r.exponent_bits))) is not None
        and other.clock_mhz == r.clock_mhz
    ]


def _gain(m: PublicKeyGain, results: Sequence[PublicKeyResult], dut: str) -> OurValue:
    """Return the range of the ratio of times over all sizes that were measured by the unit and in software."""
    gains = {
        _words(unit): software.ms / unit.ms
        for unit, software in _both_ways(results)
        if (unit.exponent_bits == _SMALL) == m.small_exponent
    }
    return _ratios(gains, dut)


def _cpu(results: Sequence[PublicKeyResult], dut: str) -> OurValue:
    """Return the range of the ratio of CPU times, over the same sizes and all lengths of exponents."""
    gains = {
        _words(unit): software.ms * software.cpu_pct / (unit.ms * unit.cpu_pct)
        for unit, software in _both_ways(results)
    }
    return _ratios(gains, dut)


def _intensity(results: Sequence[PublicKeyResult], measured: Points, dut: str) -> OurValue:
    """Return how many times the software's time of a large block's cipher and hash RSA with a full exponent takes."""
    blocks = {
        f"{a.suite} of {a.size} B": a.after_ns / a.operations / 1e6
        for a in measured.accelerator
        if (a.dut, a.crypto) == (dut, "software") and a.size >= _LARGE_BLOCK and not a.variant.words
    }
    if not blocks:
        return lacking(f"{dut}: accelerator test in software at {_LARGE_BLOCK} B or more")
    most = max(blocks, key=blocks.__getitem__)
    times = {
        _words(r): r.ms / blocks[most]
        for r in results
        if r.by == "software" and r.operation.startswith("rsa") and r.exponent_bits != _SMALL
    }
    ratios = _ratios(times, dut)
    return replace(ratios, text=f"times {most}: {ratios.text}") if ratios.exists else ratios


def _ratios(gains: Mapping[str, float], dut: str) -> OurValue:
    if not gains:
        return lacking(f"{dut}: public keys by the unit and in software")
    return ranged([*gains.values()], text=", ".join(f"{words}: {gain:,.2f}" for words, gain in gains.items()))


def _words(result: PublicKeyResult) -> str:
    """Return `512/3`, or `512 by the primes`."""
    return f"{result.bits}{f'/{result.exponent_bits}' if result.exponent_bits else ' by the primes'}"
