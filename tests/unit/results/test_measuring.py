# SPDX-License-Identifier: Apache-2.0
"""A plan measured from Python: progress, going on, and each end of the command as one exception."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import espbench
from espbench.errors import EspbenchError, Interrupted, MachineLacks, UsageError
from espbench.frames import measuring
from espbench.results import RunDirectory
from support.synthetic import run as synthetic_run
from support.synthetic.series import Night, write

PLAN = "name: nightly\n"
# Stands in for `espbench run`: takes a run that is there, and answers one case of it at a time; with SEEN,
# only when that file has as many as it has answered.
STAND_IN = """
import json, os, shutil, sys, time
from pathlib import Path
arguments, source = sys.argv[2:], Path(os.environ["SOURCE"])
Path(os.environ["TOLD"]).write_text(json.dumps(sys.argv[1:]))
if "--resume" in arguments:
    run = Path(arguments[arguments.index("--resume") + 1])
else:
    run = Path(arguments[arguments.index("--out") + 1]) / "20270101T000000Z-nightly"
    run.mkdir(parents=True)
    (run / ".lock").write_text(f"{os.getpid()}\\n")
    for name in ("trials.jsonl", "plan.yaml", "manifest.json"):
        shutil.copy(source / name, run)
head, *lines, end = (source / "results.json").read_text().splitlines()
lines = [line.rstrip(",") for line in lines]
for number in range(1, len(lines) + 1):
    whole = "\\n".join([head, ",\\n".join(lines[:number]), end])
    (run / "new").write_text(whole)
    (run / "new").rename(run / "results.json")
    seen, deadline = Path(os.environ.get("SEEN", "/nonexistent")), time.monotonic() + 120
    while "SEEN" in os.environ and (not seen.exists() or int(seen.read_text() or 0) < number):
        assert time.monotonic() < deadline, "nobody saw it"
        time.sleep(0.01)
    time.sleep(float(os.environ.get("EACH", "0")))
print(run / "results.csv")
sys.exit(int(os.environ.get("CODE", "0")))
"""


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, and the run that it makes; the plan beside them."""
    shape = synthetic_run.Shape(
        stacks=("xfrm",), suites=("aes128gcm16",), sizes=(64, 512, 1424), goals=(0.0,), trials_per_case=2
    )
    made = synthetic_run.build(tmp_path / "source", shape, "nightly")
    with made:
        here = str((tmp_path / "plan.yaml").resolve())
        made.save_manifest(made.manifest.model_copy(update={"plan_path": here}))
    source = made.path
    (source / "plan.yaml").write_text(PLAN)
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setenv("SOURCE", str(source))
    monkeypatch.setenv("TOLD", str(tmp_path / "arguments"))
    monkeypatch.setattr(measuring, "PROGRAM", (sys.executable, str(tmp_path / "stand_in.py")))
    return source


def plan(tmp_path: Path) -> espbench.Plan:
    return espbench.Plan(tmp_path / "plan.yaml")


def arguments(tmp_path: Path) -> list[str]:
    argv: list[str] = json.loads((tmp_path / "arguments").read_text())
    return argv


def test_progress_is_told_case_by_case_and_the_run_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[espbench.Progress] = []
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))

    def note(progress: espbench.Progress) -> None:
        seen.append(progress)
        (tmp_path / "seen").write_text(str(progress.cases_done))

    run = plan(tmp_path).run(tmp_path / "out", jobs=2, wait=True, on_progress=note)
    assert [progress.cases_done for progress in seen if progress.cases_done] == [1, 2, 3]
    assert (seen[-1].cases_done, seen[-1].cases) == (3, 3)
    assert {progress.run for progress in seen} == {run.path}
    assert len(run.results) == 3
    assert arguments(tmp_path)[-3:] == ["--jobs", "2", "--wait"]


def test_trials_are_counted_right_when_they_are_put_into_order(tmp_path: Path, stand_in: Path) -> None:
    """The lines change places at the end of a run; a longer one may then stand where a shorter one was."""
    shutil.copytree(stand_in, tmp_path / "run")
    log = tmp_path / "run/trials.jsonl"
    short, longer = b'{"case":"a"}\n', b'{"case":"b","sequence":0}\n'
    log.write_bytes(short)
    watch = measuring._Watch(0, tmp_path, set(), tmp_path / "run")
    seen = [watch.changed()]
    log.with_suffix(".new").write_bytes(longer + short)
    log.with_suffix(".new").replace(log)
    seen.append(watch.changed())
    assert [progress.trials for progress in seen if progress] == [1, 2]


def test_a_cluster_is_the_commands(tmp_path: Path) -> None:
    plan(tmp_path).run(tmp_path / "out", cluster="tls://there:8786")
    assert arguments(tmp_path)[-2:] == ["--cluster", "tls://there:8786"]


def test_a_seed_is_the_commands_and_part_of_what_is_gone_on_with(tmp_path: Path, stand_in: Path) -> None:
    out = tmp_path / "out"
    begun = write(out, 5, Night()).path
    directory = RunDirectory.open(begun)
    directory.save_manifest(RunDirectory.open(stand_in).manifest)
    directory.save_results([])
    shutil.copy(stand_in / "trials.jsonl", begun)
    (begun / "plan.yaml").write_text(f"{PLAN}seed: 7\n")
    assert espbench.Plan(tmp_path / "plan.yaml", seed=8).run(out).path != begun
    assert arguments(tmp_path)[-2:] == ["--seed", "8"]
    assert espbench.Plan(tmp_path / "plan.yaml", seed=7).run(out).path == begun
    assert arguments(tmp_path) == ["run", "--no-report", "--resume", str(begun)]


@pytest.mark.parametrize("answered", [0, 2])
def test_the_same_line_goes_on_with_a_run_that_is_not_finished(
    tmp_path: Path, stand_in: Path, answered: int
) -> None:
    """A run that is finished, or of another plan, is none to go on with."""
    out = tmp_path / "out"
    begun = write(out, 5, Night()).path
    other = write(out, 6, Night(plan="other")).path
    for run, left in ((begun, answered), (other, 0)):
        directory = RunDirectory.open(run)
        directory.save_manifest(RunDirectory.open(stand_in).manifest)
        directory.save_results(RunDirectory.open(stand_in).results()[:left])
        shutil.copy(stand_in / "trials.jsonl", run)
    (other / "plan.yaml").write_text("name: other\n")
    assert plan(tmp_path).run(out).path == begun
    assert arguments(tmp_path) == ["run", "--no-report", "--resume", str(begun)]
    assert plan(tmp_path).run(out).path != begun
    assert "--resume" not in arguments(tmp_path)


@pytest.mark.parametrize(("finished", "is_resumed"), [(False, True), (True, False), (None, False)])
@pytest.mark.parametrize("has_cases", [True, False])
def test_a_run_whose_cases_have_answers_may_be_unfinished(
    tmp_path: Path, stand_in: Path, finished: bool | None, is_resumed: bool, has_cases: bool
) -> None:
    """It was interrupted in its comparison at fixed loads; or it has no cases at all, but a test of a crypto engine.

    Runs of older versions do not say whether they were finished.
    """
    begun = write(tmp_path / "out", 5, Night()).path
    source, directory = RunDirectory.open(stand_in), RunDirectory.open(begun)
    cases = source.manifest.cases if has_cases else []
    directory.save_manifest(source.manifest.model_copy(update={"finished": finished, "cases": cases}))
    directory.save_results(source.results() if has_cases else [])
    shutil.copy(stand_in / "trials.jsonl", begun)
    (begun / "plan.yaml").write_text(PLAN)
    assert (plan(tmp_path).run(tmp_path / "out").path == begun) == is_resumed


def test_errors_that_are_told_to_be_caught_are_part_of_the_api() -> None:
    assert {error.__name__ for error in (UsageError, MachineLacks, Interrupted, EspbenchError)} <= {
        *espbench.__all__
    }
    assert (espbench.UsageError, espbench.MachineLacks, espbench.Interrupted) == (
        UsageError,
        MachineLacks,
        Interrupted,
    )


def test_the_same_text_in_another_folder_is_another_plan(tmp_path: Path, stand_in: Path) -> None:
    """The folder decides what `dut: ./gateway.yaml` or `prefix: ./build` names."""
    begun = write(tmp_path / "out", 5, Night()).path
    directory = RunDirectory.open(begun)
    directory.save_manifest(RunDirectory.open(stand_in).manifest)
    directory.save_results([])
    (begun / "plan.yaml").write_text(PLAN)
    (tmp_path / "after").mkdir()
    shutil.copy(tmp_path / "plan.yaml", tmp_path / "after")
    assert espbench.Plan(tmp_path / "after/plan.yaml").run(tmp_path / "out").path != begun
    assert "--resume" not in arguments(tmp_path)


@pytest.mark.parametrize(
    ("code", "error"), [(1, EspbenchError), (2, UsageError), (4, MachineLacks), (130, Interrupted)]
)
def test_each_end_is_one_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[EspbenchError]
) -> None:
    script = f"import sys; print('what was wrong', file=sys.stderr); sys.exit({code})"
    monkeypatch.setattr(measuring, "PROGRAM", (sys.executable, "-c", script))
    with pytest.raises(error, match="what was wrong") as raised:
        plan(tmp_path).run(tmp_path / "out")
    assert type(raised.value) is error
    with pytest.raises(error, match="what was wrong"):
        espbench.check(tmp_path / "plan.yaml", "base")


def test_a_run_with_bounds_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 3: the results say of which case."""
    monkeypatch.setenv("CODE", "3")
    assert len(plan(tmp_path).run(tmp_path / "out").results) == 3


def test_what_the_callback_raises_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EACH", "60")

    def stop(_: espbench.Progress) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError):
        plan(tmp_path).run(tmp_path / "out", on_progress=stop)


def test_a_check_is_a_frame_with_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 5 is a verdict and no error."""
    row = {
        "case": "c", "goal": 0.0, "load_fps": 5e4, "quantity": "instructions", "side": "home", "base": 100.0,
        "low": 99.0, "high": 101.0, "repeats": 3, "now": 110.0, "change": 10.0, "limit": "1 %", "allowed": 1.0,
        "word": "regressed", "why": "", "share": 0.1,
    }  # fmt: skip
    verdict = {
        "rows": [row], "verdict": "regressed", "exit_code": 5, "run": "r", "base": "b", "problems": [], "notes": ["n"],
    }  # fmt: skip
    script = (
        "import sys; a = sys.argv; open(a[a.index('--json') + 1], 'w')"
        f".write({json.dumps(verdict)!r}); open({str(tmp_path / 'arguments')!r}, 'w').write(repr(a)); sys.exit(5)"
    )
    monkeypatch.setattr(measuring, "PROGRAM", (sys.executable, "-c", script))
    frame = espbench.check(
        tmp_path / "plan.yaml", "base", limit=["instructions=1%"], allow_different=["kernel"]
    )
    assert (frame.attrs["verdict"], frame.attrs["exit_code"]) == ("regressed", 5)
    (only,) = frame.to_dict("records")
    assert (only["now"], only["unit"], only["word"], only["share"]) == (
        110.0,
        "instructions/frame",
        "regressed",
        0.1,
    )
    assert "'--limit=instructions=1%', '--allow-different=kernel'" in (tmp_path / "arguments").read_text()
