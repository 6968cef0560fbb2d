# SPDX-License-Identifier: Apache-2.0
"""Checks for the programs that build the parts, and runs them so that they end when espbench ends."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.platforms.base import Readiness
from espbench.this_machine.registry import Registry, Surroundings

CROSS = "powerpc-linux-gnu-"
LAST_LINES = 15
# The time stamp in products, in place of the time of the build: 2026-01-01, s.
EPOCH = 1767225600
# A required program, or the path of a required file → its Debian package.
NEEDS = {
    f"{CROSS}gcc": "gcc-powerpc-linux-gnu",
    "/usr/powerpc-linux-gnu/include/stdio.h": "libc6-dev-powerpc-cross",
    "gcc": "gcc",
    "/usr/include/stdio.h": "libc6-dev",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "xz": "xz-utils",
    "patch": "patch",
    "dpkg-source": "dpkg-dev",
    "ninja": "ninja-build",
    "meson": "meson",
    "pkg-config": "pkg-config",
}
LIBRARIES = {
    "glib-2.0": "libglib2.0-dev",
    "pixman-1": "libpixman-1-dev",
    "zlib": "zlib1g-dev",
    "libfdt": "libfdt-dev",
    "nettle": "nettle-dev",
    "gmp": "libgmp-dev",
}


def missing(without: Collection[str] = ()) -> list[str]:
    """Return the missing Debian packages; without: the keys of NEEDS and LIBRARIES that are not needed."""
    needs = {witness: package for witness, package in NEEDS.items() if witness not in without}
    libraries = {library: package for library, package in LIBRARIES.items() if library not in without}
    lacking = [package for witness, package in needs.items() if not _there(witness)]
    if shutil.which("pkg-config"):
        for library, package in libraries.items():
            asked = subprocess.run(["pkg-config", "--exists", library], check=False, capture_output=True)
            # libfdt of Debian 12 has no .pc file.
            if asked.returncode and not Path(f"/usr/include/{library}.h").is_file():
                lacking.append(package)
    else:
        lacking += libraries.values()
    return lacking


def need(built: str, without: Collection[str] = ()) -> Readiness:
    """Return whether this machine has all build tools; built: the name of the parts, for the message."""
    lacking = missing(without)
    return Readiness(
        "build tools",
        not lacking,
        f"building {built} needs {', '.join(lacking)}",
        f"apt-get install --no-install-recommends {' '.join(lacking)}",
    )


def versions(without: Collection[str] = ()) -> dict[str, str]:
    """Return the versions of the needed compilers, as they print them: a part's bytes depend on them too."""
    asked = {"compiler": ["gcc", "--version"]}
    if f"{CROSS}gcc" not in without:
        asked = {"cross compiler": [f"{CROSS}gcc", "--version"], **asked}
        asked |= {"cross linker": [f"{CROSS}ld", "--version"]}
    if "meson" not in without:
        asked |= {"meson": ["meson", "--version"]}
    return {
        name: subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        for name, argv in asked.items()
    }


def _there(witness: str) -> bool:
    return Path(witness).exists() if witness.startswith("/") else shutil.which(witness) is not None


class Runner:
    """Runs the programs of one step, one after the other, with one log.

    on_line gets each line that they print. The programs do not have the user's environment: a CFLAGS in it would
    change the product without changing its key. With `online` they have it, for a proxy.
    """

    def __init__(self, registry: Registry, log: Path, on_line: Callable[[str], None]) -> None:
        self._registry = registry
        self._on_line = on_line
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")

    def run(
        self,
        argv: Sequence[str],
        folder: Path,
        what: str,
        *,
        env: Mapping[str, str] | None = None,
        online: bool = False,
    ) -> str:
        """Run a program in a folder, and return its output. Raise EspbenchError, with its last lines, if it fails."""
        own = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C",
            "TZ": "UTC",
            "SOURCE_DATE_EPOCH": str(EPOCH),
            **(env or {}),
        }
        entries = len(self._registry.entries)
        # The registry starts programs in espbench's own folder, so env(1) changes to the given folder.
        process = self._registry.spawn(
            ["env", f"--chdir={folder}", *argv],
            what,
            Surroundings(env=dict(os.environ) | own if online else own),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        printed = []
        with process.stdout, self.log.open("a", buffering=1) as log:  # line by line, for people who watch it
            log.write(f"# {' '.join(argv)}\n")
            for raw in process.stdout:
                line = raw.decode(errors="replace")
                log.write(line)
                printed.append(line)
                self._on_line(line.strip())
        code = process.wait()
        self._registry.undo(self._registry.entries[entries:])
        if code:
            words = "".join(printed[-LAST_LINES:]).strip()
            raise EspbenchError(f"{what}: {argv[0]} ended with {code}; all it said is in {self.log}\n{words}")
        return "".join(printed)


def processors() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
