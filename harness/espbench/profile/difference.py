# SPDX-License-Identifier: Apache-2.0
"""Holds one profile against another, by function: where the difference in instructions per frame comes from."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.profile.attribution import Profile
from espbench.profile.symbols import Function


@dataclass(frozen=True)
class Row:
    """A function in both, instructions per frame; 0 where it was not executed."""

    function: Function
    was: float
    now: float

    @property
    def change(self) -> float:
        """The increase of its cost."""
        return self.now - self.was


def difference(was: Profile, now: Profile) -> list[Row]:
    """Return each function of either, the largest change first; their changes add up to that of all instructions."""
    before, after = was.by_function(), now.by_function()
    rows = [
        Row(function, before.get(function, 0) / was.frames, after.get(function, 0) / now.frames)
        for function in before.keys() | after.keys()
    ]
    return sorted(rows, key=lambda row: (-abs(row.change), row.function))
