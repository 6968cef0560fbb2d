# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a check's verdict; those of an earlier check are removed before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import UsageError
from espbench.gate.telling import json_file, junit, markdown
from espbench.gate.verdict import Check
from espbench.results.durable import write_atomically

# /dev/stdout leads to the file into which the shell writes, and must stay what it is even then.
_OF_DEVICES = ("/dev", "/proc")


@dataclass(frozen=True)
class Outputs:
    """The file for each form of the verdict; None: this form is not written."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None

    def clear(self, inputs: Mapping[str, Path]) -> None:
        """Remove the files of an earlier check, before anything is measured.

        Raise UsageError if a file is one of the inputs (by their names, such as `the plan`) or another output, which is
        known before any file is touched; or if it cannot be removed or written.
        """
        refused = self._taken_for_another(inputs)
        for path, _ in [] if refused else self._forms():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if not is_written_directly(path):
                    path.unlink(missing_ok=True)
                    path.touch()
                    path.unlink()
            except OSError as error:
                refused.append(
                    f"{path}: expected a file that can be written, got: {error.strerror}; name another"
                )
        if refused:
            raise UsageError("\n".join(refused))

    def write(self, check: Check) -> None:
        """Write the verdict in all forms that were asked for."""
        for path, text_of in self._forms():
            write_output(path, text_of(check))

    def _taken_for_another(self, inputs: Mapping[str, Path]) -> list[str]:
        taken = {path.resolve(): name for name, path in inputs.items() if path.exists()}
        refused = []
        for path, _ in self._forms():
            if (name := taken.get(path.resolve())) is not None:
                refused.append(f"{path}: expected a file for the verdict alone, got {name}; name another one")
            if not is_written_directly(path):  # two verdicts may follow each other in a pipe
                taken.setdefault(path.resolve(), "the file of another verdict")
        return refused

    def _forms(self) -> list[tuple[Path, Callable[[Check], str]]]:
        forms = [
            (self.json, json_file.text_of),
            (self.junit, junit.text_of),
            (self.markdown, markdown.text_of),
        ]
        return [(path, text_of) for path, text_of in forms if path is not None]


def is_written_directly(path: Path) -> bool:
    """Return whether a path is a device or a pipe, such as /dev/stdout, which is not replaced by a file."""
    of_devices = any(path.absolute().is_relative_to(folder) for folder in _OF_DEVICES)
    return path.exists() and not path.is_dir() and (of_devices or not path.is_file())


def write_output(path: Path, text: str) -> None:
    """Write a file that the user named: replace it as a whole, or write into a device or a pipe."""
    if is_written_directly(path):
        with path.open("a", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.write(text)
    else:
        write_atomically(path, text)
