# SPDX-License-Identifier: Apache-2.0
"""The campaign itself: goes on where it was, tells what is wrong, and each row's checker finds a planted fault."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from campaign import announcements, hits, plan_mutations, table
from campaign.observed import Observed
from campaign.row import Row, Verdict
from campaign.rows import ROWS, hit, mutated, tampered, truth_dut, two_runs
from campaign.runner import run, seed_of, time_left
from campaign.state import Done, OtherCampaign, State
from campaign.truth import written

from espbench.paths import data_dir
from espbench.plan import cases, load_plan
from espbench.sentences import Code
from espbench.terms import Reason, Statement
from espbench.this_machine.processes import start_time
from support.gateways.boxes import RouterBox
from support.runs import run_directory


class Planted(Row):
    """Right but for its third repetition, which fails, and its fourth, which cannot even be checked."""

    name, what, repetitions = "planted", "nothing is done", 4

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def run_one(self, repetition: int, seed: int) -> Verdict:
        self.seeds.append(seed)
        if repetition == 3:
            raise KeyError("gone")
        return Verdict(2, Counter({"right": 1}), ["a wrong figure"] if repetition == 2 else [])


class Unmakeable(Row):
    """Cannot make what its repetitions share."""

    name, what, repetitions = "unmakeable", "nothing can be done", 2

    def __enter__(self) -> Unmakeable:
        raise RuntimeError("no lab")

    def run_one(self, repetition: int, seed: int) -> Verdict:
        raise AssertionError


class Lacking(Row):
    """Lacks something on this machine."""

    name, what, repetitions = "lacking", "nothing is there", 2

    def missing(self) -> str:
        return "a moon"

    def run_one(self, repetition: int, seed: int) -> Verdict:
        raise AssertionError


class Meeting(Row):
    """Its repetitions wait for each other: they end only if they are made side by side."""

    name, what, repetitions, side_by_side = "meeting", "nothing is done", 2, True

    def __init__(self) -> None:
        self._all_there = threading.Barrier(self.repetitions)

    def run_one(self, repetition: int, seed: int) -> Verdict:
        self._all_there.wait(timeout=30)
        if repetition == 1:
            raise KeyError("gone")
        return Verdict(outcomes=Counter({f"seed {seed}": 1}))


def state(path: Path, commit: str = "abc", seed: int = 1) -> State:
    return State(path / "state.jsonl", commit, seed)


def test_a_campaign_goes_on_where_it_was(tmp_path: Path) -> None:
    """Interrupted after two repetitions, and with a torn line: the same seeds, none twice."""
    first, again, whole = Planted(), Planted(), Planted()
    run([first], state(tmp_path), count=2, say=lambda text: None)
    with (tmp_path / "state.jsonl").open("a") as file:
        file.write('{"row": "planted", "repe')
    run([again], state(tmp_path), say=lambda text: None)
    run([whole], state(tmp_path / "other"), say=lambda text: None)
    assert (len(first.seeds), len(again.seeds)) == (2, 2)
    assert first.seeds + again.seeds == whole.seeds == [seed_of(1, "planted", n) for n in range(4)]
    lines = [json.loads(line) for line in (tmp_path / "state.jsonl").read_text().splitlines()]
    assert [line["repetition"] for line in lines[1:]] == [0, 1, 2, 3]


def test_repetitions_in_virtual_time_are_made_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own seed and line; one that fails leaves the others alone."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    kept, said = state(tmp_path), list[str]()
    run([Meeting()], kept, say=said.append)
    right, failed = (kept.done["meeting", n].verdict for n in range(2))
    assert right == Verdict(outcomes=Counter({f"seed {seed_of(1, 'meeting', 0)}": 1}))
    assert "KeyError" in failed.faults[0]
    assert [line.split()[0] for line in said] == ["meeting:", "1/2", "2/2"]


def test_a_state_of_another_seed_is_refused(tmp_path: Path) -> None:
    state(tmp_path)
    with pytest.raises(OtherCampaign, match="seed 2, got one of seed 1"):
        state(tmp_path, seed=2)


def test_the_table_tells_of_which_commit_each_row_is(tmp_path: Path) -> None:
    """A campaign goes on after a row was mended: nothing of an earlier commit passes for the last one's."""
    run([Planted()], state(tmp_path, "abc"), count=2, say=lambda text: None)
    kept = state(tmp_path, "def")
    run([Planted()], kept, count=3, say=lambda text: None)
    assert "| 2 `abc`, 1 `def` |" in table.markdown([Planted()], kept)
    kept.forget("planted", only_faulty=True)
    assert "| 2 of 4 |" in table.markdown([Planted()], kept)
    kept.forget("planted")
    assert "| 0 of 4 |" in table.markdown([Planted()], kept)
    run([Planted()], kept, count=2, say=lambda text: None)
    for of in (kept, state(tmp_path, "ghi")):
        assert "| `def` |" in table.markdown([Planted()], of)


def test_faults_are_counted_and_told_in_the_table(tmp_path: Path) -> None:
    """A wrong figure, a check that failed itself, a lab that cannot be made; what lacks is told as such."""
    rows, kept = [Planted(), Unmakeable(), Lacking()], state(tmp_path)
    run(rows, kept, say=lambda text: None)
    assert table.faults(kept) == 3
    text = table.markdown(rows, kept)
    assert "| planted | nothing is done | 4 of 4 | 7 |" in text
    assert "`planted` 2: a wrong figure" in text
    assert "KeyError" in text
    assert "RuntimeError" in text
    assert "not tried: a moon" in text


def test_a_lab_that_cannot_be_made_takes_no_repetitions_place(tmp_path: Path) -> None:
    """The next run, of more repetitions, would otherwise leave one out."""
    kept = state(tmp_path)
    run([Unmakeable()], kept, count=1, say=lambda text: None)
    assert not {("unmakeable", n) for n in range(Unmakeable.repetitions)} & set(kept.done)


def test_the_table_replaces_the_one_before_it(tmp_path: Path) -> None:
    before = f"# Head\n{table.BEGIN}\nold\n{table.END}\ntail\n"
    once = table.put_between(before, "new\n")
    assert once == f"# Head\n{table.BEGIN}\nnew\n{table.END}\ntail\n"
    assert table.put_between(once, "new\n") == once
    with pytest.raises(ValueError, match="without them"):
        table.put_between("# Head\n", "new\n")


def test_the_time_left_is_that_of_what_is_left(tmp_path: Path) -> None:
    kept = state(tmp_path)
    kept.add(Done("planted", 0, 1, 4.0, Verdict()))
    assert time_left([Planted()], kept) == 12.0
    assert time_left([Planted()], kept, count=2) == 4.0


def test_every_row_has_a_name_and_a_sentence() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert all(row.what and row.repetitions > 0 for row in ROWS)


def test_the_document_has_a_place_for_the_table() -> None:
    table.put_between((Path(__file__).parents[4] / "docs/reliability.md").read_text(), "")


# -- rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", [tampered.whole_plan(), tampered.procedures_plan()])
def test_each_edit_of_a_plan_changes_just_one_key(plan: dict[str, Any], tmp_path: Path) -> None:
    load_plan(written(tmp_path, plan))
    paths = list(tampered.keys(plan))
    assert len(paths) == len(set(paths)) > 20
    for path in paths:
        changed = tampered.edited(plan, path)
        keys = dict(zip(tampered.keys(changed), range(99), strict=False))
        assert list(keys) == paths
        assert changed != plan


def test_a_flip_changes_one_bit_and_no_end_of_line() -> None:
    line = b'{"case": "0001"}\n'
    for seed in range(50):
        changed = tampered.flipped(line, random.Random(seed))
        assert sum((a ^ b).bit_count() for a, b in zip(line, changed, strict=True)) == 1
        assert changed.endswith(b"\n")


def test_damage_is_to_one_line_and_the_lines_take_turns() -> None:
    lines = [b'{"line": %d}\n' % number for number in range(10)]
    for repetition in range(20):
        got, what = tampered.damaged(lines, repetition, seed=repetition)
        if repetition % 2:
            assert sum(a != b for a, b in zip(lines, got, strict=True)) == 1, what
        else:
            assert len(got) == 9, what
            assert set(got) < set(lines), what


@pytest.mark.parametrize("length", [1, 7, 14, 20])
def test_each_line_of_a_log_is_damaged(tmp_path: Path, length: int) -> None:
    """Each is deleted once and flipped once, also in a log whose length 7 divides; fewer repetitions are refused."""
    lines = [b'{"line": %d}\n' % number for number in range(length)]
    done = {tampered.damaged(lines, repetition, 0)[1] for repetition in range(2 * length)}
    assert len(done) == 2 * length
    log = tmp_path / "trials.jsonl"
    log.write_bytes(b"".join(lines))
    tampered.all_reached(log, 2 * length)
    with pytest.raises(RuntimeError, match=f"{length} lines: expected at least {2 * length} repetitions"):
        tampered.all_reached(log, 2 * length - 1)


def outcome(**changes: Any) -> dict[str, Any]:
    why = Reason.of(Code.CROSSED_IN_CLEAR, trial=3)
    answer = Statement.of(Code.NO_RESULT, goal=0.0, why=why).model_dump()
    return {
        "case": "0001", "status": "VIOLATED", "throughput_fps": None, "answer": answer, "words": "",
        "reason_codes": [{"code": "proof-problem", "values": {}}],
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "OK"}, {"status": "INVALID"}, {"throughput_fps": 9.0}, {"reason_codes": []}, {"answer": None},
        {"answer": Statement.of(Code.NO_RESULT, goal=0.0, why="x").model_dump()},
    ],
)  # fmt: skip
def test_a_leak_that_is_not_told_is_found(wrong: dict[str, Any]) -> None:
    assert truth_dut.violated([outcome()]) == []
    assert len(truth_dut.violated([outcome(**wrong)])) == 1


def test_a_leak_that_no_trial_saw_is_found() -> None:
    assert truth_dut.leak_seen([{"proof": {"proven": True}}, {"proof": {"proven": False}}]) == []
    assert len(truth_dut.leak_seen([{"proof": {"proven": True}}, {"proof": {}}])) == 1


def test_uncounted_damage_and_a_short_outage_are_found() -> None:
    trials = [{"rx_frames": 990, "corrupted": 10, "lost": 100, "offered_fps": 1000.0}]
    assert truth_dut.damage_counted(trials, 100) == []
    assert len(truth_dut.damage_counted(trials, 10)) == 1
    assert truth_dut.outage_counted(trials, 0.1) == []
    assert len(truth_dut.outage_counted(trials, 0.2)) == 1


def test_a_second_run_that_is_not_refused_by_name_is_found() -> None:
    assert two_runs.refused_by_name(4, "process 77 holds this machine; --wait waits", 77) == []
    assert len(two_runs.refused_by_name(4, "process 78 holds this machine; --wait waits", 77)) == 1
    assert len(two_runs.refused_by_name(4, "process 77 holds this machine", 77)) == 1
    assert len(two_runs.refused_by_name(0, "process 77; --wait", 77)) == 1


def test_a_second_run_that_begins_when_the_first_has_ended_measures_alone() -> None:
    """However late it is looked at: each look takes time, in which the first ends and the second begins."""
    looks = iter(range(100))
    first = SimpleNamespace(measures=lambda: next(looks) < 1)
    second = SimpleNamespace(measures=lambda: next(looks) >= 1)
    assert not two_runs.both_measure(first, second)  # type: ignore[arg-type]
    always = SimpleNamespace(measures=lambda: True)
    assert two_runs.both_measure(always, always)  # type: ignore[arg-type]


def test_a_run_measures_while_a_program_of_its_journal_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"kind": "process", "name": "generator", "pid": os.getpid(), "start": start_time(os.getpid())}
    run = Observed.__new__(Observed)
    for made, measures in (
        ([entry], True),
        ([entry | {"start": 1}], False),
        ([{"kind": "netns", "name": "a"}], False),
    ):
        monkeypatch.setattr(run, "look", lambda made=made: made)
        assert run.measures() is measures


@pytest.mark.parametrize(
    ("verdict", "fault"),
    [("accepted", ""), ("refused", ""), ("too slow", "too slow"), ("traceback", "traceback KeyError: 1")],
)
def test_a_plan_that_does_not_end_as_it_should_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, verdict: str, fault: str
) -> None:
    monkeypatch.setattr(mutated, "PLANS", 3)
    result = plan_mutations.Result(verdict, "Traceback\nKeyError: 1" if fault else "", 0.1, 1.0)
    monkeypatch.setattr(plan_mutations, "tried", lambda text, kind: result)
    tried = mutated.tried_many(7, lambda text, random_number: text)
    assert tried.moments == 3
    assert tried.outcomes[verdict] == (0 if fault else 3)
    assert len(tried.faults) == (3 if fault else 0)
    assert all(fault in text for text in tried.faults)


def test_a_very_long_word_is_mutated_in_no_time() -> None:
    """The campaign once stood still at one: it looked for a key's end from each of its characters."""
    text = f"name: {'a' * 300_000}\n"
    began = time.process_time()
    for seed in range(20):
        plan_mutations._key(text, random.Random(seed))
    assert time.process_time() - began < 20.0  # of CPU time; from each character it was hours


def test_a_plan_that_kills_its_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault has its number and seed, so that it can be made again."""
    monkeypatch.setattr(mutated, "PLANS", 5)

    def deadly(text: str, random_number: random.Random) -> str:
        if random_number.random() < 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return text

    faults = mutated.tried_many(7, deadly).faults
    assert faults
    assert all("plan 0 of seed 7." in fault for fault in faults)
    assert mutated.tried_many(7, lambda text, random_number: "nothing: [").outcomes["refused"] == 5


# -- what is done to processes ------------------------------------------------------------------------

_TWO_THREADS = """
import threading, time
def count():
    while True:
        time.sleep(0.005)
threading.Thread(target=count, daemon=True).start()
print(flush=True)
count()
"""


def state_of(pid: int, thread: int) -> str:
    """proc(5): T stopped by a signal, t by a tracer."""
    return Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(") ")[2][0]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event until which what is stopped stays so, however late the test comes to look at it."""
    event = threading.Event()

    def sleep(seconds: float) -> None:
        assert event.wait(120)

    monkeypatch.setattr(hits, "time", SimpleNamespace(sleep=sleep))
    return event


def test_one_thread_stands_still_and_the_other_goes_on(seen: threading.Event) -> None:
    process = subprocess.Popen([sys.executable, "-c", _TWO_THREADS], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        main, other = hits.threads(process.pid)
        stopping = threading.Thread(target=hits.stop_thread, args=(other, 0.2))
        stopping.start()
        until(lambda: state_of(process.pid, other) == "t")
        assert state_of(process.pid, main) != "t"
        seen.set()
        stopping.join()
        until(lambda: state_of(process.pid, other) == "S")
        assert not hits.stop_thread(1 << 22, 0.0)  # there is none of this number
    finally:
        process.kill()
        process.communicate()


def test_a_process_is_stopped_for_some_time_and_killed_for_good(seen: threading.Event) -> None:
    process = subprocess.Popen(["sleep", "60"])
    stopping = threading.Thread(target=hits.stop, args=([process.pid], 0.2))
    stopping.start()
    until(lambda: state_of(process.pid, process.pid) == "T")
    seen.set()
    stopping.join()
    until(lambda: state_of(process.pid, process.pid) == "S")
    hits.kill([process.pid])
    assert process.wait(120) == -signal.SIGKILL


@pytest.mark.parametrize(
    "row", [r for r in ROWS if isinstance(r, hit.DisturbedRow)], ids=lambda r: str(r.name)
)
def test_the_plan_of_each_row_is_a_plan(
    tmp_path: Path, row: hit.DisturbedRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plans of the first repetitions are valid; every stack has its turn in them."""
    profile = data_dir("dut-profiles") / "remote-example.yaml"
    monkeypatch.setattr(row, "_box", RouterBox(), raising=False)
    monkeypatch.setattr(row, "_lab", SimpleNamespace(profile=lambda: profile), raising=False)
    for repetition in range(3):
        assert cases(load_plan(written(tmp_path, row.plan(repetition))))


def test_what_a_run_does_to_itself_is_told_in_whole_lines(tmp_path: Path) -> None:
    """Any words come back as they were; a line that is being written is not there yet."""
    file = tmp_path / "disturbances"
    assert announcements.read(file) == []
    lines = [
        announcements.Disturbance(2, 0.5, "home's daemon killed"),
        announcements.Disturbance(2, 1.25, "in 3 s: pair 7:\nodd"),
    ]
    for line in lines:
        announcements.write(file, line)
    assert announcements.read(file) == lines
    with file.open("a") as more:
        more.write('{"pair": 3')
    assert announcements.read(file) == lines


def test_a_run_is_found_by_who_writes_it(tmp_path: Path) -> None:
    """The terminal is not read; a run that another process made or resumes is not found."""
    for name, pid in (("one", 11), ("two", 12)):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / ".lock").write_text(f"{pid}\n")
    assert run_directory(["plan.yaml"], 12, tmp_path) == tmp_path / "runs/two"
    assert run_directory(["plan.yaml", "--out", tmp_path / "runs"], 11, Path("/")) == tmp_path / "runs/one"
    assert run_directory(["--resume", "runs/one"], 11, tmp_path) == tmp_path / "runs/one"
    assert run_directory(["--resume", "runs/one"], 13, tmp_path) is None
    assert run_directory(["plan.yaml", "--out", "none"], 11, tmp_path) is None
