# SPDX-License-Identifier: Apache-2.0
"""`espbench clean`: removes everything that killed controllers left behind."""

from __future__ import annotations

# This import registers how to undo changes of a box, and how to switch on one that was left switched off.
from espbench.platforms.remote import remote_gateway as _boxes  # noqa: F401
from espbench.this_machine import registry


def clean() -> None:
    """Remove what interrupted runs left behind; do not touch runs that are still running."""
    removed = registry.clean()
    for line in removed:
        print(f"removed {line}")
    print(f"{len(removed)} things removed" if removed else "nothing to clean")
