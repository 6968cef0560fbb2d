# SPDX-License-Identifier: Apache-2.0
"""The Scapy generator: for odd frames and for teaching, thousands of frames a second.

It is a process of its own (espbench_scapy is GPL-2.0-only) and speaks the native generator's protocol.
"""

from __future__ import annotations

import importlib.util
import sys

from espbench.generators.native import NativeGenerator
from espbench.platforms.base import Readiness

_MODULE = "espbench_scapy.generator"


class ScapyGenerator(NativeGenerator):
    """One espbench_scapy.generator process; it dies with this one."""

    name = "scapy"

    def paths(self) -> list[str]:
        """Return the only path that there is."""
        return []

    def command(self) -> list[str]:
        return [sys.executable, "-m", _MODULE]


def readiness() -> Readiness:
    """Doctor's answer."""
    if all(importlib.util.find_spec(name) for name in ("scapy", "espbench_scapy")):
        return Readiness("scapy", True, note="slow: thousands of frames a second")
    return Readiness("scapy", False, "the Python package scapy is not installed", "make setup")
