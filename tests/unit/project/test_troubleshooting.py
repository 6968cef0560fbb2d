# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md quotes messages of the program as they are: each stands in its source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/troubleshooting.md"
ANY = "…"  # a name or a number in a message
# The first cell of a row; its code spans are messages, unless they are typed by the user or named by the reader.
FIRST_CELL = re.compile(r"^\| (.*?) \|", re.MULTILINE)
OF_USERS = {"kill -9", "espbench-…", "espbench report", "verify"}
_RUST_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def _texts_of_python(source: str) -> Iterator[str]:
    """Yield each text of a source, also one written in several pieces; values in it are ANY."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else ANY for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\{[^{}]*\}", ANY, node.value)


def _texts_of_rust(source: str) -> Iterator[str]:
    for text in _RUST_TEXT.findall(source):
        yield re.sub(r"\{[^{}]*\}", ANY, text)


def _texts() -> list[str]:
    python = [
        text for file in _files("harness/espbench", ".py") for text in _texts_of_python(file.read_text())
    ]
    return python + [
        text for file in _files("traffic/src", ".rs") for text in _texts_of_rust(file.read_text())
    ]


def _files(folder: str, ending: str) -> list[Path]:
    return sorted((ROOT / folder).rglob(f"*{ending}"))


def _quoted(page: str) -> list[str]:
    """Return the messages in the first cells of a page's rows."""
    spans = (span for cell in FIRST_CELL.findall(page) for span in re.findall(r"`([^`]+)`", cell))
    return [span for span in spans if span not in OF_USERS]


def _stands_in(message: str, texts: list[str]) -> bool:
    """Return whether one text has the fixed parts of a message in their order, with values where the message has ANY.

    An ANY at an end of the message may be any text.
    """
    fixed = message.strip(f"{ANY} ")
    return bool(fixed) and any(fixed in text for text in texts)


def test_each_message_of_the_page_is_in_the_sources() -> None:
    messages = _quoted(PAGE.read_text())
    assert len(messages) > 30
    texts = _texts()
    assert [message for message in messages if not _stands_in(message, texts)] == []


def test_a_message_that_has_changed_is_found() -> None:
    """The check above can fail; it sees texts in pieces, templates with formats, and Rust."""
    python = [*_texts_of_python('a = f"gateway {b:.1f} " "has " f"no {c}"; t = "at {fps:,.0f} frames/s"')]
    rust = [*_texts_of_rust('format!("interface {name} is down")')]
    assert _stands_in("gateway … has no …", python)
    assert _stands_in("at … frames/s", python)
    assert _stands_in("interface … is down", rust)
    assert not _stands_in("gateway … has a …", python)
    assert not _stands_in("interface … is up", rust)
    assert not _stands_in("…", rust)
    assert _quoted("| `a` with `b` | `c` |\n") == ["a", "b"]
