# SPDX-License-Identifier: Apache-2.0
"""trials.jsonl: what survives a power cut, a full disk and a damaged line."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from espbench.errors import EspbenchError
from espbench.results import FORMAT, RunDirectory, seals
from espbench.results.durable import to_json
from espbench.results.trial_log import TrialLog
from espbench.terms import DirectionReading, GatewayReading, Latency, Reason, Trial
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape()
CASES = synthetic_run.cases_of(SHAPE)
TRIALS = synthetic_run.trials_of(CASES[0], SHAPE)
MANIFEST = synthetic_run.manifest(CASES, "trials")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    """An empty run, locked by this process."""
    with RunDirectory.create(tmp_path, "trials", MANIFEST, "") as created:
        yield created


def log(run: RunDirectory) -> Path:
    """The file under test."""
    return run.path / "trials.jsonl"


def test_a_trial_is_read_again_as_it_was_written(run: RunDirectory) -> None:
    """All trials, and those of one case, come back equal and in order."""
    other = synthetic_run.trials_of(CASES[1], SHAPE)
    for pair in zip(TRIALS, other, strict=True):
        for trial in pair:
            run.append(trial)
    again = RunDirectory.open(run.path)
    assert again.trials_of(CASES[0].case) == run.trials_of(CASES[0].case) == TRIALS
    assert again.trials_of(CASES[1].case) == other
    assert list(again.trials()) == [trial for pair in zip(TRIALS, other, strict=True) for trial in pair]
    assert again.trials_of("no such case") == []


def test_lines_are_arranged_by_case_and_stay_as_they_were_written(run: RunDirectory) -> None:
    """Sealed as before; a trial that comes then is sealed to the one before it."""
    first, second, third = (synthetic_run.trials_of(CASES[n], SHAPE) for n in range(3))
    *rest, last = first
    for trial in [t for group in zip(second, third, [*rest, None], strict=False) for t in group if t]:
        run.append(trial)
    before = log(run).read_bytes().splitlines()
    run.arrange([CASES[0].case, CASES[1].case])
    after = log(run).read_bytes().splitlines()
    assert sorted(after) == sorted(before)
    assert after != before
    run.append(last)
    again = RunDirectory.open(run.path)
    assert again.damage() == []
    assert [*again.trials()] == [*rest, *second, *third, last]
    run.arrange([CASES[0].case, CASES[1].case])
    assert [*run.trials()] == [*first, *second, *third]
    assert run.trials_of(CASES[2].case) == third


def test_a_log_with_damage_is_not_arranged(run: RunDirectory) -> None:
    """Nothing that might tell what happened is lost."""
    for trial in [*synthetic_run.trials_of(CASES[1], SHAPE), *TRIALS]:
        run.append(trial)
    damaged = log(run).read_bytes().replace(b'"lost":', b'"last":', 1)
    log(run).write_bytes(damaged)
    again = RunDirectory.open(run.path)
    run.close()
    with again:
        again.arrange([CASES[0].case, CASES[1].case])
    assert log(run).read_bytes() == damaged


def test_an_appended_trial_is_on_disk_before_append_returns(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole line is in the file when fsync is called, and fsync is called on that file."""
    seen: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        seen.append(log(run).read_text() if os.path.samestat(os.fstat(fd), log(run).stat()) else "")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    run.append(TRIALS[0])
    assert seen[-1] == seals.sealed(TRIALS[0], "").decode()


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_torn_last_line_is_passed_over_and_then_replaced(run: RunDirectory, kept: int) -> None:
    """Wherever the power was cut within the last line, the trials before it stay and the next one fits."""
    run.append(TRIALS[0])
    run.close()
    with log(run).open("a") as file:
        file.write((to_json(TRIALS[1]) + "\n")[:kept])
    with RunDirectory.open(run.path) as resumed:
        assert list(resumed.trials()) == resumed.trials_of(TRIALS[0].case) == TRIALS[:1]
        resumed.append(TRIALS[1])
        assert list(resumed.trials()) == TRIALS[:2]
    assert len(log(run).read_bytes().splitlines()) == 2


def test_a_last_line_of_zeros_is_a_torn_line(run: RunDirectory) -> None:
    """Some file systems leave a hole of zeros where the power was cut."""
    run.append(TRIALS[0])
    run.close()
    with log(run).open("ab") as file:
        file.write(b'{"case":' + bytes(400) + b"}\n")
    with RunDirectory.open(run.path) as resumed:
        resumed.append(TRIALS[1])
        assert list(resumed.trials()) == TRIALS[:2]


def test_a_reader_leaves_a_line_being_written_alone(run: RunDirectory) -> None:
    """A report on a run in progress must not cut off the writer's line."""
    run.append(TRIALS[0])
    with log(run).open("a") as file:
        file.write('{"case":')
    size = log(run).stat().st_size
    assert list(RunDirectory.open(run.path).trials()) == TRIALS[:1]
    assert log(run).stat().st_size == size


def written(run: RunDirectory, cases: int = 2, trials: int = 4) -> list[bytes]:
    """The lines of a log in which the cases' trials alternate."""
    of_cases = [synthetic_run.trials_of(case, SHAPE)[:trials] for case in CASES[:cases]]
    for together in zip(*of_cases, strict=True):
        for trial in together:
            run.append(trial)
    run.close()
    return log(run).read_bytes().splitlines(keepends=True)


def left_of(run: RunDirectory) -> tuple[int, int]:
    """Return how many trials of the first two cases are believed."""
    counts = RunDirectory.open(run.path).trial_counts()
    return counts.get(CASES[0].case, 0), counts.get(CASES[1].case, 0)


# Lines 1, 3, 5, 7 are of the first case, its trials 0 to 3; the others of the second.
def flipped(lines: list[bytes]) -> list[bytes]:
    """One digit of the third line's count of frames, so that it is JSON and a trial as before."""
    changed = re.sub(rb'"rx_frames":(\d)', lambda m: b'"rx_frames":%d' % (int(m[1]) ^ 1), lines[2], count=1)
    assert changed != lines[2]
    return [*lines[:2], changed, *lines[3:]]


def without(lines: list[bytes]) -> list[bytes]:
    """Leave the third line out."""
    return [*lines[:2], *lines[3:]]


def swapped(lines: list[bytes]) -> list[bytes]:
    """The third and the fifth line, each in the other's place."""
    return [*lines[:2], lines[4], lines[3], lines[2], *lines[5:]]


def cut(lines: list[bytes]) -> list[bytes]:
    """Cut the third line off after its beginning."""
    return [*lines[:2], lines[2][:50] + b"\n", *lines[3:]]


@pytest.mark.parametrize("damage", [flipped, without, swapped, cut])
def test_a_line_that_is_not_as_it_was_written_ends_its_case_and_no_other(
    run: RunDirectory, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    """Damage names the case and the line; mending keeps all trials before it, and the run takes new ones."""
    log(run).write_bytes(b"".join(damage(written(run))))
    with RunDirectory.open(run.path) as damaged:
        (one,) = damaged.damage()
        left = 2 if damage is swapped else 1  # the earlier one of swapped lines still fits
        assert (one.case, one.sequence) == (CASES[0].case, left)
        assert one.line == (4 if damage is without else 3)
        assert left_of(run) == (left, 4)
        said = damaged.mend()
        assert f"line {one.line}: case {CASES[0].case}, from its trial {left} on" in said[0]
        assert damaged.damage() == []
        assert damaged.mend() == []
        damaged.append(TRIALS[left])
    again = RunDirectory.open(run.path)
    assert again.damage() == []
    assert again.trials_of(CASES[0].case) == TRIALS[: left + 1]
    assert left_of(run) == (left + 1, 4)


def test_a_line_that_names_another_case_costs_that_case_nothing(run: RunDirectory) -> None:
    """The name of the case may be what was damaged, so the other case's trials all stand."""
    lines = written(run)
    lines[2] = lines[2].replace(CASES[0].case.encode(), CASES[1].case.encode())
    log(run).write_bytes(b"".join(lines))
    damaged = RunDirectory.open(run.path)
    assert [(d.case, d.line) for d in damaged.damage()] == [(CASES[1].case, 3), (CASES[0].case, 5)]
    assert left_of(run) == (1, 4)


def test_lines_of_different_cases_may_change_places(run: RunDirectory) -> None:
    """Each case's own order is all that counts."""
    lines = written(run)
    log(run).write_bytes(b"".join(sorted(lines)))
    assert RunDirectory.open(run.path).damage() == []
    assert left_of(run) == (4, 4)


def test_a_last_line_that_is_gone_is_missed_where_the_case_had_an_answer(run: RunDirectory) -> None:
    """The results say how many trials there were; mending takes back what has no trials to stand on."""
    shape = synthetic_run.Shape(trials_per_case=4)
    trials, results = synthetic_run.results_of(CASES[0], shape)
    for trial in trials:
        run.append(trial)
    run.save_results(results)
    run.close()
    lines = log(run).read_bytes().splitlines(keepends=True)
    log(run).write_bytes(b"".join(lines[:-1]))
    with RunDirectory.open(run.path) as damaged:
        (damage,) = damaged.damage()
        assert (damage.case, damage.sequence, damage.line) == (CASES[0].case, len(trials) - 1, 0)
        damaged.mend()
        assert damaged.results() == []
        assert damaged.trials_of(CASES[0].case) == trials[:-1]


def test_what_was_measured_at_a_damaged_answer_is_measured_again(tmp_path: Path) -> None:
    """A latency test's load is the throughput: when that is searched again, so is the latency measured again."""
    shape = synthetic_run.Shape(
        stacks=["plain"], suites=["null-null"], sizes=[64, 512], tests=["throughput", "latency"]
    )
    cases = synthetic_run.cases_of(shape)
    with RunDirectory.create(tmp_path, "both", synthetic_run.manifest(cases, "both"), "") as both:
        for case in cases:
            for trial in synthetic_run.trials_of(case, SHAPE)[:2]:
                both.append(trial)
        both.close()
        lines = log(both).read_bytes().splitlines(keepends=True)
        log(both).write_bytes(b"".join(lines[1:]))
        first = cases[0]
        with RunDirectory.open(both.path) as damaged:
            damaged.mend()
            left = damaged.trial_counts()
    gone = {case.case for case in cases if case.frame_size == first.frame_size}
    assert len(gone) == 2
    assert left == {case.case: 2 for case in cases if case.case not in gone}


@given(st.integers(0, 10**9), st.integers(0, 7))
@example(place=49630459, bit=0)  # in the name of the first line's seal
@example(place=16324, bit=0)  # in the name of the part of the record that holds it
def test_a_flipped_bit_anywhere_is_found_or_changes_nothing(place: int, bit: int) -> None:
    """Each trial that is still believed was written, whatever bit of the log flips."""
    lines, before = [], ""
    for trial in TRIALS[:3]:
        lines.append(seals.sealed(trial, before))
        before = seals.follows(lines[-1], before)
    data = bytearray(b"".join(lines))
    data[place % len(data)] ^= 1 << bit
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trials.jsonl"
        path.write_bytes(data)
        believed = list(TrialLog(path, FORMAT).trials())
    assert believed == TRIALS[: len(believed)]
    assert len(believed) < 3


def test_a_log_of_before_there_were_seals_is_read_and_goes_on(run: RunDirectory) -> None:
    """Its lines have none; those that follow are chained to them."""
    run.close()
    log(run).write_text("".join(to_json(trial) + "\n" for trial in TRIALS[:2]))
    with RunDirectory.open(run.path) as resumed:
        assert resumed.trials_of(CASES[0].case) == TRIALS[:2]
        resumed.append(TRIALS[2])
    again = RunDirectory.open(run.path)
    assert (again.damage(), again.trials_of(CASES[0].case)) == ([], TRIALS[:3])
    text = log(run).read_text()
    changed = text.replace(f'"tx_frames":{TRIALS[1].tx_frames}', f'"tx_frames":{TRIALS[1].tx_frames + 1}')
    log(run).write_text(changed)
    assert [d.line for d in RunDirectory.open(run.path).damage()] == [3]


def test_a_trial_with_a_missing_field_is_damage_that_names_the_field(run: RunDirectory) -> None:
    """JSON that is not a trial is not taken for one, in a log without seals either."""
    log(run).write_text('{"case":"x"}\n')
    (damage,) = RunDirectory.open(run.path).damage()
    assert str(damage) == "line 1: case x, from its trial 0 on: not a trial: sequence: Field required"


def test_two_runs_of_the_same_frames_differ_in_the_host_key_alone() -> None:
    """The seal stands under `host`: in virtual time all else is the same byte for byte."""
    other = TRIALS[0].model_copy(update={"host": {"steal_ms": 3.0}})
    one, two = (json.loads(seals.sealed(trial, "")) for trial in (TRIALS[0], other))
    assert one.pop("host") != two.pop("host")
    assert one == two


def test_a_full_disk_loses_one_trial_and_says_so(run: RunDirectory) -> None:
    """The kernel refuses the rest of a line half-way: the half is removed, the trials before it stay."""
    run.append(TRIALS[0])
    whole = log(run).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The size limit makes the kernel do what a full disk does: a short write, then a refusal.
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 100, hard))
    try:
        with pytest.raises(EspbenchError, match="cannot write: File too large") as caught:
            run.append(TRIALS[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert "the 1 trials before it are safe" in str(caught.value)
    assert log(run).read_bytes() == whole
    run.append(TRIALS[1])
    assert list(run.trials()) == TRIALS[:2]


def test_a_line_that_the_kernel_takes_in_pieces_is_whole(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: whole(fd, data[:100]))
    run.append(TRIALS[0])
    monkeypatch.undo()
    run.append(TRIALS[1])
    assert list(RunDirectory.open(run.path).trials()) == TRIALS[:2]


FILL_A_SMALL_DISK = """
import sys
from pathlib import Path
from support.synthetic import run as s
from espbench.errors import EspbenchError
from espbench.results import RunDirectory
shape = s.Shape(); cases = s.cases_of(shape)[:1]; trial = s.trials_of(cases[0], shape)[0]
run = RunDirectory.create(Path(sys.argv[1]), "small", s.manifest(cases, "small"), "")
appended = 0
try:
    while True:
        run.append(trial)
        appended += 1
except EspbenchError as error:
    print(error)
run.close()
print("appended", appended, "kept", len(list(RunDirectory.open(run.path).trials())))
"""


def test_on_a_full_file_system_every_trial_appended_is_kept(tmp_path: Path) -> None:
    """A real ENOSPC: a tmpfs of 64 KiB in a mount namespace of its own."""
    mounted = 'mount -t tmpfs -o size=64k tmpfs "$1" && exec "$2" -c "$3" "$1"'
    inside = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not allow user namespaces")
    done = subprocess.run(
        [*inside, "sh", "-c", mounted, "sh", tmp_path, sys.executable, FILL_A_SMALL_DISK],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "No space left on device" in done.stdout
    appended, kept = re.findall(r"appended (\d+) kept (\d+)", done.stdout)[0]
    assert int(appended) == int(kept) > 3


def test_a_number_that_is_none_is_refused(run: RunDirectory) -> None:
    """NaN would be read again as `no figure`."""
    with pytest.raises(EspbenchError, match="cannot be written"):
        run.append(TRIALS[0].model_copy(update={"offered_fps": float("nan")}))
    assert log(run).read_bytes() == b""


floats = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 2**53)
latencies = st.builds(Latency, min=st.none() | floats, p50=floats, hdr=st.none() | st.text())
directions = st.builds(
    DirectionReading, intended_fps=floats, offered_fps=floats, tx_frames=counts, rx_frames=counts,
    lost=counts, duplicated=counts, reordered=counts, corrupted=counts, latency_us=latencies,
)  # fmt: skip
trials = st.builds(
    Trial,
    case=st.text(), sequence=counts, phase=st.sampled_from(["search", "final"]), intended_fps=floats,
    offered_fps=floats, duration_s=floats, intended_duration_s=floats, tx_frames=counts, rx_frames=counts,
    lost=counts, duplicated=counts, reordered=counts, corrupted=counts, frame_loss_ratio=floats,
    validity=st.sampled_from(["VALID", "INVALID"]), reasons=st.lists(st.builds(Reason.of_text, st.text())),
    loss_at=st.dictionaries(st.text(), counts), latency_us=latencies,
    per_direction=st.dictionaries(st.sampled_from(["west-east", "east-west"]), directions),
    gateways=st.dictionaries(st.sampled_from(["home", "office"]), st.builds(GatewayReading, cpu_pct=floats)),
    proof=st.dictionaries(st.text(), st.none() | st.booleans() | counts | floats | st.text()),
    host=st.dictionaries(st.text(), st.lists(floats)),
)  # fmt: skip


@given(trials)
def test_any_trial_survives_the_way_through_its_line(trial: Trial) -> None:
    """Trial → line → Trial is the identity, and a line holds no line break."""
    line = to_json(trial)
    assert "\n" not in line
    assert Trial.model_validate_json(line) == trial
    assert to_json(Trial.model_validate_json(line)) == line
