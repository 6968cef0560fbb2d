# SPDX-License-Identifier: Apache-2.0
"""The warnings of a run: each kind told once under a number, and the flags that point to it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from espbench.reporting.parts.statements import flag, kind, merged
from espbench.terms import Finding, Outcome, Remark

_PLAIN_WORD = "note"


@dataclass(frozen=True)
class Note:
    """A kind of warning, with the number its flags carry."""

    number: int
    text: str
    outcomes: int  # how many results carry it; 0 = the whole run
    common: bool  # every result carries it, so it tells none apart


@dataclass(frozen=True)
class Flag:
    """A warning at one result: its word, or the number alone where that says as much.

    What makes a figure a bound (`tester-limited`) keeps its word, however many results carry it.
    """

    number: int
    word: str
    text: str  # with this result's own numbers


class Notes:
    """The kinds of warnings in the order they are numbered: those of the whole run first."""

    def __init__(self, of_run: Sequence[str], outcomes: Sequence[Outcome | Finding]) -> None:
        remarks = [Remark.of_text(text) for text in of_run]
        carried: dict[Hashable, list[Remark]] = {kind(remark): [remark] for remark in remarks}
        count = dict.fromkeys(carried, 0)
        for outcome in outcomes:
            for remark in dict.fromkeys(outcome.warnings):
                carried.setdefault(kind(remark), []).append(remark)
            for which in {kind(remark) for remark in outcome.warnings}:
                count[which] = count.get(which, 0) + 1
        self._by_kind = {
            which: Note(
                number,
                merged(statement),
                count[which],
                common=len(outcomes) > 1 and count[which] == len(outcomes),
            )
            for number, (which, statement) in enumerate(carried.items(), start=1)
        }

    @property
    def all(self) -> list[Note]:
        """Every kind of warning."""
        return list(self._by_kind.values())

    def flags(self, outcome: Outcome | Finding) -> list[Flag]:
        """Return the warnings of one result, those that set it apart first."""
        marked = []
        for remark in dict.fromkeys(outcome.warnings):
            note = self._by_kind[kind(remark)]
            word = flag(remark)
            marked.append(Flag(note.number, word or ("" if note.common else _PLAIN_WORD), remark.text))
        return sorted(marked, key=lambda flag: (flag.word == "", flag.number))
