# SPDX-License-Identifier: Apache-2.0
"""Computes the range of a case's loads from the plan's limits, the line rate and the generator's ceiling."""

from __future__ import annotations

import math
from dataclasses import dataclass

from espbench.plan.reading.units import Rate
from espbench.plan.resolved.cases import Case
from espbench.terms import Calibration, line_rate_fps, loaded_directions

# A tester cannot repeatedly offer 99.5 % of its own ceiling, so the highest load is below it. A throughput
# within 10 % of the ceiling gets a warning.
CEILING_MARGIN = 0.9
# A calibration that reached this share of the line rate was limited by the line, not by the tester.
_FILLS_THE_LINE = 0.999
# If neither line rate nor ceiling is known, a search begins at the line rate of such a line. The maximum then
# becomes the highest load that could be offered.
ASSUMED_BPS = 10e9


@dataclass(frozen=True)
class Limits:
    """The range of one case's loads; rates are sums over both directions, frames/s.

    A line rate of 0 means that it is not known. Then every figure that is a share of it is empty. carried_fps: the
    highest rate of the tester's links, which may carry ESP; infinite if it is not known.
    """

    minimum_fps: float
    maximum_fps: float
    line_rate_fps: float
    ceiling_fps: float | None
    line_rate_bps: float = 0.0
    carried_fps: float = math.inf

    def is_line_rate(self, fps: float) -> bool:
        """Return whether a load is the line's theoretical rate; False also if that is not known."""
        return self.line_rate_fps > 0 and fps >= _FILLS_THE_LINE * self.line_rate_fps


def limits(
    case: Case, line_rate_bps: float, calibration: Calibration | None, fastest_fps: float = math.inf
) -> Limits:
    """Return the plan's limits, or the defaults that docs/plan.md names.

    The default maximum is the line rate, or CEILING_MARGIN of the calibrated ceiling if the tester does not reach the
    line rate. If both are unknown, it is the line rate of a line of ASSUMED_BPS. The default minimum is 1 % of the
    maximum.

    fastest_fps is the highest rate, in each direction, that the generator accepts: no maximum is above it.

    With several frame sizes, a maximum in frames/s may exceed the line rate of a larger size; then the line rate is
    the maximum. If the tester's own link carries ESP, the line rate is that of the longer ESP frames.
    """
    size = case.mean_frame_size
    directions = loaded_directions(case.direction)
    line = line_rate_fps(size, line_rate_bps) * directions
    ceiling = min(calibration.offered_fps, calibration.received_fps) if calibration else None

    def asked(key: str) -> float | None:
        rate: Rate | None = getattr(case.settings, key, None)
        return rate.to_fps(size, line_rate_bps) * directions if rate is not None else None

    on_the_wire = case.ciphertext_frame_size or size
    carried = line_rate_fps(on_the_wire, line_rate_bps) * directions if line_rate_bps else math.inf
    highest = asked("maximum")
    if highest is None and ceiling and ceiling < _FILLS_THE_LINE * carried:
        highest = CEILING_MARGIN * ceiling
    elif highest is None and not line_rate_bps:
        highest = line_rate_fps(on_the_wire, ASSUMED_BPS) * directions
    maximum = min(carried, math.inf if highest is None else highest, fastest_fps * directions)
    minimum = asked("minimum") or maximum / 100
    return Limits(min(minimum, maximum), maximum, line, ceiling, line_rate_bps, carried)
