# SPDX-License-Identifier: Apache-2.0
"""The Scapy generator: for unusual frames and for teaching, thousands of frames a second.

It is a separate process (espbench_scapy is GPL-2.0-only) with the native generator's protocol.
"""

from __future__ import annotations

import importlib.util
import sys

from espbench.generators.native import NativeGenerator
from espbench.platforms.base import Readiness

_MODULE = "espbench_scapy.generator"


class ScapyGenerator(NativeGenerator):
    """One espbench_scapy.generator process, which ends with this process."""

    name = "scapy"

    def paths(self) -> list[str]:
        """Return nothing: there is only one path, so there is no choice."""
        return []

    def command(self) -> list[str]:
        return [sys.executable, "-m", _MODULE]


def readiness() -> Readiness:
    """Return, for `espbench doctor`, whether this machine can use the Scapy generator."""
    if all(importlib.util.find_spec(name) for name in ("scapy", "espbench_scapy")):
        return Readiness("scapy", True, note="slow: thousands of frames a second")
    return Readiness("scapy", False, "the Python package scapy is not installed", "make setup")
