# SPDX-License-Identifier: Apache-2.0
"""Estimates the rate of a frame size from other sizes, by a cost per frame and a cost per byte."""

from __future__ import annotations

from collections.abc import Mapping

SINGULAR = 1e-12  # rows so nearly alike that rounding decides
LEAST_SIZES = 2  # one size alone cannot separate the cost per frame from the cost per byte


def predicted_fps(measured_fps: Mapping[float, float], size: float) -> float | None:
    """Estimate the rate at a frame size from the rates at others; None if there are too few.

    measured_fps: frame size (bytes) → throughput (frames/s). The seconds per frame are assumed to be `a + b·size`
    with a, b >= 0, fitted so that the sum of squared *relative* errors is least. The estimate only serves to choose
    the load at which a search begins.
    """
    if len(measured_fps) < LEAST_SIZES:
        return None
    a, b = _fit([(rate, other * rate) for other, rate in measured_fps.items()])
    return 1 / (a + b * size)


def _fit(rows: list[tuple[float, float]]) -> tuple[float, float]:
    """Return a, b >= 0 with a·x + b·y nearest to 1 over the rows (x, y)."""
    xx, yy = sum(x * x for x, _ in rows), sum(y * y for _, y in rows)
    xy = sum(x * y for x, y in rows)
    sum_x, sum_y = sum(x for x, _ in rows), sum(y for _, y in rows)
    determinant = xx * yy - xy * xy
    if determinant > SINGULAR * xx * yy:
        a = (sum_x * yy - sum_y * xy) / determinant
        b = (sum_y * xx - sum_x * xy) / determinant
        if a >= 0 and b >= 0:
            return a, b
    alone = [(sum_x / xx, 0.0), (0.0, sum_y / yy)]
    return min(alone, key=lambda fit: sum((1 - fit[0] * x - fit[1] * y) ** 2 for x, y in rows))
