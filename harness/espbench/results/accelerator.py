# SPDX-License-Identifier: Apache-2.0
"""`accelerator.jsonl`: results of the driver-level accelerator test, one line a suite and block size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from espbench.results.durable import write_atomically
from espbench.results.records import Records, read_records, read_what_is_whole, sealed
from espbench.terms import Record

FILE = "accelerator.jsonl"
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
