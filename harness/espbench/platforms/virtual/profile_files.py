# SPDX-License-Identifier: Apache-2.0
"""Leaves beside a guest's instruction counts what names its addresses: symbols, address maps, the programs mapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from espbench.platforms.virtual.parts.cpio import entries

# What begins the addresses of a process; each line of its /proc/PID/maps follows.
PROCESS = "process "
_EXECUTABLE = 2  # the place of `x` in the permissions of a mapping
# Prints the maps of all processes but that of the shell which prints; one may end meanwhile.
_TELL = (
    f'for maps in /proc/[0-9]*/maps; do [ $maps = /proc/$$/maps ] || {{ echo "{PROCESS}$maps"; cat $maps; }}; done '
    "2>/dev/null; true"
)
ALL_PROCESSES = ["sh", "-c", _TELL]
ONLY_PROCESS = "/proc/1/maps"


@dataclass(frozen=True)
class ProfileFiles:
    """Where QEMU writes a guest's counts, and the archives of its root. shell: the guest has one to run programs."""

    counts: Path
    archives: Callable[[], Sequence[bytes]]
    shell: bool

    def put_symbols(self, text: str) -> None:
        """Keep the kernel's table of functions (/proc/kallsyms)."""
        self._beside(".symbols").write_text(text)

    def put_maps(self, text: str) -> None:
        """Keep the maps of the guest's processes, and each file of its root that is mapped to be executed."""
        self._beside(".maps").write_text(text)
        lines = [line.split(maxsplit=5) for line in text.splitlines()]
        paths = {words[5] for words in lines if len(words) == 6 and words[1][_EXECUTABLE] == "x"}
        with ZipFile(self._beside(".zip"), "w") as files:
            for entry in (entry for archive in self.archives() for entry in entries(archive)):
                if f"/{entry.path}" in paths and entry.data:
                    files.writestr(entry.path, entry.data)

    def _beside(self, ending: str) -> Path:
        return self.counts.with_name(self.counts.name + ending)


def of(
    path: Path | None, side: str, archives: Callable[[], Sequence[bytes]], *, shell: bool
) -> ProfileFiles | None:
    """Return the files of a gateway's profile; None where nothing is counted."""
    return ProfileFiles(path.with_name(f"{path.name}-{side}.txt"), archives, shell) if path else None
