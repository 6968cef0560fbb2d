# SPDX-License-Identifier: Apache-2.0
"""Defines the base of a check: the loads at each point of a plan, and the instructions per frame at these loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.terms import CaseIdentity

AT_THROUGHPUT = 1.0
# At a tenth of the throughput each frame finds an idle gateway, so its cost does not depend on the frames before it.
LOW = 0.1


@dataclass(frozen=True)
class Point:
    """A point of a plan at which figures were measured; independent of the numbers of the case and the repeat."""

    dut: str
    stack: str
    suite: str
    ip_version: int
    frame_size: int | str
    direction: str
    test: str

    @classmethod
    def of(cls, case: CaseIdentity) -> Point:
        """Return the point of a case, given one of its results or its entry in a manifest."""
        return cls(
            case.dut, case.stack, case.suite, case.ip_version, case.frame_size, case.direction, case.test
        )

    @property
    def order(self) -> tuple[Any, ...]:
        """The sort key of points: frame sizes by number, and mixes of sizes after them."""
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
    """One trial at the throughput of one repeat and loss goal, or at a share of it.

    instructions: per frame, by gateway. met: whether this trial met the goal; MLRsearch allows that some miss it.
    share: the load as a share of the throughput.
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

    run: the name of the run directory. started: the start of that run, ISO 8601. subject: the user's own kernels and
    daemons that were under test (conditions.py).
    """

    point: Point
    samples: Sequence[Sample]
    run: str
    started: str
    subject: Mapping[str, str]


@dataclass(frozen=True)
class Base:
    """All points of a base, the conditions for which they are valid, and where they were read (a file or run)."""

    where: str
    conditions: Mapping[str, str]
    cases: Mapping[Point, BaseCase]
    commit: str = ""  # of the user's source tree, if the base was built from one

    @property
    def provenance(self) -> list[str]:
        """The runs from which the figures come, each once, after the commit of the user's tree, if there is one."""
        runs = dict.fromkeys(f"{case.run}, begun {case.started}" for case in self.cases.values())
        return [*([f"commit {self.commit}"] if self.commit else []), *runs]

    @property
    def has_low_loads(self) -> bool:
        """True if each case was measured at a tenth of its throughput too."""
        return all(any(s.share < AT_THROUGHPUT for s in case.samples) for case in self.cases.values())

    @property
    def repeats(self) -> int:
        """The largest number of repeats at one point."""
        return max((len({s.repeat for s in case.samples}) for case in self.cases.values()), default=0)
