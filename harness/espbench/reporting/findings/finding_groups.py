# SPDX-License-Identifier: Apache-2.0
"""Groups findings so that one chart and one table can show a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from espbench.sentences import Code
from espbench.terms import Finding, Quantity, kind_of_test


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one test, DUT, direction and IP version."""

    test: str
    dut: str
    direction: str
    ip_version: int
    findings: list[Finding]

    @property
    def kind(self) -> str:
        """The kind of test; a plan may have two of one kind, which are two groups."""
        return kind_of_test(self.test)

    @property
    def directions(self) -> int:
        """The number of directions that the summed rates cover."""
        return 2 if self.direction == "both-ways" else 1

    @property
    def sizes(self) -> list[int | str]:
        """Frame sizes in ascending order, mixes of sizes last."""
        return sorted({f.frame_size for f in self.findings}, key=_by_size)

    @property
    def repeats(self) -> bool:
        """True if a case was measured more than once."""
        return any(f.repeat > 1 for f in self.findings)

    def arms(self) -> dict[str, list[Finding]]:
        """Group the findings by stack and suite."""
        by_arm: dict[str, list[Finding]] = {}
        for f in self.findings:
            by_arm.setdefault(arm_of(f), []).append(f)
        return by_arm


def groups_of(findings: Sequence[Finding]) -> list[FindingGroup]:
    """Group findings in the order in which the cases ran; within a group by stack, suite and rising frame size."""
    arms = list(dict.fromkeys(map(arm_of, findings)))
    by_case: dict[tuple[str, str, str, int], list[Finding]] = {}
    for f in sorted(findings, key=lambda f: (arms.index(arm_of(f)), _by_size(f.frame_size), f.repeat)):
        by_case.setdefault((f.test, f.dut, f.direction, f.ip_version), []).append(f)
    order = list(dict.fromkeys((f.test, f.dut, f.direction, f.ip_version) for f in findings))
    return [FindingGroup(*key, findings=by_case[key]) for key in order]


def _by_size(size: int | str) -> tuple[bool, int | str]:
    """Return the sort key of a frame size: numbers in rising order, then mixes of sizes."""
    return isinstance(size, str), size


def arm_of(f: Finding) -> str:
    """Return `xfrm · aes128gcm16`; the plain stack and foreign boxes have no suite."""
    return f.stack if f.suite == "none" else f"{f.stack} · {f.suite}"


def quantity(f: Finding, key: str) -> Quantity | None:
    """Return the quantity with this key (quantities.py) that covers all directions."""
    return next((q for q in f.quantities if q.key == key and not q.way), None)


def value(f: Finding, key: str) -> float | None:
    """Return the figure of a quantity."""
    q = quantity(f, key)
    return q.value if q else None


def headline(f: Finding) -> Quantity | None:
    """Return the test's main figure, which is its first quantity; None if that has no value."""
    return f.quantities[0] if f.quantities and f.quantities[0].value is not None else None


def is_lower_bound(f: Finding) -> bool:
    """Return whether the main figure is a lower bound: in some search, the longest burst tried lost nothing.

    The mean of such searches is a lower bound even if others found an end of the buffer.
    """
    return any(remark.code == Code.NO_BURST_LOST for remark in f.warnings)


def median_of(values: Sequence[float | None]) -> float | None:
    """Return the median of the repeats that have a figure."""
    known = [v for v in values if v is not None]
    return median(known) if known else None
