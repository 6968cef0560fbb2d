# SPDX-License-Identifier: Apache-2.0
"""Parses pluto's counters and status, and selects the lines of its log that explain a failure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

# These lines explain a failure; the other lines report normal progress.
_TELLING = re.compile(
    r"authentication failed|rejected|NO_PROPOSAL_CHOSEN|no local proposal|not (?:supported|recognized)|"
    r"timeout exceeded|network error|TS_UNACCEPTABLE|INVALID_|failed|FATAL|ABORT|ASSERT|EXPECTATION|"
    r"unable to|cannot|no (?:suitable|matching|connection)|certificate .*(?:expired|invalid|revoked)|"
    r"ERROR:|syntax error|not running",
    re.IGNORECASE,
)
_NOT_TELLING = re.compile(
    r"encountered fatal error in state|deleting state|seccomp|responding to \S+ message"
)
_STAMP = re.compile(r"^\w{3} +\d+ [\d:.]+: |^\d{3} ")
_CONNECTION = re.compile(r'^"[^"]*"(?:\[\d+\])?(?: [\d.:a-f]+)?(?: #\d+)?: +')
# A peer that gives one of these answers will not give another one, but pluto would retry until its timeout.
_HOPELESS = re.compile(r"containing (NO_PROPOSAL_CHOSEN|INVALID_KE_PAYLOAD)|Connection refused")


@dataclass(frozen=True)
class Progress:
    """The number of pluto's CHILD SAs that are up, and of its IKE and CHILD SAs that are not yet established."""

    up: int
    under_way: int


_OF_CONNECTION = r'^(?:000 )?"[^"]*": '
# The fields of a connection's status, by name.
_KEYS = {
    "policy": r"(?<= )policy: (\S+?);",
    "our auth": r"our auth:([^,]+),",
    "replay_window": r"replay_window: (\d+);",
    "ike_life": r"ike_life: (\w+);",
    "ipsec_life": r"ipsec_life: (\w+);",
    "encaps": r"encaps(?:ulation)?:(\w+);",
}


@dataclass(frozen=True)
class Status:
    """Pluto's status: for each field its values, and the number of connections that have each value."""

    version: str
    loaded: int
    ike: Counter[str]
    esp: Counter[str]
    keys: dict[str, Counter[str]]  # by the names of _KEYS
    tunnels: list[tuple[str, str]]  # (own prefix, peer's prefix) of connections with an SA


def progress(globalstatus: str) -> Progress:
    """Parse the output of `whack --globalstatus`: lines `current.states.enumerate.STATE_V2_…=number`.

    Since libreswan 5, the names do not have STATE_V2_.
    """
    counts = dict(re.findall(r"^current\.states\.(\S+)=(\d+)$", globalstatus, re.MULTILINE))
    established = dict.fromkeys(("IKE", "CHILD"), 0)
    for name, number in counts.items():
        if match := re.search(r"(?:V2_|\.)ESTABLISHED_(IKE|CHILD)_SA$", name):
            established[match[1]] += int(number)
    return Progress(established["CHILD"], int(counts.get("all", 0)) - sum(established.values()))


def status(text: str) -> Status:
    """Parse the output of `whack --status`, which has about twenty lines `000 "name": …` for each connection.

    Since libreswan 5, the lines do not have 000.
    """
    version = re.search(r"pluto_version=([^,\s]+)", text)
    loaded = re.search(r"Total IPsec connections: loaded (\d+)", text)
    own, peer = rf"{_OF_CONNECTION}(\S+?)===\S+", r"\S+===(\S+); (?:erouted|routed-tunnel);"
    return Status(
        version=version[1] if version else "of unknown version",
        loaded=int(loaded[1]) if loaded else 0,
        ike=_counted(r"IKEv2 algorithm newest: ([^;\s]+)", text),
        esp=_counted(r"ESP algorithm newest: ([^;\s]+)", text),
        keys={key: _counted(pattern, text) for key, pattern in _KEYS.items()},
        tunnels=re.findall(rf"{own}\.\.\.{peer}", text, re.MULTILINE),
    )


def _counted(pattern: str, text: str) -> Counter[str]:
    return Counter(re.findall(rf"{_OF_CONNECTION}.*?\b{pattern}", text, re.MULTILINE))


def hopeless(log: str) -> bool:
    """Return whether the log has an answer of the peer that will not change by waiting."""
    return bool(_HOPELESS.search(log))


def reason(log: str, lines: int = 3) -> str:
    """Return the last lines of a log that explain a failure, each once, without time and connection."""
    telling = [
        _bare(line) for line in log.splitlines() if _TELLING.search(line) and not _NOT_TELLING.search(line)
    ]
    return "; ".join(list(dict.fromkeys(reversed(telling)))[:lines][::-1])


def last_line(log: str) -> str:
    """Return the last line of a log or an output, without time and connection."""
    return _bare(log.strip().rpartition("\n")[2])


def _bare(line: str) -> str:
    return _CONNECTION.sub("", _STAMP.sub("", line)).strip()
