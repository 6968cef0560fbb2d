# SPDX-License-Identifier: Apache-2.0
"""Writes the files of a check's verdict; those of an earlier check are removed before anything is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import UsageError
from espbench.gate.telling import json_file, junit, markdown
from espbench.gate.verdict import Check
from espbench.results.durable import write_atomically


@dataclass(frozen=True)
class Outputs:
    """The file for each form of the verdict; None: this form is not written."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None

    def clear(self) -> None:
        """Remove the files of an earlier check, before anything is measured.

        Raise UsageError if a file cannot be removed or written.
        """
        refused: list[str] = []
        for path, _ in self._forms():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
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
            write_atomically(path, text_of(check))

    def _forms(self) -> list[tuple[Path, Callable[[Check], str]]]:
        forms = [
            (self.json, json_file.text_of),
            (self.junit, junit.text_of),
            (self.markdown, markdown.text_of),
        ]
        return [(path, text_of) for path, text_of in forms if path is not None]
