# SPDX-License-Identifier: Apache-2.0
"""The data frame of the trials: what is read of sealed lines at once is what the typed records say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import espbench
from espbench.errors import EspbenchError
from espbench.frames import trials as of_lines
from espbench.frames.columns import frame, frame_bytes
from espbench.results import RunDirectory, seals
from espbench.sentences import Code
from espbench.terms import CaseIdentity, GatewayReading, Latency, Reason, Remark, Trial
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(
    suites=("null-null", "3des-sha1"),
    sizes=(64, 256, 1280, "simple IMIX"),
    directions=("one-way", "both-ways"),
    trials_per_case=4,
)


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """Return a run as espbench writes it."""
    return synthetic_run.build(tmp_path_factory.mktemp("sealed"), SHAPE, sealed=True)


def by_records(run: RunDirectory) -> pd.DataFrame:
    """The frame made of typed records, one row each."""
    cases = {entry.case: entry for entry in run.manifest.cases}
    return frame([_row(trial, cases.get(trial.case)) for trial in run.trials()], of_lines.COLUMNS)


def _row(trial: Trial, entry: CaseIdentity | None) -> dict[str, Any]:
    identity: dict[str, Any] = {name: getattr(entry, name, None) for name in CaseIdentity.model_fields}
    row = identity | dict(trial) | {"is_void": trial.validity == "INVALID" or trial.only_in_stalls}
    row |= {"is_disturbed": trial.disturbed, "is_violated": trial.violated}
    row |= {"frame_bytes": frame_bytes(identity["frame_size"])}
    for side in ("home", "office"):
        gateway = trial.gateways.get(side, GatewayReading())
        row |= {f"cpu_{side}_pct": gateway.cpu_pct, f"cpu_{side}_us_per_frame": gateway.cpu_us_per_frame}
        row |= {f"instructions_{side}_per_frame": gateway.instructions_per_frame}
        row |= {f"encrypted_{side}_frames": gateway.encrypted_frames}
        row |= {f"decrypted_{side}_frames": gateway.decrypted_frames}
    return row | {f"latency_{name}_us": value for name, value in trial.latency_us if name != "hdr"}


def assert_same(run: RunDirectory) -> pd.DataFrame:
    """Both ways give one frame, values, types and units; returns it."""
    loaded = espbench.load(run.path).trials
    expected = by_records(run)
    pd.testing.assert_frame_equal(loaded, expected)
    assert loaded.attrs == expected.attrs
    return loaded


def rewritten(run: RunDirectory, parent: Path, trials: list[Trial]) -> RunDirectory:
    """Another run of these trials, sealed anew."""
    with RunDirectory.create(parent, "rewritten", run.manifest, "") as made:
        for trial in trials:
            number = made.trial_counts().get(trial.case, 0)
            made.append(trial.model_copy(update={"sequence": number}))
    return RunDirectory.open(made.path)


def no_record(*_: object) -> Trial:
    raise AssertionError("a typed record was made")


def test_sealed_lines_give_the_frame_of_the_records(
    sealed: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is checked twice: no typed record is made of a sealed line."""
    expected = assert_same(sealed)
    assert len(expected) == len(SHAPE.sizes) * 2 * 3 * SHAPE.trials_per_case
    assert expected["is_void"].any()
    assert (expected["reasons"] != "").any()
    monkeypatch.setattr(Trial, "model_validate_json", no_record)
    pd.testing.assert_frame_equal(espbench.load(sealed.path).trials, expected)


def test_a_number_may_be_missing_in_a_later_batch() -> None:
    """Numbers are kept in arrays, which cannot have a gap."""
    frames, seconds = of_lines._Column("encrypted_home_frames"), of_lines._Column("duration_s")
    for column, batches in ((frames, [(1, 2), (None, 3)]), (seconds, [(1.0,), (None, 2.0)])):
        for batch in batches:
            column.add(batch)
    assert frames.values() == [1, 2, None, 3]
    assert str(seconds.values().tolist()) == str([1.0, math.nan, 2.0])


def test_lines_without_seals_give_the_same(sealed: RunDirectory, tmp_path: Path) -> None:
    unsealed = synthetic_run.build(tmp_path, SHAPE)
    pd.testing.assert_frame_equal(assert_same(unsealed), espbench.load(sealed.path).trials)


CHANGES: dict[str, dict[str, Any]] = {
    "disturbed": {"validity": "INVALID", "host": {"disturbed": True}},
    "violated": {"proof": {"violated": True, "problems": ["a frame in clear"]}},
    "no gateways": {"gateways": {}},
    "one gateway": {"gateways": {"office": GatewayReading(cpu_pct=1.5, encrypted_frames=7)}},
    "no latency": {"latency_us": Latency()},
    "counts not measured": {
        "duplicated": None, "reordered": None, "corrupted": None, "not_measured": ["duplicated", "reordered"],
    },
    "statements": {
        "reasons": [Reason.of(Code.HOST_STALL, pct=12.5), Reason.of_text("a text; with \"quotes\" and µs")],
        "warnings": [Remark.of(Code.TESTER_LIMITED, ceiling_fps=1e6), Remark.of_text("another")],
    },
    "of no case of the plan": {"case": "elsewhere-at-a"},
    "a name that JSON escapes": {"case": 'odd "name" \\ µ'},
    "whole numbers": {"offered_fps": 1000, "duration_s": 2, "frame_loss_ratio": 0},
    "instructions": {"gateways": {"home": GatewayReading(instructions_per_frame=1234.5)}},
    "a backlog in stalls": {"sustained": False, "host": {"backlog_in_stalls": True}},
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_a_trial_says_its_row_is_that_of_the_record(
    sealed: RunDirectory, tmp_path: Path, change: dict[str, Any]
) -> None:
    first, second, *_ = sealed.trials()
    run = rewritten(sealed, tmp_path, [first.model_copy(update=change), second])
    assert len(assert_same(run)) == 2


@pytest.mark.parametrize(
    ("lost", "in_stalls", "changes", "is_void"),
    [
        ([5], [5], {}, True),
        ([5], [4], {}, False),
        ([0], [0], {}, False),
        ([5, 1], [3, 3], {}, False),  # each direction has its own stalls
        ([5, 1], [5, 3], {}, True),
        ([5], [5], {"phase": "measure"}, False),  # nothing is repeated
        ([5], [0], {"validity": "INVALID"}, True),
    ],
)
def test_a_trial_that_lost_frames_only_in_stalls_is_void(
    sealed: RunDirectory,
    tmp_path: Path,
    lost: list[int],
    in_stalls: list[int],
    changes: dict[str, Any],
    is_void: bool,
) -> None:
    """Such a trial, by docs/method.md, is no miss; its record says which losses of each direction lay in stalls."""
    first = next(trial for trial in sealed.trials() if trial.per_direction and trial.validity == "VALID")
    reading = next(iter(first.per_direction.values()))
    each = {
        way: reading.model_copy(update={"tx_frames": 500, "rx_frames": 500 - n, "lost": n})
        for way, n in zip(("west-east", "east-west"), lost, strict=False)
    }
    frames = {"tx_frames": 500 * len(lost), "rx_frames": 500 * len(lost) - sum(lost), "lost": sum(lost)}
    host = {"lost_in_stalls": sum(in_stalls), "lost_in_stalls_by_direction": in_stalls}
    read = frames | {"per_direction": each, "host": host, "phase": "final"} | changes
    run = rewritten(sealed, tmp_path, [first.model_copy(update=read)])
    assert list(assert_same(run)["is_void"]) == [is_void]


def _without(*keys: str) -> Callable[[dict[str, Any]], object]:
    return lambda line: [line.pop(key) for key in keys]


OLDER: dict[str, Callable[[dict[str, Any]], object]] = {
    "without what later versions record": _without(
        "attempt", "sustained", "waits_s", "measured", "not_measured"
    ),
    "without latency and gateways": _without("latency_us", "gateways", "proof"),
    "with texts alone": _without("reason_codes", "warning_codes"),
    "damaged frames were not lost": lambda line: line.update(lost=0),
    "a count as a text": lambda line: line.update(tx_frames=str(line["tx_frames"])),
}


@pytest.mark.parametrize("change", OLDER.values(), ids=OLDER)
def test_sealed_lines_of_older_versions_are_read(
    sealed: RunDirectory, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    """A line that is not quite as it is written today is read as a record."""
    run = rewritten(sealed, tmp_path, [])
    line = json.loads(seals.sealed(next(sealed.trials()), ""))
    change(line)
    write_sealed(run, line)
    assert len(assert_same(run)) == 1


def write_sealed(run: RunDirectory, line: dict[str, Any]) -> None:
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    end = len(text) - len('"}}\n') - 16
    (run.path / "trials.jsonl").write_bytes(text[:end] + seals._digest(text[:end], "").encode() + b'"}}\n')


def test_a_sealed_line_that_is_no_trial_is_named(sealed: RunDirectory, tmp_path: Path) -> None:
    run = rewritten(sealed, tmp_path, [])
    line = json.loads(seals.sealed(next(sealed.trials()), ""))
    line["offered_fps"] = "fast"
    write_sealed(run, line)
    with pytest.raises(EspbenchError, match=r"line 1: not a trial: offered_fps"):
        _ = espbench.load(run.path).trials


def test_damaged_lines_are_left_out_and_named(sealed: RunDirectory, tmp_path: Path) -> None:
    """A changed digit, in the second of four trials, costs the case its last three."""
    run = rewritten(sealed, tmp_path, list(sealed.trials())[:8])
    log = run.path / "trials.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"rx_frames":', b'"rx_frames":1', 1)
    log.write_bytes(b"".join(lines))
    with pytest.raises(espbench.UnreadableRun, match="line 2"):
        espbench.load(run.path)
    loaded = espbench.load(run.path, allow_damaged=True)
    assert len(loaded.damage) == 1
    assert list(loaded.trials["sequence"]) == [0, 0, 1, 2, 3]
    pd.testing.assert_frame_equal(loaded.trials, by_records(RunDirectory.open(run.path)))
