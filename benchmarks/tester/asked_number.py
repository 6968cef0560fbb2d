# SPDX-License-Identifier: Apache-2.0
"""Reads the command line of a benchmark that takes one number."""

from __future__ import annotations

import argparse
from typing import TypeVar

_Number = TypeVar("_Number", int, float)


def asked_number(description: str | None, name: str, default: _Number, meaning: str) -> _Number:
    """Return the number on the command line, or the default without one; `--help` shows its name and meaning."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        name, nargs="?", type=type(default), default=default, help=f"{meaning} (default: %(default)s)"
    )
    number: _Number = getattr(parser.parse_args(), name)
    return number
