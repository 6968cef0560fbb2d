# SPDX-License-Identifier: Apache-2.0
"""Writes and reads `baseline.json`: a base as a file that users commit, with a line for each condition and each case.

Lines are sorted. Two branches that change different cases merge line by line: the list of cases ends with `null`, so
that each case's line ends with a comma. Each line has a seal, a digest of the line and of the conditions for which it
is valid. So a line that was edited by hand, or merged from a base with other conditions, is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveFloat, ValidationError

from espbench.errors import UsageError
from espbench.gate.base import Base, BaseCase, Point, Sample
from espbench.gate.conditions import relevant
from espbench.results.records import first_mistake

FORMAT = 1
_BEGIN = '{\n"format": '
_DIGITS = 16
_REMEDY = "take it from version control again, or make it anew: espbench baseline RUN"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Sample(_Strict):
    repeat: int
    goal: FiniteFloat
    load_fps: PositiveFloat
    duration_s: PositiveFloat
    instructions: dict[str, PositiveFloat] = Field(min_length=1)
    met: bool
    share: PositiveFloat = 1.0


class _Line(_Strict):
    dut: str
    stack: str
    suite: str
    ip_version: int
    frame_size: int | str
    direction: str
    test: str
    run: str
    started: str
    subject: dict[str, str]
    samples: list[_Sample] = Field(min_length=1)
    seal: str


class _File(_Strict):
    format: int
    commit: str = ""
    conditions: dict[str, str]
    cases: list[_Line | None]


def text_of(base: Base) -> str:
    """Return the file's text; the same base always gives the same text."""
    lines = [_line(case, base.conditions) for case in _sorted(base)]
    parts = [f"  {_json(key)}: {_json(base.conditions[key])}" for key in sorted(base.conditions)]
    commit = [f'"commit": {_json(base.commit)},'] if base.commit else []
    return "\n".join(
        [
            f"{_BEGIN}{FORMAT},",
            *commit,
            '"conditions": {',
            ",\n".join(parts),
            "},",
            '"cases": [',
            *(f"{line}," for line in lines),
            "null",
            "]",
            "}",
            "",
        ]
    )


def keeping(base: Base, former: Base) -> Base:
    """Return the base with the former base's case wherever the figures are the same, so that its line is unchanged."""

    def same(case: BaseCase) -> bool:
        conditions = (relevant(each.conditions, case.point.dut, case.point.stack) for each in (base, former))
        before = former.cases.get(case.point)
        return (
            before is not None
            and _sorted_samples(before) == _sorted_samples(case)
            and len({*map(str, conditions)}) == 1
        )

    cases = {point: former.cases[point] if same(case) else case for point, case in base.cases.items()}
    return replace(base, cases=cases)


def is_one(path: Path) -> bool:
    """Return whether a file is a base or was one: it is empty, begins as bases do, or can be read.

    A base that is damaged, or has a merge's marks, is one too.
    """
    begin = _BEGIN.encode()
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(begin)) in (b"", begin):
            return True
    with contextlib.suppress(UsageError):
        return bool(read(path).cases)
    return False


def read(path: Path) -> Base:
    """Read a base; UsageError if the file is none, has a newer format, or was changed after it was written."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path}: cannot read the base: {error.strerror}\n"
            "  what to do: name a run directory, a file that espbench baseline wrote, or a git revision"
        ) from None
    except UnicodeDecodeError:
        raise _refused(
            path, "text, as espbench baseline writes it", "bytes that are no text (UTF-8)"
        ) from None
    try:
        document = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except ValueError as error:
        merging = "; it holds the marks of a merge that is not resolved" if "<<<<<<<" in text else ""
        raise _refused(path, "JSON, as espbench baseline writes it", f"{error}{merging}") from None
    written = document.get("format") if isinstance(document, dict) else None
    if isinstance(written, int) and written > FORMAT:
        raise _refused(path, f"format {FORMAT}", f"format {written}, of a newer espbench")
    try:
        file = _File.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise _refused(path, "a base, as espbench baseline writes it", first_mistake(error)) from None
    cases: dict[Point, BaseCase] = {}
    for line in file.cases:
        if line is None:
            continue
        case = _case(line)
        if case.point in cases:
            raise _refused(path, "each case once", f"{case.point} twice")
        if line.seal != _seal(line.model_dump(exclude={"seal"}), file.conditions):
            raise _refused(
                path,
                "each case sealed with the conditions that stand in the file",
                f"{case.point} was edited, or merged from a base of other conditions",
            )
        cases[case.point] = case
    if not cases:
        raise _refused(path, "at least one case", "none")
    return Base(str(path), file.conditions, cases, file.commit)


def _sorted(base: Base) -> list[BaseCase]:
    return [base.cases[point] for point in sorted(base.cases, key=lambda point: point.order)]


def _sorted_samples(case: BaseCase) -> list[Sample]:
    return sorted(case.samples, key=lambda s: (s.repeat, s.goal, s.share))


def _line(case: BaseCase, conditions: Mapping[str, str]) -> str:
    p = case.point
    content: dict[str, Any] = {
        "dut": p.dut, "stack": p.stack, "suite": p.suite, "ip_version": p.ip_version, "frame_size": p.frame_size,
        "direction": p.direction, "test": p.test, "run": case.run, "started": case.started,
        "subject": dict(sorted(case.subject.items())),
        "samples": [
            {
                "repeat": s.repeat, "goal": s.goal, "load_fps": s.load_fps, "duration_s": s.duration_s,
                "instructions": dict(sorted(s.instructions.items())), "met": s.met,
                "share": s.share,
            }
            for s in _sorted_samples(case)
        ],
    }  # fmt: skip
    return _json(content | {"seal": _seal(content, conditions)})


def _case(line: _Line) -> BaseCase:
    point = Point(
        line.dut, line.stack, line.suite, line.ip_version, line.frame_size, line.direction, line.test
    )  # fmt: skip
    samples = [Sample(**s.model_dump()) for s in line.samples]
    return BaseCase(point, samples, line.run, line.started, line.subject)


def _seal(content: Mapping[str, Any], conditions: Mapping[str, str]) -> str:
    """Return the seal of a line (its content without a seal) and of the conditions that apply to it."""
    valid_for = relevant(conditions, content["dut"], content["stack"])
    text = json.dumps([valid_for, content], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object of these pairs; ValueError if a key occurs twice, as after a merge."""
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the key {key} twice")
    return dict(pairs)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _refused(path: Path, expected: str, got: str) -> UsageError:
    return UsageError(f"{path}: not a base\n  expected: {expected}\n  got: {got}\n  what to do: {_REMEDY}")
