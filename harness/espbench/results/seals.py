# SPDX-License-Identifier: Apache-2.0
"""Seals the lines of `trials.jsonl`: a seal is a checksum over a line and over the seal of the case's line before it.

A line that was changed, removed or moved within its case breaks the chain from there on. The seal is the last key of
`host`, the part of a line that differs between two runs with the same results, because the seal does too. Logs of
versions without seals have lines without them.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from espbench.results.durable import to_json
from espbench.terms import Trial

KEY = "seal"
_DIGITS = 16
_BEFORE, _AFTER = f'"{KEY}":"'.encode(), b'"}}\n'
_FROM = len(_AFTER) + _DIGITS
_NAMELESS = re.compile(rb'"[^"]{%d}":"[0-9a-f]{%d}"}}\n$' % (len(KEY), _DIGITS))


def sealed(trial: Trial, before: str) -> bytes:
    """Return the line of a trial with its line break; before: `follows` of the case's line before it, or ""."""
    record = trial.model_dump(mode="json")
    host: dict[str, Any] = record.pop("host")
    record["host"] = {**{key: value for key, value in host.items() if key != KEY}, KEY: "0" * _DIGITS}
    line = (to_json(record) + "\n").encode(errors="replace")  # only messages of a gateway may be invalid text
    return line[:-_FROM] + _digest(line[:-_FROM], before).encode() + _AFTER


def held(line: bytes, before: str) -> str:
    """Return the seal of a line if the line is unchanged and follows the one with the seal `before`; else empty."""
    # Not by _digest, because every line of a run is checked before it is read.
    digest = sha256(b"%b\n%b" % (before.encode(), line[:-_FROM])).hexdigest()[:_DIGITS]
    return digest if line.endswith(b"%b%b%b" % (_BEFORE, digest.encode(), _AFTER)) else ""


def follows(line: bytes, before: str) -> str:
    """Return the seal to which the case's next line is chained: the line's own, or a checksum of it if it has none."""
    return line[-_FROM : -len(_AFTER)].decode() if is_sealed(line) else _digest(line, before)


def is_sealed(line: bytes) -> bool:
    """Return whether a line has a seal; `held` says whether the seal is right."""
    return line.endswith(_AFTER) and line.endswith(_BEFORE, 0, -_FROM)


def was_sealed(line: bytes) -> bool:
    """Return whether a line ends like one with a seal, even if the name of the seal's key is damaged."""
    return _NAMELESS.search(line) is not None


def _digest(text: bytes | memoryview, before: str) -> str:
    digest = sha256(before.encode() + b"\n")
    digest.update(text)
    return digest.hexdigest()[:_DIGITS]
