# SPDX-License-Identifier: Apache-2.0
"""The settings of tests that only emulated boards have.

The docstring under each key is also its description in the JSON Schema editors use.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from espbench.plan.keys.rfc2544_tests import AtThroughput
from espbench.plan.keys.values import TrialDuration


class Bus(AtThroughput):
    """Bytes that a gateway moves over its memory bus per frame: Ethernet, security engine, and (estimated) CPU."""

    keys_are: ClassVar[str] = "a key of a bus test"
    of_rfc2544: ClassVar[bool] = False  # the standard has none

    trial: TrialDuration = 1.0
    """Length of the trial."""
    misses_per_us: Annotated[float, Field(ge=0, le=1000, strict=False)] = 10.0
    """Assumed cache misses per microsecond of busy CPU, of 32 bytes each; no cache is emulated."""
