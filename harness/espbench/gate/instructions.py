# SPDX-License-Identifier: Apache-2.0
"""Instructions per frame: in virtual time a gateway's CPU time is the instructions it executed, in another unit."""

from __future__ import annotations

from espbench.terms import Trial

DIGITS = 3  # digits that are recorded and compared


def per_frame(trial: Trial) -> dict[str, float]:
    """Return the instructions per frame of each gateway of which they are known."""
    counted = {side: reading.instructions_per_frame for side, reading in trial.gateways.items()}
    return {side: round(value, DIGITS) for side, value in counted.items() if value}
