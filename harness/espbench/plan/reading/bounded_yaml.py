# SPDX-License-Identifier: Apache-2.0
"""Reads YAML that may be hostile: of bounded depth and number of values, and from files of at most MOST_BYTES.

PyYAML composes by recursion, and its constructors of `!!int` and the like raise many kinds of errors. Here all of
these become a YAMLError with its place, or NotRead. libyaml reads a text ten times as fast as PyYAML's own reader.
But if it finds a mistake, or if the text has one of the few things that the two read differently, PyYAML reads the
text. So the messages are always PyYAML's.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import Resolver
from yaml.scanner import Scanner

from espbench.regular_files import NotRead

MOST_BYTES = 64 * 1024
MOST_VALUES = 3_000  # aliases can multiply values: more than this are a mistake or an attack
DEEPEST = 32
# libyaml reads a tab between words, and a tag without a name, differently. It counts no column for a byte order mark.
_READ_OTHERWISE = "\t!\ufeff"


def composed(text: str) -> tuple[Loader, yaml.Node | None]:
    """Return the loader of a text, which can construct its scalars, and the text's root node (None if it is empty).

    Raise YAMLError.
    """
    if not any(character in text for character in _READ_OTHERWISE):
        try:
            quick = _Quick(text)
            return quick, quick.get_single_node()
        except (yaml.YAMLError, UnicodeEncodeError):
            pass
    thorough = _Thorough(text)
    return thorough, thorough.get_single_node()


class Loader(Composer, SafeConstructor, Resolver):
    """PyYAML's loader without its parser; it refuses a text that is nested too deeply or has too many values."""

    def __init__(self) -> None:
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)
        self._depth = 0
        self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        self._values += 1
        mark = self.peek_event().start_mark  # type: ignore[attr-defined]
        if self._depth > DEEPEST:
            raise yaml.composer.ComposerError(None, None, f"more than {DEEPEST} levels of nesting", mark)
        if self._values > 2 * MOST_VALUES:  # keys are nodes too
            raise yaml.composer.ComposerError(None, None, f"more than {MOST_VALUES} values", mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def scalar(self, node: yaml.Node) -> Any:
        """Return the value of a scalar, by its tag. Raise YAMLError, or NotRead if the text is not a value of that
        tag.
        """
        try:
            return self.construct_object(node)
        except ValueError as error:  # such as the date 2026-99-99
            raise NotRead(str(error)) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:  # such as !!bool x
            raise NotRead(f"not a YAML {node.tag.rpartition(':')[2]}") from error


class _Quick(Loader, CParser):
    """A loader that parses with libyaml."""

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Loader.__init__(self)


class _Thorough(Loader, Reader, Scanner, Parser):
    """A loader that parses with PyYAML."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Loader.__init__(self)
