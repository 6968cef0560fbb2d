# SPDX-License-Identifier: Apache-2.0
"""Parses the output of `swanctl --raw`: vici messages as nested `key=value`, `section {…}` and `list=[a b]`."""

from __future__ import annotations

import re
from typing import Any

# A value ends before the next key, section, list or closing brace; it may contain spaces.
_TOKEN = re.compile(
    r"(?P<open>[^\s={}\[\]]+) ?\{|(?P<close>\})|(?P<list>[^\s={}\[\]]+)=\[(?P<items>[^\]]*)\]|(?P<key>[^\s={}\[\]]+)="
)
_NEXT = re.compile(r" (?=[^\s={}\[\]]+ ?\{|[^\s={}\[\]]+=)|\}|$")


def parse(line: str) -> dict[str, Any]:
    """Return one message as nested dictionaries; the text before the first brace is ignored."""
    start = line.find("{")
    root: dict[str, Any] = {}
    stack = [root]
    at = start + 1 if start >= 0 else len(line)
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            at += 1
            continue
        at = token.end()
        if name := token["open"]:
            section: dict[str, Any] = {}
            stack[-1][name] = section
            stack.append(section)
        elif token["close"]:
            stack.pop()
            if not stack:
                break
        elif name := token["list"]:
            stack[-1][name] = token["items"].split()
        else:
            end = _NEXT.search(line, at)
            stop = end.start() if end else len(line)
            stack[-1][token["key"]] = line[at:stop]
            at = stop
    return root


def messages(text: str) -> list[dict[str, Any]]:
    """Return every message of an output, which has one message a line."""
    return [parse(line) for line in text.splitlines() if "{" in line]
