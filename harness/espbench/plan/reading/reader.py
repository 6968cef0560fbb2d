# SPDX-License-Identifier: Apache-2.0
"""Reads YAML text into plain data with the position of each value, and checks the data.

Every mistake becomes one line `file:line:column: key.path: expected …, got …; what to do`; all mistakes of a file
are raised together as one UsageError.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from espbench.errors import UsageError
from espbench.plan.reading.bounded_yaml import MOST_BYTES, MOST_VALUES, Loader, composed
from espbench.plan.reading.units import Expected
from espbench.regular_files import NotRead, bytes_of

KeyPath = tuple[str | int, ...]
Position = tuple[int, int]
_MOST_SHOWN = 50  # mistakes in one message


class Strict(BaseModel):
    """Base of every model read from YAML: unknown keys and wrong types are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)

    keys_are: ClassVar[str] = "a known key"


@dataclass(frozen=True)
class Problem:
    """One mistake; `path` is its place, `involves` are the other keys from which it follows."""

    path: KeyPath
    expected: str
    got: str
    remedy: str
    on_key: bool = False
    involves: tuple[KeyPath, ...] = ()


@dataclass
class Document:
    """The data of one YAML file with the position (line, column; both from 1) of each value and key."""

    name: str
    text: str
    data: Any = None
    values: dict[KeyPath, Position] = field(default_factory=dict)
    keys: dict[KeyPath, Position] = field(default_factory=dict)

    def line(self, problem: Problem) -> str:
        """Return the message for one problem, with the nearest position that exists in the file."""
        line, column = self._place(problem)
        where = f"{key_path(problem.path)}: " if problem.path else ""
        said = f"expected {problem.expected}, got {problem.got}; {problem.remedy}"
        # The expected value may contain names from the plan.
        said = "\n".join(_printable(text) for text in said.split("\n"))
        return f"{self.name}:{line}:{column}: {where}{said}"

    def error(self, problems: Iterable[Problem]) -> UsageError:
        """Return all problems as one error, in the order of the file."""
        places = {self.line(problem): self._place(problem) for problem in problems}
        in_order = sorted(places, key=places.__getitem__)
        more = [f"{self.name}: and {len(in_order) - _MOST_SHOWN} more"] if len(in_order) > _MOST_SHOWN else []
        return UsageError("\n".join([*in_order[:_MOST_SHOWN], *more]))

    def _place(self, problem: Problem) -> Position:
        """Return the position of the problem, or the nearest one that exists in the file."""
        path = problem.path
        while path not in self.values:
            path = path[:-1]
        return (self.keys.get(problem.path) if problem.on_key else None) or self.values[path]


def key_path(path: KeyPath) -> str:
    """Return a path as people write it: `tests[0].throughput.trial`."""
    text = ""
    for part in path:
        name = part if isinstance(part, int) else named(part)
        text += f"[{name}]" if isinstance(name, int) else f".{name}" if text else name
    return text


def shown(value: object) -> str:
    """Return a value as a message quotes it: short, and never empty."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**60:
        return "a number of more than 60 digits"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _printable(json.dumps(_short(str(value)), ensure_ascii=False))


def named(name: str) -> str:
    """Return a name of the user's as a message has it in a sentence: short, and on one line."""
    return _printable(_short(name))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def _printable(text: str) -> str:
    """Escape characters that cannot be printed, move the cursor or change the direction of the text."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def did_you_mean(got: object, choices: Iterable[object], otherwise: str) -> str:
    """Return the choice nearest to the value, as a question; `otherwise` if none is near."""
    if isinstance(got, int) or len(str(got)) > 100:
        return otherwise
    near = difflib.get_close_matches(str(got), [str(choice) for choice in choices], 1)
    return f"did you mean {near[0]}?" if near else otherwise


def read(path: Path, what: str) -> Document:
    """Return the document of a file; `what` is the file's kind in messages (`plan`). Raise UsageError."""
    try:
        text = bytes_of(path, MOST_BYTES).decode("utf-8-sig")
    except NotRead as error:
        name = _printable(str(path))
        raise UsageError(f"{name}: expected a {what} file, got: {error}; check the path") from error
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: expected UTF-8 text, got byte {error.start} of another encoding; save the file as UTF-8"
        ) from error
    return read_text(text, str(path), what)


def read_text(text: str, name: str, what: str) -> Document:
    """Return the document of a text already in memory, as `read` does. Raise UsageError."""
    document = Document(name, text)
    if len(text) > MOST_BYTES:
        raise UsageError(
            f"{name}:1:1: expected a {what} of at most {MOST_BYTES // 1024} KiB, got more; shorten it"
        )
    try:
        loader, node = composed(text)
        if node is None:
            raise UsageError(f"{name}:1:1: expected a {what}, got an empty file; start with name: …")
        _Walk(document, loader).mapping(node, what)
    except yaml.YAMLError as error:
        raise _syntax_error(name, error, text) from error
    return document


def _syntax_error(name: str, error: yaml.YAMLError, text: str) -> UsageError:
    line, column = 1, 1
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        line, column = error.problem_mark.line + 1, error.problem_mark.column + 1
    elif isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    where = f"{name}:{line}:{column}"
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    if "'\\t'" in problem:
        return UsageError(f"{where}: expected spaces, got a tab; indent YAML with spaces only")
    if "expected a single document" in str(error) or "but found another document" in problem:
        return UsageError(f"{where}: expected one YAML document, got a second (---); keep one per file")
    context = getattr(error, "context", None)
    detail = _printable(f"{problem} ({context})" if context else problem)
    return UsageError(f"{where}: expected valid YAML, got: {detail}; check quotes, brackets and indentation")


class _Walk:
    """Builds data and positions from YAML nodes, and collects the mistakes in keys."""

    def __init__(self, document: Document, loader: Loader) -> None:
        self.document = document
        self.loader = loader
        self.problems: list[Problem] = []
        self.open: list[int] = []
        self.count = 0

    def mapping(self, node: yaml.Node, what: str) -> None:
        """Fill the document from its root, which must be a mapping. Raise UsageError."""
        data = self.value(node, ())
        if not isinstance(data, dict):
            remedy = "write keys and values, such as name: quick"
            self.problems.append(Problem((), f"a mapping (the keys of the {what})", shown(data), remedy))
        if self.problems:
            raise self.document.error(self.problems)
        self.document.data = data

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.count += 1
        position = (node.start_mark.line + 1, node.start_mark.column + 1)
        self.document.values[path] = position
        if id(node) in self.open or self.count > MOST_VALUES:
            raise yaml.constructor.ConstructorError(None, None, "an alias without end", node.start_mark)
        self.open.append(id(node))
        data: Any
        if isinstance(node, yaml.MappingNode):
            data = self.entries(node, path)
        elif isinstance(node, yaml.SequenceNode):
            data = [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        else:
            data = self.scalar(node, path)
        self.open.pop()
        return data

    def scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        kind = node.tag.rpartition(":")[2]
        if kind in ("int", "float") and (remedy := _misread(str(node.value))):
            self.problems.append(Problem(path, "a number in decimal digits", shown(node.value), remedy))
            return None
        try:
            return self.loader.scalar(node)
        except NotRead as error:
            remedy = (
                f"{_short(_printable(str(error)))}: write another value, or put it in quotes without a tag"
            )
            self.problems.append(Problem(path, f"what YAML takes for {kind}", shown(node.value), remedy))
            return None

    def entries(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            here = (*path, key)
            position = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            if key in data:
                first = self.document.keys[here][0]
                self.problems.append(
                    Problem(
                        here,
                        "each key once",
                        f"{shown(key)} again (first in line {first})",
                        "remove one of them",
                        on_key=True,
                    )
                )
                self.document.keys[here] = position
                continue
            self.document.keys[here] = position
            data[key] = self.value(value_node, here)
        return data


def _misread(number: str) -> str:
    """Return what to do about a number that YAML 1.1 reads otherwise than people do; empty for all others."""
    if ":" in number:
        return "put it in quotes: YAML takes it for a number to the base 60"
    if re.fullmatch(r"[-+]?0[0-9_]+", number):
        return f"write {number.lstrip('+-0') or '0'}, or put it in quotes: YAML takes it for an octal number"
    return ""


M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")


def check(
    model: type[M],
    document: Document,
    cross: Callable[[M], list[Problem]] = lambda _: [],
    stand_ins: dict[str, Any] | None = None,
) -> M:
    """Return the document as a model. `cross` finds mistakes that no single key shows (see check_and_resolve)."""
    return check_and_resolve(model, document, lambda checked: (checked, cross(checked)), stand_ins)


def check_and_resolve(
    model: type[M],
    document: Document,
    resolve: Callable[[M], tuple[R, list[Problem]]],
    stand_ins: dict[str, Any] | None = None,
) -> R:
    """Return what `resolve` makes of the document's model; UsageError lists every mistake.

    `resolve` also returns the mistakes that no single key shows. If some keys are wrong, it runs on the remaining
    ones, with `stand_ins` for required keys; then mistakes that follow from a wrong key are left out.
    """
    try:
        checked = model.model_validate(document.data)
    except ValidationError as error:
        problems = [_problem(model, document, details) for details in error.errors()]
        rest = _the_rest(model, document, problems, stand_ins or {})
        if rest is not None:
            problems += _not_concluded_from(rest.wrong, resolve(rest.model)[1])
        raise document.error(problems) from None
    resolved, more = resolve(checked)
    if more:
        raise document.error(more)
    return resolved


@dataclass(frozen=True)
class _Rest(Generic[M]):
    """The part of a document that remains without its wrong keys."""

    model: M
    wrong: set[KeyPath]


def _the_rest(
    model: type[M], document: Document, problems: list[Problem], stand_ins: dict[str, Any]
) -> _Rest[M] | None:
    """Return the checked remaining part of a document; None if too much is wrong to conclude anything."""
    wrong = {_without_indices(problem.path) for problem in problems} - {()}
    data = copy.deepcopy(document.data)
    for path in sorted(wrong, key=len, reverse=True):
        parent = data
        for part in path[:-1]:
            parent = parent[part]
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
    replaced = {key: value for key, value in stand_ins.items() if any(path[0] == key for path in wrong)}
    for attempt, suspect in ((data, wrong), (data | replaced, wrong | {(key,) for key in replaced})):
        try:
            return _Rest(model.model_validate(attempt), suspect)
        except ValidationError:
            continue
    return None


def _not_concluded_from(wrong: set[KeyPath], problems: list[Problem]) -> list[Problem]:
    def concerns(problem: Problem, bad: KeyPath) -> bool:
        paths = (problem.path, *problem.involves)
        return any(path[: len(bad)] == bad or bad[: len(path)] == path for path in paths)

    return [problem for problem in problems if not any(concerns(problem, bad) for bad in wrong)]


def _without_indices(path: KeyPath) -> KeyPath:
    while path and isinstance(path[-1], int):
        path = path[:-1]
    return path


_EXPECTED = {
    "int_type": ("a whole number", "write digits only"),
    "bool_type": ("true or false", "write true or false"),
    "string_type": ("text", "put it in quotes"),
    "string_unicode": ("text that is valid Unicode", "remove half characters such as \\ud800"),
    "list_type": ("a list", "write it as [a, b]"),
    "model_type": ("a mapping", "write keys and values"),
    "dict_type": ("a mapping", "write keys and values"),
    "greater_than_equal": ("at least {ge}", "choose a larger value"),
    "less_than_equal": ("at most {le}", "choose a smaller value"),
    "too_short": ("at least {min_length} entry", "add one"),
}


def _problem(model: type[BaseModel], document: Document, details: ErrorDetails) -> Problem:
    """Return a pydantic error as a problem in espbench's words."""
    path: KeyPath = tuple(details["loc"])
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if kind == "extra_forbidden":
        return _unknown_key(model, path)
    if kind == "missing":
        return Problem(path, "a value", "nothing", f"add the key {path[-1]}")
    while path not in document.values:  # a shorthand: the text is short for the mapping
        path = path[:-1]
    if kind == "value_error" and isinstance(context["error"], Expected):
        expected, remedy = context["error"].expected, context["error"].remedy
    elif kind == "literal_error":
        choices = re.findall(r"[^\s',]+", context["expected"].replace(" or ", " "))
        expected = ("one of " if len(choices) > 1 else "") + ", ".join(choices)
        remedy = did_you_mean(value, choices, "choose one of these")
    elif kind in _EXPECTED:
        expected, remedy = (text.format(**context) for text in _EXPECTED[kind])
    else:
        expected, remedy = details["msg"], "see: espbench schema"
    return Problem(path, expected, shown(value), remedy)


def _unknown_key(model: type[BaseModel], path: KeyPath) -> Problem:
    owner: Any = model
    for part in path[:-1]:
        owner = _step(owner, part)
    known = list(owner.model_fields) if _is_model(owner) else []
    noun = owner.keys_are if _is_model(owner) and issubclass(owner, Strict) else "a known key"
    remedy = did_you_mean(path[-1], known, f"choose one of {', '.join(known)}")
    return Problem(path, noun, shown(path[-1]), remedy, on_key=True)


def _step(annotation: Any, part: str | int) -> Any:
    """Return the type one key or index deeper, as far as the annotation shows it."""
    if _is_model(annotation):
        field = annotation.model_fields.get(str(part))
        return _bare(field.annotation) if field else None
    arguments = get_args(annotation)
    return _bare(arguments[-1]) if arguments else None


def _bare(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _bare(next(part for part in get_args(annotation) if part is not type(None)))
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
