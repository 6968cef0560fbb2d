# SPDX-License-Identifier: Apache-2.0
"""Saves the files that give names to a guest's counted addresses: symbols, address maps, and the mapped programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

Files = Callable[[], Iterable[tuple[str, bytes]]]
# The lines of each /proc/PID/maps follow a line that begins with this word.
PROCESS = "process "
_EXECUTABLE = 2  # the place of `x` in the permissions of a mapping
# This script prints the maps of all processes except its own shell. A process may end meanwhile.
_TELL = (
    f'for maps in /proc/[0-9]*/maps; do [ $maps = /proc/$$/maps ] || {{ echo "{PROCESS}$maps"; cat $maps; }}; done '
    "2>/dev/null; true"
)
ALL_PROCESSES = ["sh", "-c", _TELL]
ONLY_PROCESS = "/proc/1/maps"


@dataclass(frozen=True)
class ProfileFiles:
    """The files of a guest's profile. counts: QEMU writes the counts into this file.

    files: returns the (path, content) of the files in the guest's root. shell: the guest has a shell to run programs.
    """

    counts: Path
    files: Files
    shell: bool

    def put_symbols(self, text: str) -> None:
        """Save the kernel's table of functions (/proc/kallsyms)."""
        self._beside(".symbols").write_text(text)

    def put_maps(self, text: str) -> None:
        """Save the maps of the guest's processes, and each file of its root that is mapped as executable."""
        self._beside(".maps").write_text(text)
        lines = [line.split(maxsplit=5) for line in text.splitlines()]
        paths = {words[5] for words in lines if len(words) == 6 and words[1][_EXECUTABLE] == "x"}
        with ZipFile(self._beside(".zip"), "w") as mapped:
            for path, data in self.files():
                if f"/{path}" in paths and data:
                    mapped.writestr(path, data)

    def _beside(self, ending: str) -> Path:
        return self.counts.with_name(self.counts.name + ending)


def of(path: Path | None, side: str, files: Files, *, shell: bool) -> ProfileFiles | None:
    """Return the files of a gateway's profile; None if instructions are not counted (path is None)."""
    return ProfileFiles(path.with_name(f"{path.name}-{side}.txt"), files, shell) if path else None
