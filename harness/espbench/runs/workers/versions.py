# SPDX-License-Identifier: Apache-2.0
"""Names the espbench of a machine, and words the message for a worker whose espbench differs from the driver's."""

from __future__ import annotations

from espbench.own_code import own_code
from espbench.version import __version__


def version_here() -> str:
    """Return the version of espbench on this machine, and a digest of its code."""
    return f"{__version__}, code {own_code()['code']}"


def different_code(where: str, expected: str, got: str) -> str:
    """Return the message that a worker runs another espbench than its driver."""
    return (
        f"{where}\n  expected: espbench {expected}\n  got: espbench {got}\n"
        "  what to do: install the same espbench on all machines"
    )
