# SPDX-License-Identifier: Apache-2.0
"""Makes a strongSwan that tests can distinguish from Debian's: the same programs with another version number."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from espbench.stacks.daemons import packages


def own_strongswan(image: Path) -> Path:
    """Make a DESTDIR image of Debian's strongSwan for which charon reports a version with 7 in place of 5."""
    shutil.copytree(packages.unpacked("strongswan"), image, symlinks=True)
    plugin = image / "usr/lib/ipsec/plugins/libstrongswan-vici.so"
    code = plugin.read_bytes()
    (version,) = set(re.findall(rb"\0(5\.\d+\.\d+)\0", code))
    plugin.write_bytes(code.replace(b"\0" + version + b"\0", b"\0" + b"7" + version[1:] + b"\0"))
    return image
