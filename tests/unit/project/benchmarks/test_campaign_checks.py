# SPDX-License-Identifier: Apache-2.0
"""The campaign's checkers can fail: each planted fault is found, and a right run has none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from campaign import checks
from campaign.checks import Truth

from espbench.sentences import Code

TRUTH = Truth(900, 1100)


def row(**changes: str) -> dict[str, str]:
    return {"case": "0001", "status": "OK", "throughput_fps": "1000", "reasons": ""} | changes


def trial(**changes: Any) -> dict[str, Any]:
    return {
        "case": "0001", "validity": "VALID", "reasons": [], "reason_codes": [], "tx_frames": 10, "rx_frames": 10,
        "lost": 0, "corrupted": 0, "offered_fps": 1000.0,
    } | changes  # fmt: skip


def invalid(*reasons: Code) -> dict[str, Any]:
    codes = [{"code": str(code), "values": {"text": "words"}} for code in reasons]
    return trial(validity="INVALID", reasons=["words"] * len(reasons), reason_codes=codes)


def test_a_right_run_has_no_faults() -> None:
    rows = [row(), row(case="0002", status="LOWER_BOUND", throughput_fps="300", reasons="host starvation")]
    assert checks.right(rows, TRUTH)[1] == []
    assert checks.right(rows, TRUTH)[0] == {"right": 1, "LOWER_BOUND": 1}
    assert checks.one_row_a_case(["0001", "0002"], rows) == []
    assert checks.ended(0, "case 1 of 1") == []
    assert checks.kept(b"a\nb\nto", b"a\nb\ntorn\n") == []
    assert checks.trials_of(b'{"case": "1"}\n') == ([{"case": "1"}], [])
    assert checks.nothing_left(set(), []) == []
    assert checks.same_tables({"results.csv": b"a"}, {"results.csv": b"a"}) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (row(throughput_fps="1101"), "above the truth"),
        (row(status="LOWER_BOUND", throughput_fps="1101"), "above the truth"),
        (row(status="LOWER_BOUND", throughput_fps="300"), "LOWER_BOUND without a reason"),
        (row(throughput_fps="899"), "below the truth"),
        (row(throughput_fps=""), "without a figure"),
        (row(status="BELOW_MINIMUM", throughput_fps=""), "BELOW_MINIMUM"),
        (row(status="INVALID", throughput_fps=""), "without a reason"),
        (row(status="INVALID", reasons="host stall"), "and yet a figure"),
        (row(status="VIOLATED", reasons="cleartext"), "and yet a figure"),
    ],
)
def test_a_wrong_row_is_found(wrong: dict[str, str], words: str) -> None:
    (fault,) = checks.right([wrong], TRUTH)[1]
    assert words in fault


def test_a_bound_is_not_below_what_final_trials_have_shown() -> None:
    """A bound of 1 frame/s is true of any gateway, and says nothing."""
    finals = [
        trial(phase="final", sustained=True, offered_fps=800.0),
        trial(phase="final", sustained=True, offered_fps=950.0, lost=3),
        trial(
            phase="final", sustained=True, offered_fps=1000.0
        ),  # a load above one that missed shows nothing
        trial(phase="final", sustained=True, offered_fps=900.0, validity="INVALID"),
        trial(phase="search", sustained=True, offered_fps=850.0),
    ]
    low = row(status="LOWER_BOUND", throughput_fps="1", reasons="host starvation")
    (fault,) = checks.right([low], TRUTH, trials=finals)[1]
    assert fault == "0001: LOWER_BOUND 1 fps, but a final trial passed at 800"
    assert checks.right([low | {"throughput_fps": "790"}], TRUTH, trials=finals)[1] == []
    assert checks.right([low | {"case": "0002"}], TRUTH, trials=finals)[1] == []


def test_less_is_right_only_where_the_gateway_was_hit() -> None:
    slow = [row(throughput_fps="500"), row(case="0002", status="BELOW_MINIMUM", throughput_fps="")]
    assert checks.right(slow, TRUTH, frozenset({"0001", "0002"}))[1] == []
    assert len(checks.right(slow, TRUTH, frozenset({"0002"}))[1]) == 1
    assert len(checks.right([row(throughput_fps="1200")], TRUTH, frozenset({"0001"}))[1]) == 1


def test_only_cases_that_this_machine_disturbed_may_be_slower_unseen() -> None:
    trials = [
        trial(),
        invalid(Code.HOST_STALL) | {"case": "0002"},
        invalid(Code.GATEWAY_DIED) | {"case": "0003"},
        invalid(Code.GATEWAY_DIED, Code.HOST_STARVATION) | {"case": "0004"},
    ]
    assert checks.disturbed_cases(trials) == {"0002", "0004"}


@pytest.mark.parametrize(
    ("code", "said", "words"),
    [
        (None, "case 1 of 2", "did not end"),
        (1, "no space", "exit code 1"),
        (-9, "", "exit code -9"),
        (0, "Traceback (most recent call last):\n  …\nKeyError: 1", "a traceback"),
    ],
)
def test_a_bad_end_is_found(code: int | None, said: str, words: str) -> None:
    (fault,) = checks.ended(code, said)
    assert words in fault


def test_a_lost_case_and_a_strange_one_are_found() -> None:
    missing, strange = checks.one_row_a_case(["0001", "0003"], [row(), row(case="0002")])
    assert "0003" in missing
    assert "0002" in strange


@pytest.mark.parametrize("after", [b"a\n", b"a\nc\n", b"", b"b\na\n"])
def test_a_lost_trial_is_found(after: bytes) -> None:
    assert len(checks.kept(b"a\nb\n", after)) == 1


@pytest.mark.parametrize("data", [b'{"case":\n', b'{"case": "1"}\n{"ca', b"\x00\x00\n"])
def test_a_damaged_log_is_found(data: bytes) -> None:
    assert len(checks.trials_of(data)[1]) == 1


def test_what_is_left_is_found() -> None:
    assert len(checks.nothing_left({"/run/netns/espbench-abc-home"}, [77])) == 2


@pytest.mark.parametrize("tables", [{}, {"results.csv": b"case\n2\n"}, {"results.csv": b"case\n1\n1\n"}])
def test_another_table_is_found(tables: dict[str, bytes]) -> None:
    assert len(checks.same_tables({"results.csv": b"case\n1\n"}, tables)) == 1


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([trial(lost=1)], "lost 0 became 1"),
        ([trial(), trial()], "1 trials became 2"),
        ([], "1 trials became 0"),
        ([trial(host={"steal": 1})], ""),
    ],
)
def test_another_trial_is_found_whatever_the_host_did(others: list[dict[str, Any]], words: str) -> None:
    def log(trials: list[dict[str, Any]]) -> bytes:
        return b"".join(json.dumps(t).encode() + b"\n" for t in trials)

    faults = checks.same_trials(log([trial(host={})]), log(others))
    assert [words in fault for fault in faults] == ([True] if words else [])


def test_reasons_are_the_victims_where_it_was_hit_and_the_hosts_elsewhere() -> None:
    trials = [trial(), invalid(Code.GENERATOR_FAILED), invalid(Code.HOST_STALL)]
    assert checks.true_reasons(trials, [(1, 2)], [Code.GENERATOR_FAILED]) == []


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([invalid(Code.GENERATOR_FAILED), trial(), trial(), trial()], "was not touched"),
        ([trial(), invalid(Code.GATEWAY_DIED)], "not a reason that this could have"),
        ([trial(), invalid()], "without a reason"),
    ],
)
def test_an_untrue_reason_is_found(trials: list[dict[str, Any]], words: str) -> None:
    (fault,) = checks.true_reasons(trials, [(1, 2)], [Code.GENERATOR_FAILED])
    assert words in fault


def test_a_case_that_was_given_up_repeats_its_reason() -> None:
    trials = [invalid(Code.GENERATOR_FAILED), *([invalid(Code.GENERATOR_FAILED)] * 4)]
    assert checks.true_reasons(trials, [(0, 1)], [Code.GENERATOR_FAILED]) == []
    other = [*trials, invalid(Code.GENERATOR_FAILED) | {"case": "0002"}]
    assert len(checks.true_reasons(other, [(0, 1)], [Code.GENERATOR_FAILED])) == 1


def test_a_load_that_was_given_up_repeats_its_reason_later() -> None:
    dead = invalid(Code.GATEWAY_DIED) | {"intended_fps": 2000.0}
    lower = trial(intended_fps=1000.0)
    assert checks.true_reasons([dead, dead, lower, dead], [(0, 1)], [Code.GATEWAY_DIED]) == []
    elsewhere = [dead, dead, lower, dead | {"intended_fps": 1500.0}]
    assert len(checks.true_reasons(elsewhere, [(0, 1)], [Code.GATEWAY_DIED])) == 1


def test_json_of_a_trial_reads_back() -> None:
    data = "".join(json.dumps(t) + "\n" for t in (trial(), invalid(Code.BROKEN))).encode()
    assert len(checks.trials_of(data)[0]) == 2
