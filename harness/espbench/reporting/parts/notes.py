# SPDX-License-Identifier: Apache-2.0
"""Collects the warnings of a run: each kind is printed once with a number, and flags at the results point to it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from espbench.reporting.parts.statements import flag, kind, merged
from espbench.terms import Finding, Outcome, Remark

_PLAIN_WORD = "note"


@dataclass(frozen=True)
class Note:
    """A kind of warning, with the number that its flags show."""

    number: int
    text: str
    outcomes: int  # number of results with it; 0 = it is of the whole run
    common: bool  # every result has it, so it distinguishes none


@dataclass(frozen=True)
class Flag:
    """A warning at one result: a word and the number of its note; only the number if every result has the warning.

    Warnings with a word of their own, such as `tester-limited`, keep it even then.
    """

    number: int
    word: str
    text: str  # with this result's own numbers


class Notes:
    """The kinds of warnings in the order of their numbers: those of the whole run first."""

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
        """Return the flags of one result: first those with a word, then those that are only a number."""
        marked = []
        for remark in dict.fromkeys(outcome.warnings):
            note = self._by_kind[kind(remark)]
            word = flag(remark)
            marked.append(Flag(note.number, word or ("" if note.common else _PLAIN_WORD), remark.text))
        return sorted(marked, key=lambda flag: (flag.word == "", flag.number))
