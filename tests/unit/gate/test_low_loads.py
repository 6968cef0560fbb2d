# SPDX-License-Identifier: Apache-2.0
"""`espbench baseline`: beside the run's own trials each case at a tenth of its throughput, on the same gateways."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from espbench.cli.gate import measuring
from espbench.gate import baseline_file
from espbench.plan import conditions as plan_conditions
from espbench.plan import load_plan
from espbench.results import RunDirectory
from espbench.runs.beds import choose, profiles_of
from espbench.terms import BaseLoad, Finding, Trial
from support.command_line import in_process
from support.synthetic.gate import LOAD_FPS, PLAN, World, world_of

# Each frame costs this where the gateway is always busy: the figure says when it was full, not what it did.
FULL = 11_778.5


@dataclass
class Situation:
    """A run, and the world in which it will be measured again."""

    folder: Path
    run: RunDirectory
    world: World
    spoil: Callable[[Finding], Finding | None] = lambda finding: finding
    spoil_trial: Callable[[Trial], Trial] = lambda trial: trial
    asked: int = 0
    options: Sequence[str] = ()

    @property
    def file(self) -> Path:
        return self.folder / "baseline.json"

    def measure(self, argv: Sequence[str]) -> tuple[int, str]:
        """Stand in for `espbench run`: full at the throughput, and at a tenth of it as dear as in the world."""
        self.asked += 1
        self.options = argv[argv.index("--base-loads") + 2 :]
        loads = json.loads(Path(argv[argv.index("--base-loads") + 1]).read_text())
        typed = {case: [BaseLoad(**load) for load in of] for case, of in loads.items()}
        assert Path(argv[argv.index("run") + 1]) == self.folder / "plan.yaml"
        out = Path(argv[argv.index("--out") + 1])
        run = self.world.check(out, typed, self.spoil, self.spoil_trial)
        return 0, f"{run.path / 'results.csv'}\n"


@pytest.fixture
def situation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Situation:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    world = replace(world_of(plan), cost_when_full=FULL, plan_path=str(plan), plan_text=PLAN)
    made = Situation(tmp_path, world.run(tmp_path / "runs"), world)
    monkeypatch.setattr(measuring, "_waited_for", made.measure)
    return made


def test_each_case_has_a_tenth_of_its_throughput(situation: Situation) -> None:
    done = in_process("baseline", situation.run.path, "--out", situation.file)
    assert done.returncode == 0, done.stderr
    base = baseline_file.read(situation.file)
    assert base.has_low_loads
    for case in base.cases.values():
        whole, low = sorted(case.samples, key=lambda sample: -sample.share)
        assert (whole.load_fps, whole.instructions["home"]) == (LOAD_FPS, FULL)
        assert low.load_fps == LOAD_FPS / 10
        assert low.instructions["home"] == (5000.0 if case.point.stack == "plain" else 12000.0)


def test_a_run_of_other_code_is_made_no_base(situation: Situation) -> None:
    """Its tenth would be measured by this espbench, and the base have figures of both."""
    code = situation.run.manifest.code | {"measuring": "another"}
    situation.run.update_manifest(code=code)
    done = in_process("baseline", situation.run.path, "--out", situation.file)
    assert done.returncode == 2
    assert "code another\n  what to do: run the plan again" in str(done.stderr)
    assert not situation.file.exists()


def test_a_base_that_loses_frames_at_a_tenth_is_told(situation: Situation) -> None:
    """A check of it will be able to judge no loss there, and says so with its exit code."""
    done = in_process("baseline", situation.run.path, "--out", situation.file)
    assert "frames were lost" not in done.stderr
    situation.spoil_trial = lambda t: (
        t.model_copy(update={"rx_frames": 3996, "lost": 4, "frame_loss_ratio": 0.001})
        if t.intended_fps < LOAD_FPS / 2 and "xfrm-aes128-sha1-64" in t.case
        else t
    )
    done = in_process("baseline", situation.run.path, "--out", situation.file)
    assert done.returncode == 0, done.stderr
    (line,) = [
        text for text in done.stderr.splitlines() if text.startswith("repeats lost more than the goal")
    ]
    assert line.endswith("exit code 3 if there are none: mpc8548e xfrm aes128-sha1 64 B one-way")
    check = ("check", situation.folder / "plan.yaml", "--out", situation.folder / "checks", "--against")
    done = in_process(*check, situation.file)
    assert done.returncode == 3, done.stdout
    assert "1 not judged" in done.stdout
    why = "frame loss: the base's own trial at 4,000 frames/s lost more than the goal"
    assert f"not judged: mpc8548e xfrm aes128-sha1 64 B one-way: {why}" in done.stdout


def test_what_a_full_gateway_hides_is_found_at_a_tenth(situation: Situation) -> None:
    """The figure at the throughput is the same whatever a frame costs."""
    plan = situation.folder / "plan.yaml"
    situation.world = replace(
        situation.world, cost=lambda entry: 5000.0 if entry.stack == "plain" else 12000.0
    )
    assert in_process("baseline", situation.run.path, "--out", situation.file).returncode == 0
    situation.world = replace(
        situation.world, cost=lambda entry: 5000.0 if entry.stack == "plain" else 12001.0
    )
    check = ("check", plan, "--out", situation.folder / "checks", "--limit", "instructions=0", "--against")
    done = in_process(*check, situation.file)
    assert done.returncode == 5
    assert "+1.000" in done.stdout
    done = in_process(*check, situation.run.path)
    assert done.returncode == 0
    assert "the base has no load but the throughputs" in done.stdout


def test_other_gateways_make_no_base(situation: Situation) -> None:
    """Between the run and the base the build under test was replaced."""
    situation.world = replace(situation.world, cost_when_full=FULL + 1)
    done = in_process("baseline", situation.run.path, "--out", situation.file)
    assert done.returncode == 2
    assert "expected: the same instructions per frame as in the run's own trials" in done.stderr
    assert not situation.file.exists()


def test_a_case_that_cannot_be_measured_makes_no_base(situation: Situation) -> None:
    situation.spoil = lambda finding: None if finding.frame_size == 64 else finding
    done = in_process("baseline", situation.run.path, "--out", situation.file)
    assert done.returncode == 2
    assert not situation.file.exists()


@pytest.mark.parametrize(
    "change", [lambda plan: plan.unlink(), lambda plan: plan.write_text(PLAN + "# more\n")]
)
def test_a_plan_that_is_not_the_runs_makes_no_base(
    situation: Situation, change: Callable[[Path], object]
) -> None:
    change(situation.folder / "plan.yaml")
    done = in_process("baseline", situation.run.path, "--out", situation.file)
    assert done.returncode == 2
    assert "expected its plan as" in done.stderr
    assert not situation.asked


@pytest.mark.parametrize("seed", [7, 1])
def test_a_run_with_a_seed_of_its_own_makes_a_base(situation: Situation, seed: int) -> None:
    """The plan in its directory has this seed; the same gateways are measured again with it."""
    plan = situation.folder / "plan.yaml"
    if seed == 1:
        plan.write_text(PLAN + "seed: 9\n")
    resolved = load_plan(plan, seed=seed)
    asked = plan_conditions(resolved, profiles_of(choose(resolved)))
    situation.world = replace(situation.world, asked=asked, plan_text=resolved.text)
    run = situation.world.run(situation.folder / "runs")
    done = in_process("baseline", run.path, "--out", situation.file)
    assert done.returncode == 0, done.stderr
    assert list(situation.options) == ["--seed", str(seed)]
    plan.write_text(plan.read_text() + "# more\n")
    assert in_process("baseline", run.path, "--out", situation.file).returncode == 2
