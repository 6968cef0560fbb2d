# SPDX-License-Identifier: Apache-2.0
"""Compares two profiles by function: where the difference in instructions per frame comes from."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.profile.attribution import Profile
from espbench.profile.symbols import Function


@dataclass(frozen=True)
class Row:
    """The cost of one function in both profiles, instructions per frame; 0 if it was not executed."""

    function: Function
    was: float
    now: float

    @property
    def change(self) -> float:
        """The increase of the function's cost, instructions per frame."""
        return self.now - self.was


def difference(was: Profile, now: Profile) -> list[Row]:
    """Return a row for each function of either profile, the largest change first.

    The changes add up to the change of all instructions per frame.
    """
    before, after = was.by_function(), now.by_function()
    rows = [
        Row(function, before.get(function, 0) / was.frames, after.get(function, 0) / now.frames)
        for function in before.keys() | after.keys()
    ]
    return sorted(rows, key=lambda row: (-abs(row.change), row.function))
