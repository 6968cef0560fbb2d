# SPDX-License-Identifier: Apache-2.0
"""YAML that may be hostile: read only from regular files, of bounded size, depth and number of values.

PyYAML composes by recursion and its constructors of `!!int` and the like raise whatever comes up; here all
that ends as a YAMLError with its place.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import yaml

MOST_BYTES = 64 * 1024
MOST_VALUES = 3_000  # aliases can multiply: who writes more than this has made a slip, or means harm
DEEPEST = 32


class NotRead(Exception):
    """A file or a value that cannot or must not be read; the text says why."""


def bytes_of(path: Path, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file of at most so many; a device or a pipe might never end. Raises NotRead."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotRead(error.strerror or str(error)) from error
    except ValueError as error:  # a NUL or a lone surrogate in its name
        raise NotRead(f"no path: {error}") from error
    try:
        kind = os.fstat(fd).st_mode
        if not stat.S_ISREG(kind):
            raise NotRead("Is a directory" if stat.S_ISDIR(kind) else "not a regular file")
        data = b""
        while len(data) <= most and (more := os.read(fd, most + 1 - len(data))):
            data += more
    except OSError as error:
        raise NotRead(error.strerror or str(error)) from error
    finally:
        os.close(fd)
    if len(data) > most:
        raise NotRead(f"more than {most // 1024} KiB")
    return data


class Loader(yaml.SafeLoader):
    """PyYAML's, that gives up on what is too deep or too much."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        self._values += 1
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self._depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"more than {DEEPEST} levels of nesting", mark)
        if self._values > 2 * MOST_VALUES:  # keys are nodes too
            raise yaml.composer.ComposerError(None, None, f"more than {MOST_VALUES} values", mark)
        found: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return found

    def scalar(self, node: yaml.Node) -> Any:
        """The value of a scalar, by its tag. Raises YAMLError, NotRead where the value is not of the tag's kind."""
        try:
            return self.construct_object(node)
        except ValueError as error:  # such as the date 2026-99-99
            raise NotRead(str(error)) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:  # such as !!bool x
            raise NotRead(f"not a YAML {node.tag.rpartition(':')[2]}") from error
