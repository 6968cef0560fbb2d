# SPDX-License-Identifier: Apache-2.0
"""Gives a benchmark the folder in which it builds and measures: one that the user keeps, or a temporary one."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def parser_with_keep(description: str | None, contents: str) -> argparse.ArgumentParser:
    """Return a parser with the option --keep, for a folder with these contents."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help=f"a folder for {contents}, used again if it is there"
    )
    return parser


@contextmanager
def kept_folder(asked: Path | None) -> Iterator[Path]:
    """Yield the folder that --keep names, made if needed; without the option a temporary one. Its path is absolute."""
    with tempfile.TemporaryDirectory(prefix="espbench-") as temporary:
        folder = (asked or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
