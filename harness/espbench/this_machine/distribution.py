# SPDX-License-Identifier: Apache-2.0
"""Says whether this machine can install Debian's packages, since espbench knows only Debian's package names."""

from __future__ import annotations

import platform
import shutil


def without_debian_packages() -> str:
    """Return the name of this machine's distribution if apt-get cannot install Debian's packages on it; else ""."""
    if shutil.which("apt-get") is not None:
        return ""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:  # the file does not exist
        return "this system"
