# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the results of the tests of a crypto engine, one line for each figure.

`accelerator.jsonl` has the driver-level accelerator test, by suite, block size and variant; `public_key.jsonl` has the
test of the public-key unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from espbench.results.durable import write_atomically
from espbench.results.records import Records, read_records, read_what_is_whole, sealed
from espbench.terms import Record

FILE = "accelerator.jsonl"
PUBLIC_KEY_FILE = "public_key.jsonl"


class Variant(Record):
    """A variant of the driver-level test; the defaults are the usual test.

    descriptors: whether the driver builds a descriptor when it dispatches the operation, or all of them before. data:
    whether each operation has a block of its own, or all operations read the same one. keys: the number of keys, used
    in turns. check: the outputs that are compared with the kernel's software (only the last, or all: after the clock
    stopped, or while it runs).
    """

    operation: Literal["encrypt", "decrypt"] = "encrypt"
    descriptors: Literal["as-dispatched", "prebuilt"] = "as-dispatched"
    data: Literal["unique", "cached"] = "unique"
    keys: int = 1
    check: Literal["last", "after", "during"] = "last"

    @property
    def words(self) -> list[str]:
        """The words that request this variant from a guest (harness/emulator/init/PROTOCOL.md)."""
        flags = {
            "decrypt": self.operation == "decrypt",
            "cached": self.data == "cached",
            "prebuilt": self.descriptors == "prebuilt",
            f"keys={self.keys}": self.keys > 1,
            f"check={self.check}": self.check != "last",
        }
        return [word for word, holds in flags.items() if holds]


Figure = tuple[str, str, str, int, Variant]
"""DUT, use of the engine, suite, block size, variant."""


class AcceleratorResult(Record):
    """The times of operations on blocks of one size, which encrypt and authenticate, or do the reverse.

    after_ns: each operation was dispatched when the one before had completed. at_once_ns: all operations were
    dispatched as fast as the driver accepts them; `full` times it accepted no more. Both times are from the first
    request to the last completion, in ns of the guest's time; the CPU was idle for after_idle_ns and at_once_idle_ns of
    them (None: the guest does not report it). crypto: how the driver used the engine (catalogue/board_crypto.py).
    disturbed_pct: the share of the guest's time that the host took (in real time), if it was too high in every
    attempt; then the figure is INVALID.
    """

    dut: str
    suite: str
    size: int
    operations: int
    crypto: str = "async"  # older files have neither this key nor `variant`: only the defaults existed
    variant: Variant = Variant()
    driver: str
    after_ns: int
    at_once_ns: int
    full: int
    after_idle_ns: int | None = None
    at_once_idle_ns: int | None = None
    disturbed_pct: float | None = None

    @property
    def is_valid(self) -> bool:
        """True unless the host disturbed every attempt."""
        return self.disturbed_pct is None

    @property
    def gain(self) -> float:
        """The ratio of speeds: all operations at once to one after the other."""
        return self.after_ns / self.at_once_ns

    @property
    def after_mbps(self) -> float:
        """Mbit/s of data, one after the other."""
        return self.operations * self.size * 8e3 / self.after_ns

    @property
    def at_once_mbps(self) -> float:
        """Mbit/s of data, all at once."""
        return self.operations * self.size * 8e3 / self.at_once_ns


def key(result: AcceleratorResult) -> Figure:
    """Return what distinguishes a figure from the others of its run."""
    return result.dut, result.crypto, result.suite, result.size, result.variant


def name_of(figure: Figure) -> str:
    """Return the name of a figure's job, `accelerator-mpc8548e-async-3des-sha1-64`."""
    *point, variant = figure
    return "-".join(["accelerator", *map(str, point), *(word.replace("=", "-") for word in variant.words)])


def save(run: Path, results: Sequence[AcceleratorResult]) -> None:
    """Replace `accelerator.jsonl` as a whole; raise EspbenchError if it cannot be written."""
    write_atomically(run / FILE, sealed(results))


def read(run: Path) -> list[AcceleratorResult]:
    """Return the results of a run, none if it has no such test; raise EspbenchError if the file is damaged."""
    return read_records(run / FILE, AcceleratorResult)


def read_to_resume(run: Path) -> Records[AcceleratorResult]:
    """Return the results that are undamaged, so that a resumed run can measure the others again."""
    return read_what_is_whole(run / FILE, AcceleratorResult)


class PublicKeyResult(Record):
    """Public-key operations of one kind, made one after the other; times are ns of the guest.

    by: the engine's public-key unit, at its clock of clock_mhz, or the kernel's software on the same guest. operation:
    `rsa` is base^exponent mod modulus; `rsa-crt` is RSA's private operation from the primes; `ecdh` multiplies a point.
    bits: of the modulus or the curve. exponent_bits: 0 if the operation has no choice of exponents. whole_ns: from the
    first request to the last completion; the CPU was idle for idle_ns of it. overhead_ns: the time of as many
    operations on the same operands in which the unit has almost nothing to do (0: not measured). Results were compared
    with known answers.
    """

    dut: str
    clock_mhz: float
    by: Literal["unit", "software"]
    operation: Literal["rsa", "rsa-crt", "ecdh", "ecdsa-verify"]
    bits: int
    exponent_bits: int
    operations: int
    whole_ns: int
    idle_ns: int
    overhead_ns: int

    @property
    def ms(self) -> float:
        """The time of one operation as a caller sees it, ms."""
        return self.whole_ns / self.operations / 1e6

    @property
    def unit_ms(self) -> float:
        """The time of one operation in the unit itself, from loaded operands to DONE, ms."""
        return (self.whole_ns - self.overhead_ns) / self.operations / 1e6

    @property
    def overhead_pct(self) -> float:
        """The share of the whole time that driver, descriptor and operands take, %."""
        return 100 * self.overhead_ns / self.whole_ns

    @property
    def cpu_pct(self) -> float:
        """The share of the whole time in which the CPU worked, %."""
        return 100 * (1 - self.idle_ns / self.whole_ns)

    @property
    def per_s(self) -> float:
        """Operations per second: an upper bound of the rate of set-ups that need one such operation each."""
        return 1e3 / self.ms


def save_public_key(run: Path, results: Sequence[PublicKeyResult]) -> None:
    """Replace `public_key.jsonl` as a whole; raise EspbenchError if it cannot be written."""
    write_atomically(run / PUBLIC_KEY_FILE, sealed(results))


def read_public_key(run: Path) -> list[PublicKeyResult]:
    """Return the results of a run, none if it has no such test; raise EspbenchError if the file is damaged."""
    return read_records(run / PUBLIC_KEY_FILE, PublicKeyResult)


def read_public_key_to_resume(run: Path) -> Records[PublicKeyResult]:
    """Return the results that are undamaged, so that a resumed run can measure the others again."""
    return read_what_is_whole(run / PUBLIC_KEY_FILE, PublicKeyResult)
