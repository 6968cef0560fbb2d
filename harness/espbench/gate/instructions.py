# SPDX-License-Identifier: Apache-2.0
"""Computes instructions per frame, which follow from a gateway's CPU time: virtual time counts instructions."""

from __future__ import annotations

from espbench.terms import Trial

DIGITS = 3  # decimal places that are recorded and compared


def per_frame(trial: Trial) -> dict[str, float]:
    """Return the instructions per frame, by gateway; gateways for which they are not known are left out."""
    counted = {side: reading.instructions_per_frame for side, reading in trial.gateways.items()}
    return {side: round(value, DIGITS) for side, value in counted.items() if value}
