# SPDX-License-Identifier: Apache-2.0
"""Statements as a report tells them: those of one kind once, and no reason twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from espbench import sentences
from espbench.sentences import VARIOUS, Code
from espbench.terms import Finding, Outcome, Statement

_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
# What stands in place of the reason of a sentence that was told just before.
_AS_ABOVE = "as above"


def kind(statement: Statement) -> Hashable:
    """What statements that differ in their numbers alone have in common."""
    return statement.code, *(_numberless(value) for _, value in sorted(statement.values.items()))


def merged(statements: Sequence[Statement]) -> str:
    """Statements of one kind as one: the values they share stay, the others become `…`, with an example."""
    first, texts = statements[0], dict.fromkeys(map(str, statements))
    if len(texts) == 1:
        return first.text
    shown = {name: _shared(name, statements) for name in first.values}
    return f"{sentences.text(first.code, shown)} (for one: {first.text})"


def condensed(statements: Sequence[Statement]) -> str:
    """Statements one after the other, those of one kind told once."""
    kinds = Counter(map(kind, statements))
    told: dict[Hashable, str] = {}
    for statement in statements:
        which = kind(statement)
        more = f" (and {kinds[which] - 1} more like it)" if kinds[which] > 1 else ""
        told.setdefault(which, condensed_text(statement) + more)
    return "; ".join(told.values())


def condensed_text(statement: Statement, **instead: str) -> str:
    """A statement whose own lists of statements are condensed; instead: what is told in place of a value."""
    values = {name: _condensed_value(value) for name, value in statement.values.items()}
    return sentences.text(statement.code, values | instead)


def words_of(result: Outcome | Finding) -> str:
    """The answer in words, its reasons condensed."""
    return result.words if result.answer is None else condensed_text(result.answer)


def untold(result: Outcome | Finding) -> list[Statement]:
    """The reasons that are not among its words."""
    if result.answer is not None and result.answer.code == Code.WITH_REASONS:
        return []
    within = [(told.code, told.values) for told in _within(result.answer)]
    return [reason for reason in result.reasons if (reason.code, reason.values) not in within]


def why(result: Outcome | Finding) -> str:
    """Its words, and the reasons that are not among them."""
    rest = untold(result)
    return words_of(result) + (f" ({condensed(rest)})" if rest else "")


def reason_told(result: Outcome | Finding) -> Hashable:
    """What its words say beside what they are of: equal where they need not be told again; None without."""
    if result.answer is None or "why" not in result.answer.values:
        return None
    told = {name: value for name, value in result.answer.values.items() if name in ("why", "failing")}
    return repr(told), *untold(result)


def as_above(result: Outcome | Finding) -> str:
    """Its words, where those of the one before tell the reason."""
    assert result.answer is not None
    if "failing" in result.answer.values:
        return condensed_text(result.answer, failing=_AS_ABOVE, why="")
    return condensed_text(result.answer, why=_AS_ABOVE)


def flag(statement: Statement | None) -> str:
    """A few words for it; empty where there are none."""
    short = sentences.FLAGS.get(statement.code) if statement is not None else None
    return sentences.fill(short, statement.values) if statement is not None and short else ""


def _within(value: Any) -> list[Statement]:
    """The statements that a statement is made of, at any depth."""
    if isinstance(value, Statement):
        return [one for inner in value.values.values() for one in _within(inner)]
    if isinstance(value, Mapping):
        found = Statement.model_validate(value)
        return [found, *_within(found)]
    if isinstance(value, list):
        return [one for inner in value for one in _within(inner)]
    return []


def _numberless(value: Any) -> Hashable:
    """A value without its numbers; of text that is not ours the numbers within."""
    match value:
        case bool() | None:
            return value
        case int() | float():
            return ""
        case str():
            return _NUMBER.sub("…", value)
        case Mapping():
            return kind(Statement.model_validate(value))
        case list():
            return tuple(map(_numberless, value))
    return str(value)


def _shared(name: str, statements: Sequence[Statement]) -> Any:
    """The value of a name where all have the same, else what says that they differ."""
    first = statements[0]
    alike = {sentences.text(s.code, {**first.values, name: s.values.get(name)}) for s in statements}
    if len(alike) == 1:
        return first.values[name]
    texts = [s.values.get(name) for s in statements]
    if all(isinstance(text, str) for text in texts):
        return _alike([text for text in texts if isinstance(text, str)])
    nested = [_within(text) for text in texts]
    if all(nested):
        return "; ".join(_alike(list(map(str, column))) for column in zip(*nested, strict=True))
    return VARIOUS


def _alike(texts: Sequence[str]) -> str:
    """Text that differs in its numbers alone, as one."""
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    shown = iter([found[0] if len(set(found)) == 1 else "…" for found in columns])
    return _NUMBER.sub(lambda _: next(shown), texts[0])


def _condensed_value(value: Any) -> Any:
    """The first of a list of statements as it is, of the others each kind once."""
    if isinstance(value, Mapping):
        return condensed_text(Statement.model_validate(value))
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        first, *others = map(Statement.model_validate, value)
        return "; ".join(filter(None, [condensed_text(first), condensed(others)]))
    return value
