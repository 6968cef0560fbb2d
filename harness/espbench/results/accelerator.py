# SPDX-License-Identifier: Apache-2.0
"""The results of the tests of a board's crypto engine: `accelerator.jsonl` and `public_key.jsonl`, one line a figure.

The first has the driver-level accelerator test, the second the test of the public-key unit.
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
Figure = tuple[str, str, str, int]
"""DUT, use of the engine, suite, block size."""


class AcceleratorResult(Record):
    """Operations on blocks of one size with one key, encrypted and authenticated, no two blocks alike.

    after_ns: each dispatched when the one before has completed. at_once_ns: all as fast as the driver takes
    them; `full` times it took no more. Both from the first request to the last completion, ns of the guest's time;
    of these the CPU was idle for after_idle_ns and at_once_idle_ns (None: the guest does not say). crypto: how the
    driver used the engine (catalogue/board_crypto.py).
    """

    dut: str
    suite: str
    size: int
    operations: int
    crypto: str = "async"  # older files do not say: there was no other
    driver: str
    after_ns: int
    at_once_ns: int
    full: int
    after_idle_ns: int | None = None
    at_once_idle_ns: int | None = None

    @property
    def gain(self) -> float:
        """The ratio of speeds: all operations at once against one after the other."""
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
    return result.dut, result.crypto, result.suite, result.size


def name_of(figure: Figure) -> str:
    """Return the name of a figure's job, `accelerator-mpc8548e-async-3des-sha1-64`."""
    return "-".join(["accelerator", *map(str, figure)])


def save(run: Path, results: Sequence[AcceleratorResult]) -> None:
    """Replace the file as a whole; EspbenchError where the disk refuses."""
    write_atomically(run / FILE, sealed(results))


def read(run: Path) -> list[AcceleratorResult]:
    """Return the results of a run; none where it has no such test. EspbenchError where the file is damaged."""
    return read_records(run / FILE, AcceleratorResult)


def read_to_resume(run: Path) -> Records[AcceleratorResult]:
    """Return the results that are as they were written, for a run that measures the others again."""
    return read_what_is_whole(run / FILE, AcceleratorResult)


class PublicKeyResult(Record):
    """Public-key operations of one kind, made one after the other; times are ns of the guest.

    by: the engine's public-key unit, at its clock of clock_mhz, or the kernel's software on the same guest. operation:
    `rsa` is base^exponent mod modulus; `rsa-crt` is RSA's private operation from the primes; `ecdh` multiplies a point.
    bits: of the modulus or the curve. exponent_bits: 0 where that is no choice. whole_ns: from the first request to the
    last completion, the CPU being idle for idle_ns of it. overhead_ns: the time of as many operations of the same
    operands in which the unit has next to nothing to do (0: not measured). Results were compared with known answers.
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
        """The time of one operation as a caller sees it."""
        return self.whole_ns / self.operations / 1e6

    @property
    def unit_ms(self) -> float:
        """The time of one operation in the unit itself, from operands loaded to DONE."""
        return (self.whole_ns - self.overhead_ns) / self.operations / 1e6

    @property
    def overhead_pct(self) -> float:
        """Driver, descriptor and operands, % of the whole."""
        return 100 * self.overhead_ns / self.whole_ns

    @property
    def cpu_pct(self) -> float:
        """The share of the whole in which the CPU worked, %."""
        return 100 * (1 - self.idle_ns / self.whole_ns)

    @property
    def per_s(self) -> float:
        """Operations per second, which no rate of set-ups with one of them each can exceed."""
        return 1e3 / self.ms


def save_public_key(run: Path, results: Sequence[PublicKeyResult]) -> None:
    """Replace `public_key.jsonl` as a whole; EspbenchError where the disk refuses."""
    write_atomically(run / PUBLIC_KEY_FILE, sealed(results))


def read_public_key(run: Path) -> list[PublicKeyResult]:
    """Return the results of a run; none where it has no such test. EspbenchError where the file is damaged."""
    return read_records(run / PUBLIC_KEY_FILE, PublicKeyResult)


def read_public_key_to_resume(run: Path) -> Records[PublicKeyResult]:
    """Return the results that are as they were written, for a run that measures the others again."""
    return read_what_is_whole(run / PUBLIC_KEY_FILE, PublicKeyResult)
