# SPDX-License-Identifier: Apache-2.0
"""trials.jsonl: what survives a power cut, a full disk and a damaged line."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import synthetic_run
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import EspbenchError
from espbench.results import RunDirectory
from espbench.results.durable import to_json
from espbench.terms import DirectionReading, GatewayReading, Latency, Trial

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
    assert seen[-1] == to_json(TRIALS[0]) + "\n"


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


def test_a_damaged_line_in_the_middle_is_an_error_that_names_it(run: RunDirectory) -> None:
    """Damage that a power cut cannot explain is never skipped in silence."""
    lines = [to_json(trial) for trial in TRIALS[:3]]
    lines[1] = lines[1][:50]
    log(run).write_text("\n".join(lines) + "\n")
    with pytest.raises(EspbenchError, match="line 2 is not a trial") as caught:
        list(RunDirectory.open(run.path).trials())
    assert "trials.jsonl" in str(caught.value)
    with pytest.raises(EspbenchError, match="line 2"):
        RunDirectory.open(run.path).trials_of(CASES[0].case)


def test_a_trial_with_a_missing_field_is_an_error_that_names_the_field(run: RunDirectory) -> None:
    """JSON that is not a trial is not taken for one."""
    log(run).write_text('{"case":"x"}\n')
    with pytest.raises(EspbenchError, match="line 1: not a trial: sequence"):
        list(run.trials())


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


FILL_A_SMALL_DISK = """
import sys
from pathlib import Path
import synthetic_run as s
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
        env={**os.environ, "PYTHONPATH": str(Path(synthetic_run.__file__).parent)},
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
    validity=st.sampled_from(["VALID", "INVALID"]), reasons=st.lists(st.text()),
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
