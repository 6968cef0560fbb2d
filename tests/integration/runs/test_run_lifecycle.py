# SPDX-License-Identifier: Apache-2.0
"""The life of a run: interrupted, killed, torn, out of disk; it cleans up, goes on, and says the same."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.sentences import Code
from espbench.this_machine import machine_lock
from espbench.this_machine.processes import descendants
from support.gateways.boxes import RouterBox, leftovers
from support.plans import PINNED, pair_plan, quick, write_plan
from support.runs import ENDED, ESPBENCH, Run, all_gone, assert_complete, espbench, kill, resume, tables

pytestmark = pytest.mark.root

# Long enough to be disturbed in the middle.
LONG = quick(trial="500ms", final_trial="1500ms")
# The search makes half a dozen trials on a box that forwards some 1,450 frames/s.
SEARCHING = quick(trial="500ms", final_trial="1s", minimum="1000fps", resolution="20%")
RESIDENT_KIB = 400 << 10
GATEWAY_KIB = 512 << 10


@pytest.fixture
def box() -> Iterator[RouterBox]:
    """A clean router, gone afterwards."""
    with RouterBox() as router:
        yield router


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A complete run of two cases; the box it measured is still there."""
    with RouterBox() as router:
        plan = router.plan(frame_sizes=[64, 512], throughput=quick())
        with Run.start(tmp_path_factory.mktemp("finished"), plan) as run:
            assert run.ended() in ENDED, run.said
            assert_complete(run.directory)
            assert not (run.directory / "report.html").exists()  # left to `espbench report`
            yield run


def assert_stopped(run: Run, number: int, netns: str | None = None) -> None:
    """Interrupt a run in mid-trial: exit code 130, the way to go on, and nothing left."""
    run.in_mid_trial(netns)
    processes = run.processes()
    assert processes
    run.process.send_signal(number)
    assert run.ended() == 130
    assert f"espbench run --resume {run.directory}" in run.said
    assert "Traceback" not in run.said
    run.assert_nothing_left(processes)


def assert_goes_on(folder: Path, directory: Path, before: bytes) -> None:
    """A resumed run completes; the trials it had are untouched."""
    with resume(folder, directory) as again:
        assert again.ended() in ENDED, again.said
    after = (directory / "trials.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(after) > len(before)
    assert_complete(directory)


def assert_replay_is_the_same(folder: Path, directory: Path) -> None:
    """Resuming a complete run measures nothing and writes both results files again, byte for byte."""
    trials, wanted = (directory / "trials.jsonl").read_bytes(), tables(directory)
    for name in wanted:
        (directory / name).unlink()
    with resume(folder, directory) as replay:
        assert replay.ended() in ENDED, replay.said
    assert (directory / "trials.jsonl").read_bytes() == trials
    assert tables(directory) == wanted


def test_a_run_interrupted_in_mid_trial_leaves_nothing_and_goes_on(box: RouterBox, tmp_path: Path) -> None:
    """Ctrl-C: 130, the command to go on with, and after it the finished tables, the same in a replay."""
    box.limit_rate(700_000, burst=2000, limit=3000)
    with Run.start(tmp_path, box.plan(throughput=SEARCHING)) as run:
        assert_stopped(run, signal.SIGINT, box.west)
        directory = run.directory
    assert_goes_on(tmp_path, directory, (directory / "trials.jsonl").read_bytes())
    assert_replay_is_the_same(tmp_path, directory)


def test_impatient_ctrl_c_at_a_terminal_does_not_stop_the_tidying_up(tmp_path: Path) -> None:
    """Ctrl-C again and again, heard by every process of the terminal: not even the journal stays."""
    main, terminal = pty.openpty()
    with Run.start(tmp_path, pair_plan("netns", throughput=LONG), terminal) as run:
        run.in_mid_trial()
        processes = run.processes()
        while run.process.poll() is None:
            os.write(main, b"\x03")
            threading.Event().wait(0.02)
        assert run.ended() == 130, run.said
        run.assert_nothing_left(processes)
        assert "Traceback" not in run.said
    os.close(terminal)
    os.close(main)


def test_a_killed_controller_takes_its_processes_with_it_and_clean_removes_the_rest(tmp_path: Path) -> None:
    """Kill -9: generator and agents die by themselves; `clean` names what it removes.

    They may live a moment longer, but have no part in the machine's lock. Guests are in platforms/test_uml_platform.py.
    """
    with Run.start(tmp_path, pair_plan("netns", throughput=LONG, **PINNED)) as run:
        run.in_mid_trial()
        processes, directory = run.processes(), run.directory
        made = [entry for entry in run.look() if entry["kind"] in ("netns", "directory")]
        assert len(processes) >= 3
        kill(run.process.pid)
        assert run.ended() == -signal.SIGKILL
    with machine_lock.held():
        pass
    assert all_gone(processes) == [], "outlive their controller"
    left = leftovers(run.id)
    assert f"/run/netns/espbench-{run.id}-tester" in left
    cleaned = espbench("clean")
    assert cleaned.returncode == 0
    for entry in made:
        if any(entry["name"] in name for name in left):
            assert f"removed {run.id}: {entry['kind']} {entry['name']}" in cleaned.stdout
    run.assert_nothing_left(processes)
    assert_goes_on(tmp_path, directory, (directory / "trials.jsonl").read_bytes())


def test_a_replay_of_a_complete_run_measures_nothing_and_writes_the_same(
    finished: Run, tmp_path: Path
) -> None:
    """Resuming it writes both results files again, byte for byte."""
    directory = tmp_path / "copy"
    shutil.copytree(finished.directory, directory)
    verified = espbench("verify", directory)
    assert (verified.returncode, verified.stderr) == (0, "")
    assert_replay_is_the_same(tmp_path, directory)
    assert tables(directory) == tables(finished.directory)


def test_a_torn_last_line_is_measured_again(finished: Run, tmp_path: Path) -> None:
    """A power cut in the middle of a write: the run goes on after the last whole trial."""
    directory = tmp_path / "copy"
    shutil.copytree(finished.directory, directory)
    log = directory / "trials.jsonl"
    *whole, last = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole) + last[: len(last) // 2])
    assert_goes_on(tmp_path, directory, b"".join(whole))
    assert_replay_is_the_same(tmp_path, directory)


@pytest.mark.slow
def test_two_runs_at_once_follow_each_other(box: RouterBox, tmp_path: Path) -> None:
    """One has the machine's CPUs; the other is refused and told by whom, or waits. The same run is refused at once."""
    throughput = quick(trial="500ms", final_trial="300s")  # it is interrupted when all is seen
    with RouterBox() as other, Run.start(tmp_path, box.plan(name="one", throughput=throughput)) as one:
        one.in_mid_trial(box.west)
        again = espbench("run", "--resume", one.directory)
        assert again.returncode == 2
        assert f"process {one.process.pid}" in again.stderr
        plan = write_plan(tmp_path, other.plan(name="two", throughput=LONG))
        refused = espbench("run", plan, "--out", tmp_path / "none")
        assert refused.returncode == 4
        assert f"  process {one.process.pid} of root, since 20" in refused.stderr
        assert str(tmp_path / "one.yaml") in refused.stderr
        assert "espbench run --wait" in refused.stderr
        assert not (tmp_path / "none").exists()
        calibrated = espbench("calibrate")
        assert calibrated.returncode == 4
        with Run(tmp_path, "--wait", plan, "--out", tmp_path / "runs") as two:
            two.until(lambda: f"  process {one.process.pid} of root" in two.said)
            assert not list((tmp_path / "runs").glob("*two"))
            one.process.send_signal(signal.SIGINT)
            assert (one.ended(), two.ended()) == (130, 0), one.said + two.said
            assert_complete(two.directory)
            for run in (one, two):
                assert leftovers(run.id) == set()


def assert_mended(run: Run, code: Code, reason: str) -> None:
    """One trial is INVALID for this reason, by its code and in words, and the case went on to OK."""
    assert run.ended() in ENDED, run.said
    broken = [t for t in run.trials if t["validity"] == "INVALID" and reason in "; ".join(t["reasons"])]
    assert len(broken) == 1, [t["reasons"] for t in run.trials]
    assert [reason_code["code"] for reason_code in broken[0]["reason_codes"]] == [code]
    assert broken[0]["tx_frames"] == 0
    assert_complete(run.directory)
    assert leftovers(run.id) == set()


@pytest.mark.slow
def test_a_generator_killed_in_mid_trial_costs_one_trial(box: RouterBox, tmp_path: Path) -> None:
    """The trial is INVALID, a new generator takes over."""
    with Run.start(tmp_path, box.plan(throughput=LONG)) as run:
        run.in_mid_trial(box.west)
        kill(run.pid_of("generator"))
        assert_mended(run, Code.GENERATOR_FAILED, "generator: died during `trial` (signal 9)")


@pytest.mark.slow
def test_an_agent_killed_in_mid_trial_costs_one_trial(tmp_path: Path) -> None:
    """The gateway is named, the pair is built again."""
    with Run.start(tmp_path, pair_plan("netns", throughput=LONG, **PINNED)) as run:
        run.in_mid_trial()
        kill(descendants(run.pid_of("agent of office"))[0])
        assert_mended(run, Code.GATEWAY_DIED, "gateway office died during the trial")
        assert homes_built(run) == 2


@pytest.mark.slow
@pytest.mark.uml
def test_a_guest_killed_in_mid_trial_is_quoted_and_rebuilt(tmp_path: Path) -> None:
    """The reason holds the end of the guest's console. Until then each guest stays below 512 MB."""
    with Run.start(tmp_path, pair_plan("uml", throughput=LONG, **PINNED)) as run:
        run.in_mid_trial()
        for side in ("home", "office"):
            guest = sum(pss_kib(pid) for pid in descendants(run.pid_of(f"{side} (")))
            assert 0 < guest <= GATEWAY_KIB
        kill(descendants(run.pid_of("home ("))[1])
        assert_mended(run, Code.GATEWAY_DIED, "gateway home died during the trial; its last words:\n")
        said = next(t["reasons"][0] for t in run.trials if t["reasons"] and "last words" in t["reasons"][0])
        assert len(said.splitlines()) > 3, said


def pss_kib(pid: int) -> int:
    """A process's share of the memory it uses, KiB; 0 once it is gone."""
    try:
        figures = re.findall(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(figures[0]) if figures else 0


def homes_built(run: Run) -> int:
    """Count how often the run's journal says that a Home was made."""
    return sum(entry["kind"] == "netns" and entry["name"].endswith("-home") for entry in run.look())


@pytest.mark.slow
def test_a_pair_serves_every_frame_size_and_direction(tmp_path: Path) -> None:
    """Two sizes in two directions are measured on one pair, built once, in at most 400 MB."""
    sizes = {"frame_sizes": [64, 256], "directions": ["one-way", "both-ways"]}
    with Run.start(tmp_path, pair_plan("netns", throughput=quick(), **sizes, **PINNED)) as run:
        assert run.ended() in ENDED, run.said
        assert homes_built(run) == 1
        assert_complete(run.directory)
        assert len({trial["case"] for trial in run.trials}) == 4
        assert 0 < run.peak_kib["controller"] + run.peak_kib["generator"] <= RESIDENT_KIB


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 192 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "none", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.slow
def test_a_full_disk_is_named_and_costs_no_earlier_trial(
    box: RouterBox, tmp_path: Path, small_disk: Path
) -> None:
    """The message names the file; with space again the run goes on."""
    box.limit_rate(700_000, burst=2000, limit=3000)
    plan = write_plan(tmp_path, box.plan(throughput=SEARCHING))
    with Run(tmp_path, plan, "--out", small_disk) as run:
        run.in_mid_trial(box.west)
        directory = run.directory
        before = (directory / "trials.jsonl").read_bytes()
        filler = small_disk / "filler"
        fill(filler)
        assert run.ended() == 1
        assert f"{directory}/trials.jsonl: cannot write: No space left on device" in run.said
        assert "Traceback" not in run.said
        assert leftovers(run.id) == set()
    filler.unlink()
    kept = (directory / "trials.jsonl").read_bytes()
    assert kept.startswith(before)
    assert kept.endswith(b"}\n")
    with resume(tmp_path, directory) as again:
        assert again.ended() in ENDED, again.said
    assert (directory / "trials.jsonl").read_bytes().startswith(kept)
    assert_complete(directory)


def fill(file: Path) -> None:
    """Take all the space there is."""
    with file.open("wb", buffering=0) as rest:
        try:
            while rest.write(b"x" * 512):
                pass
        except OSError:
            return


@pytest.mark.slow
def test_a_terminal_shows_case_trial_bounds_and_time_left(box: RouterBox, tmp_path: Path) -> None:
    """A person sees them; without a terminal there is one line for each trial."""
    box.limit_rate(700_000, burst=2000, limit=3000)
    plan = write_plan(tmp_path, box.plan(throughput=SEARCHING))
    main, terminal = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=lambda: shown.extend(iter(lambda: read(main), b"")))
    reader.start()
    environment = os.environ | {"COLUMNS": "200", "LINES": "50", "TERM": "xterm"}
    done = subprocess.run(
        [*ESPBENCH, "run", "--no-report", str(plan), "--out", str(tmp_path / "runs")],
        stderr=terminal, stdin=terminal, stdout=subprocess.DEVNULL, env=environment, check=False, timeout=900,
    )  # fmt: skip
    os.close(terminal)
    reader.join(120)
    os.close(main)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(shown).decode())
    assert done.returncode in ENDED, text
    assert re.search(r"case 1/1, about \d+:\d\d left", text)
    assert re.search(r"(search|final) trial, [\d,]+ fps for [\d.]+ s +zero-loss: \S+ … \d", text)


def read(descriptor: int) -> bytes:
    """Return what a pseudo-terminal shows next; empty when the other side is closed."""
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def test_without_a_terminal_each_trial_is_one_line(finished: Run) -> None:
    """Nothing that moves: a log file stays readable."""
    lines = [line for line in finished.said.splitlines() if re.match(r"  (search|final) ", line)]
    assert len(lines) == len(finished.trials)
    assert "\x1b" not in finished.said


def test_a_run_does_not_go_on_with_another_plan(finished: Run, tmp_path: Path) -> None:
    """A run directory whose plan was changed would mix figures of two things: refused, and left alone."""
    directory = tmp_path / "copy"
    shutil.copytree(finished.directory, directory)
    plan = directory / "plan.yaml"
    plan.write_text(plan.read_text().replace("- 64\n", "- 128\n"))
    manifest = (directory / "manifest.json").read_bytes()
    refused = espbench("run", "--resume", directory)
    assert refused.returncode == 2
    assert "this run cannot go on here" in refused.stderr
    assert (directory / "manifest.json").read_bytes() == manifest


@pytest.mark.slow
def test_a_profile_beside_the_plan_is_found_again_on_resuming_after_sigterm(tmp_path: Path) -> None:
    """SIGTERM is as Ctrl-C; paths in the run's copy of the plan still start where the plan stood."""
    profile = "name: mine\ndescription: a profile of the user's\nplatform: netns\n"
    (tmp_path / "mine.yaml").write_text(profile)
    plan = pair_plan("netns", throughput=LONG, **PINNED) | {"dut": "./mine.yaml"}
    with Run.start(tmp_path, plan) as run:
        assert_stopped(run, signal.SIGTERM)
        directory = run.directory
    assert_goes_on(tmp_path, directory, (directory / "trials.jsonl").read_bytes())
    assert json.loads((directory / "manifest.json").read_text())["resumed"]
