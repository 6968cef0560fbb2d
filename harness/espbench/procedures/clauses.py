# SPDX-License-Identifier: Apache-2.0
"""Which clauses of RFC 2544 a test's settings do not keep."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.plan.rfc2544_tests import AroundTrials

_SIZES = frozenset({64, 128, 256, 512, 1024, 1280, 1518})
_RESIDUE_S, _SETTLE_S, _LEARNING_S = 2.0, 5.0, 2.0


def shorter(clause: str, what: str, got: float, wanted: float, unit: str = " s") -> list[str]:
    """One sentence if less than wanted, else nothing."""
    return [] if got >= wanted else [f"{clause}: {what} {got:g}{unit} instead of {wanted:g}{unit}"]


def common(settings: AroundTrials, frame_sizes: Sequence[int | str]) -> list[str]:
    """Frame sizes (9.1) and the waits around every trial (23)."""
    deviations = []
    if len(_SIZES & set(frame_sizes)) < 5:
        deviations.append("9.1: fewer than five of the standard frame sizes")
    for clause, what, got, wanted in (
        ("23 b", "after learning frames", settings.learning, _LEARNING_S),
        ("23 d", "for the residue", settings.residue, _RESIDUE_S),
        ("23 e", "before the next trial", settings.settle, _SETTLE_S),
    ):
        if got < wanted:
            deviations.append(f"{clause}: {got:g} s {what} instead of {wanted:g} s")
    return deviations
