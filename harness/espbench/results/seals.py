# SPDX-License-Identifier: Apache-2.0
"""The seal of a line of `trials.jsonl`: a checksum over the line and over the seal of the case's line before it.

A line that was changed, removed or moved within its case breaks the chain from there on. The seal is the last
key under `host`: all else that a line says may be the same in two runs, the seal is as the host's part is.
Logs of versions without seals have lines without.
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
    """Return the line of a trial with its line break; before: what `follows` says of the case's last line, or ""."""
    record = trial.model_dump(mode="json")
    host: dict[str, Any] = record.pop("host")
    record["host"] = {**{key: value for key, value in host.items() if key != KEY}, KEY: "0" * _DIGITS}
    line = (to_json(record) + "\n").encode(errors="replace")  # only a gateway's last words can be no text
    return line[:-_FROM] + _digest(line[:-_FROM], before).encode() + _AFTER


def held(line: bytes, before: str) -> str:
    """Return the seal of a line that is as it was written and follows the one whose seal is `before`; else empty."""
    if not is_sealed(line):
        return ""
    seal = line[-_FROM : -len(_AFTER)].decode(errors="replace")
    return seal if seal == _digest(memoryview(line)[:-_FROM], before) else ""


def follows(line: bytes, before: str) -> str:
    """Return the seal that the case's next line is chained to."""
    return line[-_FROM : -len(_AFTER)].decode() if is_sealed(line) else _digest(line, before)


def is_sealed(line: bytes) -> bool:
    """Return whether a line has a seal; `held` says whether it is the right one."""
    return line.endswith(_AFTER) and line.endswith(_BEFORE, 0, -_FROM)


def was_sealed(line: bytes) -> bool:
    """Return whether a line ends as a sealed one does; the name of the seal's key, or of its part, may be damaged."""
    return _NAMELESS.search(line) is not None


def _digest(text: bytes | memoryview, before: str) -> str:
    digest = sha256(before.encode() + b"\n")
    digest.update(text)
    return digest.hexdigest()[:_DIGITS]
