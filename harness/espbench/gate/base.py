# SPDX-License-Identifier: Apache-2.0
"""Defines the base that a check compares a run with: at each point of a plan the loads, and what a frame cost there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.terms import CaseIdentity

AT_THROUGHPUT = 1.0
# There a gateway that is busy all the time hides what a frame costs in the length of its queues; at half of it not.
HALF = 0.5


@dataclass(frozen=True)
class Point:
    """A point of a plan at which figures were measured, independent of the numbers of the case and of the repeat."""

    dut: str
    stack: str
    suite: str
    ip_version: int
    frame_size: int | str
    direction: str
    test: str

    @classmethod
    def of(cls, case: CaseIdentity) -> Point:
        """Return the point of a case, of one of its results or of its entry in a manifest."""
        return cls(
            case.dut, case.stack, case.suite, case.ip_version, case.frame_size, case.direction, case.test
        )

    @property
    def order(self) -> tuple[Any, ...]:
        """The key to sort points by: sizes by number, and mixes of sizes after them."""
        size = self.frame_size
        number, name = (size, "") if isinstance(size, int) else (1 << 32, size)
        return (
            self.dut, self.stack, self.suite, self.ip_version, number, name, self.direction, self.test
        )  # fmt: skip

    def __str__(self) -> str:
        size = f"{self.frame_size} B" if isinstance(self.frame_size, int) else self.frame_size
        words = [self.dut, self.stack, "" if self.suite == "none" else self.suite, size, self.direction]
        words += ["IPv6" if self.ip_version == 6 else "", "" if self.test == "throughput" else self.test]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class Sample:
    """One trial at the throughput of one repeat and loss goal, or at a share of it; instructions per frame by gateway.

    met: whether the trial itself met the goal; an MLRsearch's may have been one of the misses that it allows.
    """

    repeat: int
    goal: float
    load_fps: float
    duration_s: float
    instructions: Mapping[str, float]
    met: bool
    share: float = AT_THROUGHPUT


@dataclass(frozen=True)
class BaseCase:
    """The samples of one point, of all repeats and loss goals.

    run: the name of the run directory. started: of that run, ISO 8601. subject: what was under test (conditions.py).
    """

    point: Point
    samples: Sequence[Sample]
    run: str
    started: str
    subject: Mapping[str, str]


@dataclass(frozen=True)
class Base:
    """Has all points, what they are valid for, and where it was read."""

    where: str
    conditions: Mapping[str, str]
    cases: Mapping[Point, BaseCase]
    commit: str = ""  # of the user's tree, where the base was built from one

    @property
    def provenance(self) -> list[str]:
        """The runs that its figures come from, each once."""
        runs = dict.fromkeys(f"{case.run}, begun {case.started}" for case in self.cases.values())
        return [*([f"commit {self.commit}"] if self.commit else []), *runs]

    @property
    def has_halves(self) -> bool:
        """True if each case was measured at half of its throughput too."""
        return all(any(s.share < AT_THROUGHPUT for s in case.samples) for case in self.cases.values())

    @property
    def repeats(self) -> int:
        """The largest number of samples in one of its bands."""
        return max((len({s.repeat for s in case.samples}) for case in self.cases.values()), default=0)
