# SPDX-License-Identifier: Apache-2.0
"""Words statements for a report: those of one kind are printed once, and no reason twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from espbench import sentences
from espbench.sentences import VARIOUS, Code
from espbench.terms import Finding, Outcome, Statement

_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_IN_A_WORD = re.compile(r"^[^\W\d]|[^\W\d]$")  # a letter before the number, or after it
# These words replace a reason that the row above gives.
_AS_ABOVE = "as above"


def kind(statement: Statement) -> Hashable:
    """Return a key that is equal for statements that differ only in their numbers."""
    return statement.code, *(_numberless(value) for _, value in sorted(statement.values.items()))


def merged(statements: Sequence[Statement]) -> str:
    """Merge statements of one kind: of numbers that differ, the least and the greatest are shown (`700–8,000`). If they
    differ in more than numbers, the values that they share stay, the others become `…`, and an example follows.
    """
    first, texts = statements[0], list(dict.fromkeys(map(str, statements)))
    if len(texts) == 1:
        return first.text
    if (with_ranges := _with_ranges(texts)) is not None:
        return with_ranges
    shown = {name: _shared(name, statements) for name in first.values}
    return f"{sentences.text(first.code, shown)} (for one: {first.text})"


def condensed(statements: Sequence[Statement]) -> str:
    """Join statements; those of one kind become one."""
    kinds = Counter(map(kind, statements))
    by_kind: dict[Hashable, str] = {}
    for statement in statements:
        which = kind(statement)
        more = f" (and {kinds[which] - 1} more like it)" if kinds[which] > 1 else ""
        by_kind.setdefault(which, condensed_text(statement) + more)
    return "; ".join(by_kind.values())


def condensed_text(statement: Statement, **instead: str) -> str:
    """Return the text of a statement, with the statements within it condensed; instead: texts that replace values."""
    values = {name: _condensed_value(value) for name, value in statement.values.items()}
    return sentences.text(statement.code, values | instead)


def words_of(result: Outcome | Finding) -> str:
    """Return the answer in words, its reasons condensed."""
    return result.words if result.answer is None else condensed_text(result.answer)


def not_in_words(result: Outcome | Finding) -> list[Statement]:
    """Return the reasons of a result that its words do not mention."""
    if result.answer is not None and result.answer.code == Code.WITH_REASONS:
        return []
    within = [(inner.code, inner.values) for inner in _within(result.answer)]
    return [reason for reason in result.reasons if (reason.code, reason.values) not in within]


def why(result: Outcome | Finding) -> str:
    """Return a result's words, and the reasons that they do not mention."""
    rest = not_in_words(result)
    return words_of(result) + (f" ({condensed(rest)})" if rest else "")


def reason_key(result: Outcome | Finding) -> Hashable:
    """Return a key of the reason in a result's words, or None; of rows with equal reasons only the first prints it."""
    if result.answer is None or "why" not in result.answer.values:
        return None
    reasons = {name: value for name, value in result.answer.values.items() if name in ("why", "failing")}
    return repr(reasons), *not_in_words(result)


def as_above(result: Outcome | Finding) -> str:
    """Return a result's words without the reason, which the row above gives."""
    assert result.answer is not None
    if "failing" in result.answer.values:
        return condensed_text(result.answer, failing=_AS_ABOVE, why="")
    return condensed_text(result.answer, why=_AS_ABOVE)


def flag(statement: Statement | None) -> str:
    """Return the short form of a statement, a few words; empty if it has none."""
    short = sentences.FLAGS.get(statement.code) if statement is not None else None
    return sentences.fill(short, statement.values) if statement is not None and short else ""


def _within(value: Any) -> list[Statement]:
    """Return the statements within a value, at any depth."""
    if isinstance(value, Statement):
        return [one for inner in value.values.values() for one in _within(inner)]
    if isinstance(value, Mapping):
        statement = Statement.model_validate(value)
        return [statement, *_within(statement)]
    if isinstance(value, list):
        return [one for inner in value for one in _within(inner)]
    return []


def _numberless(value: Any) -> Hashable:
    """Return a value without its numbers; numbers within text become `…`."""
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
    """Return the value of a name if all statements have the same, else a text that shows that they differ."""
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


def _with_ranges(texts: Sequence[str]) -> str | None:
    """Return one text for texts that differ only in numbers, with ranges of these; None if they differ in more.

    A number that is part of a word, such as that of a suite's name, is no number here.
    """
    if len({_NUMBER.sub("", text) for text in texts}) > 1:
        return None
    columns = list(zip(*(_NUMBER.finditer(text) for text in texts), strict=True))
    ranges = [_range(column) for column in columns]
    if None in ranges:
        return None
    shown = iter(ranges)
    return _NUMBER.sub(lambda _: str(next(shown)), texts[0])


def _range(numbers: Sequence[re.Match[str]]) -> str | None:
    """Return the least and the greatest of these numbers as they are written; None if one of them has no value."""
    written = {match[0] for match in numbers}
    if len(written) == 1:
        return written.pop()
    if any(_IN_A_WORD.search(match.string[max(0, match.start() - 1) : match.end() + 1]) for match in numbers):
        return None
    try:
        ordered = sorted(written, key=lambda number: float(number.replace(",", "")))
    except ValueError:  # a version or an address
        return None
    return f"{ordered[0]}–{ordered[-1]}"


def _alike(texts: Sequence[str]) -> str:
    """Return one text for texts that differ only in their numbers: different numbers become `…`."""
    columns = zip(*(_NUMBER.findall(text) for text in texts), strict=True)
    shown = iter([column[0] if len(set(column)) == 1 else "…" for column in columns])
    return _NUMBER.sub(lambda _: next(shown), texts[0])


def _condensed_value(value: Any) -> Any:
    """Return the text of statements: of a list the first statement, and each kind of the others once."""
    if isinstance(value, Mapping):
        return condensed_text(Statement.model_validate(value))
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        first, *others = map(Statement.model_validate, value)
        return "; ".join(filter(None, [condensed_text(first), condensed(others)]))
    return value
