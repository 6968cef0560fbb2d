# SPDX-License-Identifier: Apache-2.0
"""Checks the user's kernel for an emulated board, which must have espbench's additions.

The user's kernel is a vmlinux for the e500 with the files of harness/emulator/kernel in it. Without them espbench would
know neither how long the CPU was idle nor how ESP uses the SEC. Boards load no modules: all drivers must be built in.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from espbench.errors import UsageError

_RELEASE = re.compile(rb"Linux version (\S+) \(")
_ELF_32_BIG_ENDIAN, _POWERPC = b"\x7fELF\x01\x02", (20).to_bytes(2, "big")
# Names that the kernel must contain, and their purpose.
_NEEDED = {
    b"espbench_idle\0": "how long the CPU was idle (harness/emulator/kernel/idle.c)",
    b"espbench_crypto\0": "how ESP uses the SEC (harness/emulator/kernel/crypto.c)",
    b"fsl-gianfar\0": "the driver of its Ethernet ports (CONFIG_GIANFAR)",
}
_DIGITS = 16


def identified(path: Path) -> str:
    """Return the release, file name and SHA-256 of the user's kernel. Raise UsageError if a board cannot boot it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _refused(path, "a file that can be read", error.strerror or str(error)) from None
    if not data.startswith(_ELF_32_BIG_ENDIAN) or data[18:20] != _POWERPC:
        raise _refused(path, "a vmlinux for a 32-bit PowerPC", "another file")
    banner = _RELEASE.search(data)
    if banner is None:
        raise _refused(path, "a Linux kernel that tells its version", "none in it")
    release = banner[1].decode(errors="replace")
    for name, what in _NEEDED.items():
        if name not in data:
            raise _refused(path, f"a kernel that has, built in, {what}", f"{release} without it")
    return f"{release}, {path.name} sha256 {hashlib.sha256(data).hexdigest()[:_DIGITS]}"


def _refused(path: Path, expected: str, got: str) -> UsageError:
    return UsageError(
        f"kernel: {path}\n  expected: {expected}\n  got: {got}\n  what to do: build it as docs/powerquicc.md shows, or "
        "remove kernel:"
    )
