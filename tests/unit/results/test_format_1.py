# SPDX-License-Identifier: Apache-2.0
"""Run directories of format 1, whose sentences have no codes, are read as those of today are."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench import sentences, terms
from espbench.quantities import Key
from espbench.reporting.report import write_report
from espbench.results import RunDirectory, format_1, outcome_files
from espbench.sentences import Code
from espbench.terms import CODES, Deviation, Finding, Outcome, Reason, Remark
from support.synthetic import findings as synthetic_findings
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(
    sizes=(64, 256, 512, 1024), suites=("3des-sha1", "aes128-sha1"), tests=synthetic_findings.TESTS
)
# A figure and a text for any value of a template.
NUMBERS = {"fps": 12345.0, "planned_fps": 7e6, "ceiling_fps": 1234567.0, "line_rate_fps": 1e5}


@contextlib.contextmanager
def sentences_of_then() -> Iterator[None]:
    """Word each code as format 1 did, in the block."""
    then: dict[str, str] = dict(sentences.TEMPLATES)
    for table in (format_1._REASONS, format_1._WARNINGS, format_1._DEVIATIONS, format_1._WORDS):
        then.update((code.value, template) for code, template in table.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences, "TEMPLATES", then)
        yield


@sentences_of_then()
def as_format_1(run: RunDirectory) -> None:
    """Rewrite its files as an espbench of format 1 wrote them: that format's sentences, no codes and no keys."""

    def said(statement: dict[str, Any]) -> str:
        # A deviation's clause and numbers stand beside its values.
        return sentences.text(statement["code"], statement["values"] | statement)

    def plain(record: dict[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in record.items() if key not in (*CODES.values(), "answer")}
        kept |= {key: list(map(said, record[codes])) for key, codes in CODES.items() if codes in record}
        if record.get("answer"):
            kept["words"] = said(record["answer"])
        for quantity in kept.get("quantities", []):
            for key in ("key", "label", "way", "better"):
                del quantity[key]
        return kept

    manifest = json.loads((run.path / "manifest.json").read_text())
    (run.path / "manifest.json").write_text(json.dumps(manifest | {"format": 1}))
    lines = (run.path / "trials.jsonl").read_text().splitlines()
    trials = [plain(json.loads(line)) for line in lines]
    for trial in trials:
        trial.get("host", {}).pop("seal", None)
    (run.path / "trials.jsonl").write_text("".join(json.dumps(trial) + "\n" for trial in trials))
    results = json.loads((run.path / "results.json").read_text())
    records = {name: [plain(record) for record in results.get(name, [])] for name in ("outcomes", "findings")}
    (run.path / "results.json").write_text(json.dumps({"format": 1, **records}))


def test_an_old_run_gives_the_same_report(tmp_path: Path) -> None:
    """Documents and tables, letter for letter."""
    texts = []
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        with sentences_of_then():  # an answer is read as it was written
            run = synthetic_run.build(tmp_path / name, SHAPE, "same")
        if name == "old":
            as_format_1(run)
        write_report(RunDirectory.open(run.path), {"md"})
        again = RunDirectory.open(run.path)
        assert again.manifest.format == (1 if name == "old" else 2)
        texts.append(((run.path / "report.md").read_text(), outcome_files.csv_text(again.results())))
    assert texts[0] == texts[1]


def test_an_old_run_has_codes_where_the_program_looks(tmp_path: Path) -> None:
    """Reasons, warnings, clauses, and the keys of quantities."""
    run = synthetic_run.build(tmp_path, SHAPE)
    before = run.results()
    invalid = [trial.reasons for trial in run.trials() if trial.reasons]
    as_format_1(run)
    old = RunDirectory.open(run.path)
    assert [trial.reasons for trial in old.trials() if trial.reasons] == invalid
    for was, now in zip(before, old.results(), strict=True):
        assert (was.is_short, [w.code for w in was.warnings]) == (
            now.is_short,
            [w.code for w in now.warnings],
        )
        if isinstance(was, Finding) and isinstance(now, Finding):
            assert [(q.key, q.way) for q in was.quantities] == [(q.key, q.way) for q in now.quantities]
        if isinstance(was, Outcome) and isinstance(now, Outcome):
            assert (was.is_at_limit, was.answer and was.answer.code) == (
                now.is_at_limit,
                now.answer and now.answer.code,
            )


def _values(template: str) -> dict[str, Any]:
    """Some values for a template: text where it says nothing of their form, else numbers."""
    values: dict[str, Any] = {}
    for name, specification in format_1._PLACE.findall(template):
        match specification:
            case "" | "times" | ",":
                values[name] = 3
            case "and":
                values[name] = ["home", "office"]
            case "goal" | "name":
                values[name] = 1e-5
            case "share":
                values[name] = 5.0
            case _ if specification.startswith("?"):
                values[name] = True if "|" in specification else "something"
            case _:
                values[name] = NUMBERS.get(name, 2.5)
    return values


@pytest.mark.parametrize("table", ["_REASONS", "_WARNINGS", "_DEVIATIONS", "_WORDS"])
def test_every_sentence_of_then_has_its_code(table: str) -> None:
    """Its values do not matter."""
    for code, template in getattr(format_1, table).items():
        text = sentences.fill(template, _values(template))
        codes = format_1._parsed(text, getattr(format_1, table))
        assert (codes["code"], sentences.fill(template, codes["values"])) == (code.value, text)


def test_every_code_that_the_program_looks_at_is_read() -> None:
    """Format 1 had all codes but these; its own `earlier` ones stand for sentences nobody knows."""
    known = {*format_1._REASONS, *format_1._WARNINGS, *format_1._DEVIATIONS, *format_1._WORDS}
    looked_at = {*sentences.FLAGS, *terms._OF_HOST, *terms._LIMITS, *terms._SHORTER}
    assert {code for code in looked_at if code not in known} == {
        # Nobody measured the speed of CPUs then.
        Code.SLOW_CPU, Code.SLOW_MISS, Code.SLOW_LOSSES, Code.HOST_SLOW, Code.HOST_UNEVEN,
        Code.HOST_STALL_AT_THE_END,  # a recovery could end with a frame that was lost in a stall then
        Code.FASTER_THAN_PLAIN, Code.SLOWER_THAN_LARGER,  # nobody compared the figures of a run then
        Code.OTHERS_COUNT, Code.TRIAL_BY_TRIAL,  # nobody was told then
        Code.NOT_OVERLOADED_BY_PLAN,  # the plan's load was called the throughput then
        Code.NO_PUBLIC_KEY_RATES,  # operations without a rate were not told then
        Code.FASTER_THAN_PUBLIC_KEY,  # such a rate had a bound below it then
        Code.LOST_WITHOUT_ATTACK,  # such an attack was called harmless or not by chance then
        Code.STANDING_IN, Code.EARLIER_HOST, Code.EARLIER_WARNING, Code.EARLIER_LIMIT, Code.EARLIER_SHORT,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "text", "holds"),
    [
        ("reasons", "host stall: 3 of 9 lost frames were due while the host stood still", "of_host"),
        ("warnings", "tester-limited: within 10 % of the generator's own ceiling", "is_limit"),
        ("warnings", "at the search's maximum: no faster load was tried", "is_limit"),
        ("rfc2544_deviations", "24: final trials of 10 s instead of at least 60 s", "is_short"),
    ],
)
def test_what_an_earlier_version_said_counts_as_it_did(key: str, text: str, holds: str) -> None:
    """The beginning of the text decides, since the program of then looked at that."""
    ((read,),) = [format_1.trial({key: [text]})[CODES[key]]]
    of = {"reasons": Reason, "warnings": Remark, "rfc2544_deviations": Deviation}[key]
    statement = of.model_validate(read)
    assert getattr(statement, holds)
    assert statement.text == text


def test_a_sentence_nobody_knows_stays_as_it_is() -> None:
    """Text of a daemon, say, with numbers and braces."""
    text = "pluto said {no} 5 times; and stopped"
    (read,) = format_1.trial({"reasons": [text]})["reason_codes"]
    assert Reason.model_validate(read) == Reason.of_text(text)


def test_a_quantity_of_one_direction_is_known_by_key_and_direction() -> None:
    record = {"quantities": [{"name": "latency, p50, west-east", "unit": "µs", "value": 1.0}]}
    (read,) = format_1.result(record)["quantities"]
    assert (read["key"], read["way"], read["label"]) == (Key.LATENCY_P50, "west-east", "latency, p50")
