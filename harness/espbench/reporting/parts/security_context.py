# SPDX-License-Identifier: Apache-2.0
"""Turns the nested Security Contexts of the manifest into blocks of tables, one for each context."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, flat
from espbench.terms import SHOWN_BEFORE, Manifest

_SIDES = {"home": "Home", "office": "Office"}
_TERMS = {
    "ip_version": "IP version",
    "ike": "IKE",
    "security_associations": "Security Associations",
    "spi": "SPI",
    "esn": "ESN",
    "aead": "AEAD",
    "dpd": "DPD",
    "pfs": "PFS",
    "memory_mib": "memory, MiB",
}
# The columns of the SA table; an AEAD suite has one algorithm for encryption and integrity.
_SA_COLUMNS = (
    "from",
    "to",
    "spi",
    "encryption",
    "integrity",
    "mode",
    "replay_window",
    "esn",
    "lifetime",
    "udp_encapsulation",
    "df",
)
_SA_HEAD = (
    "Gateway", "From", "To", "SPI", "Encryption", "Integrity", "Mode", "Replay window, packets", "ESN",
    "Lifetime", "In UDP", "Outer DF",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step of the proof before the first trial: what was tested, and with what result."""

    what: str
    finding: str


@dataclass(frozen=True)
class ContextBlock:
    """One Security Context, and the number of cases that it was used in."""

    name: str
    cases: int
    properties: Table
    associations: Table
    policies: dict[str, list[str]]  # gateway → its policies as the kernel lists them
    steps: list[Step]


def blocks(manifest: Manifest) -> list[ContextBlock]:
    """Return every Security Context of a run, in the order in which they were set up."""
    cases = Counter(manifest.context_of_case.values())
    return [_block(name, context, cases[name]) for name, context in manifest.contexts.items()]


def term(key: str) -> str:
    """Return a manifest's key in the reader's words: `replay_window` → `Replay window`."""
    words = re.sub(r"\bcpu(s?)\b", r"CPU\1", _TERMS.get(key, key.replace("_", " ")))
    return words[:1].upper() + words[1:]


def _block(name: str, context: dict[str, Any], cases: int) -> ContextBlock:
    rows: list[list[str]] = []
    policies: dict[str, list[str]] = {}
    held: dict[tuple[str, ...], list[str]] = {}  # an SA → the gateways that hold it
    for key, value in context.items():
        if key == SHOWN_BEFORE:
            continue
        if key == "policies" and isinstance(value, dict):
            policies |= {_SIDES.get(str(side), str(side)): list(texts) for side, texts in value.items()}
        elif key in _SIDES and isinstance(value, dict):
            for association in value.get("security_associations", []):
                held.setdefault(_association(association), []).append(_SIDES[key])
            if texts := value.get("policies"):
                policies[_SIDES[key]] = list(texts)
            rows += [[f"{_SIDES[key]}: {term(k)}", t] for k, t in _others(value)]
        else:
            rows.append([term(key), flat(value)])
    shown: dict[str, Any] = context.get(SHOWN_BEFORE, {})
    return ContextBlock(
        name=name,
        cases=cases,
        properties=Table(["Property", "Value"], rows),
        associations=Table(
            list(_SA_HEAD), [[" and ".join(sides), *cells] for cells, sides in held.items()], numeric=[7]
        ),
        policies=policies,
        steps=[Step(term(what), flat(finding)) for what, finding in shown.items()],
    )


def _association(values: dict[str, Any]) -> tuple[str, ...]:
    cells = {column: flat(values.get(column)) for column in _SA_COLUMNS}
    if aead := values.get("aead"):
        cells |= {"encryption": flat(aead), "integrity": "by the same AEAD"}
    elif cells["integrity"] == NONE:
        cells["integrity"] = "none"
    return tuple(cells.values())


def _others(gateway: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in gateway.items():
        if key not in ("security_associations", "policies"):
            yield key, flat(value)
