# SPDX-License-Identifier: Apache-2.0
"""`espbench bisect` and `check` against a revision, with real git, real builds and the commands as they are.

`espbench run` is made up: a frame costs what the file says that the last build has put in place.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from espbench.cli.gate import bases, measuring
from espbench.profile import from_run
from espbench.profile.attribution import Profile
from espbench.profile.symbols import Function
from espbench.results import RunDirectory
from espbench.terms import BaseLoad, Finding, Outcome, Reason
from support.command_line import in_process
from support.synthetic.gate import LOAD_FPS, PLAN, World, world_of

COMMITS = 17
SLEEP = "sleep 0.02; "  # a file that is written in the same tick of the file system's clock counts as older
FORWARDING = 5000  # instructions of each frame, whatever the commit; `esp_output` executes the rest


@dataclass
class Project:
    """A tree whose n-th commit costs costs[n]; None: it cannot be built."""

    folder: Path
    world: World
    patience: int = 1000
    code_at: dict[str, int] = field(default_factory=dict)
    spoil: Callable[[Finding], Finding | None] = lambda finding: finding
    spoil_outcome: Callable[[Outcome], Outcome] = lambda outcome: outcome
    profile_ends_with: int = 0
    report_ends_with: int = 0
    measured: list[str] = field(default_factory=list)

    @property
    def built(self) -> Path:
        return self.folder / "built"

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def grow(self, costs: list[float | None]) -> None:
        """Commit one after the other, in one process of git instead of three for each commit."""
        self.tree.mkdir()
        self.git("init", "-q", "-b", "main")
        stream = ""
        for number, cost in enumerate(costs):
            stream += f"commit refs/heads/main\ncommitter n <e@example.org> {1_700_000_000 + number} +0000\n"
            stream += _data(f"commit {number}")
            for name, text in (("cost", "no number" if cost is None else str(cost)), ("number", str(number))):
                stream += f"M 100644 inline {name}\n{_data(text)}"
        self.git("fast-import", "--quiet", given=stream)
        self.git("reset", "-q", "--hard")

    def git(self, *arguments: str, given: str = "") -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        command = ["git", "-C", str(self.tree), *identity, *arguments]
        subprocess.run(command, check=True, capture_output=True, input=given, text=True)

    @property
    def build(self) -> str:
        return f"! grep -q no cost && cp cost {self.built}"

    def bisect(self, *options: str) -> subprocess.CompletedProcess[str]:
        return in_process(
            "bisect", self.folder / "plan.yaml", "--good", f"main~{COMMITS - 1}", "--bad", "main", "--tree", self.tree,
            "--build", self.build, "--out", self.folder / "runs", *options,
        )  # fmt: skip

    def run(self, argv: list[str]) -> tuple[int, str]:
        """Stand in for `espbench run`, and for `espbench report`."""
        if argv[3] == "report":
            if not self.report_ends_with:
                (Path(argv[4]) / "report.html").touch()
            return self.report_ends_with, ""
        if "--profiled" in argv and self.profile_ends_with:
            return self.profile_ends_with, ""
        if len(self.measured) == self.patience:
            raise KeyboardInterrupt
        cost = float(self.built.read_text())
        self.measured.append(self.built.read_text())
        if code := self.code_at.get(self.built.read_text()):
            return code, ""
        world = replace(self.world, cost=lambda entry: 5000.0 if entry.stack == "plain" else cost)
        out = Path(argv[argv.index("--out") + 1])
        if "--base-loads" not in argv:
            run = world.run(out, self.spoil_outcome)
        else:
            loads = json.loads(Path(argv[argv.index("--base-loads") + 1]).read_text())
            typed = {case: [BaseLoad(**load) for load in of] for case, of in loads.items()}
            run = world.check(out, typed, self.spoil)
        return 0, f"{run.path / 'results.csv'}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    made = Project(tmp_path, replace(world_of(plan), platform="qemu_e500"))
    monkeypatch.setattr(measuring, "_waited_for", made.run)
    monkeypatch.setattr(from_run, "profiles", profiles)
    return made


def profiles(run: RunDirectory) -> tuple[list[Profile], list[str]]:
    """Stand in for the counts that a profiled run leaves: `esp_output` executes what a commit costs."""
    made = []
    for case in run.manifest.base_loads:
        for side, reading in run.trials_of(case)[-1].gateways.items():
            assert reading.frames is not None
            assert reading.instructions_per_frame is not None
            rest = round((reading.instructions_per_frame - FORWARDING) * reading.frames)
            costs = {
                (Function("forward"), "softirq"): FORWARDING * reading.frames,
                (Function("esp_output", "esp4"), "softirq"): rest,
            }
            made.append(Profile(case, side, reading.frames, costs, {}))  # type: ignore[arg-type]
    return made, []


def installs_where_the_plan_looks(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "own_paths", lambda resolved: [project.built])


def _data(text: str) -> str:
    """Return a text as git's fast-import reads it."""
    return f"data {len(text.encode())}\n{text}\n"


def step_at(place: int, more: float = 212.0) -> list[float | None]:
    return [12000.0 + (more if number >= place else 0.0) for number in range(COMMITS)]


def test_the_commit_is_found_with_its_cost(project: Project) -> None:
    """Four steps suffice for sixteen commits, beside good (twice), bad, one that confirms the answer and two profiles.

    The tree is as before.
    """
    project.grow(step_at(11))
    done = project.bisect()
    assert done.returncode == 0, done.stderr
    assert "commit 11 costs +212.000 instructions per frame, of +212.000 in all" in done.stdout
    assert "7 of 17 commits were measured" in done.stdout
    assert re.search(r"to confirm the answer, \w+ commit 14", done.stderr)
    assert "step 4 of about 4" in done.stderr
    assert len(project.measured) == 3 + 4 + 1 + 2
    (folder,) = (project.folder / "runs").iterdir()
    assert "commit 11 costs +212.000" in (folder / "bisect.md").read_text()
    assert not (folder / "tree").exists()
    assert (project.tree / "number").read_text() == str(COMMITS - 1)


def test_after_the_first_steps_only_the_worst_case_is_measured(project: Project) -> None:
    """A commit that is known to be worse in one case need not be measured in all of them."""
    project.grow(step_at(5))
    assert project.bisect().returncode == 0
    (folder,) = (project.folder / "runs").iterdir()
    runs = sorted(len(RunDirectory.open(path).manifest.base_loads) for path in (folder / "runs").iterdir())
    assert runs == [
        0,
        1,
        1,
        1,
        1,
        1,
        4,
        4,
    ]  # good searches; four steps, and one more; good and bad at all loads


def test_an_interrupted_bisection_goes_on_with_the_same_command(project: Project) -> None:
    project.grow(step_at(11))
    project.patience = 5
    assert project.bisect().returncode == 130
    project.patience = 1000
    before = len(project.measured)
    done = project.bisect()
    assert done.returncode == 0, done.stderr
    assert "commit 11 costs +212.000" in done.stdout
    assert len(project.measured) == 8 + 2
    assert before == 5


def folder_of(project: Project) -> Path:
    """Return the folder of the bisection."""
    (folder,) = (project.folder / "runs").iterdir()
    return folder


def test_the_cost_of_the_commit_is_shown_by_function(project: Project) -> None:
    """Both gateways are shown, at the load of the bisection's figure, with the files of both profiles."""
    project.grow(step_at(11))
    done = project.bisect()
    assert done.returncode == 0, done.stderr
    folder = folder_of(project)
    text = (folder / "bisect.md").read_text()
    assert re.search(r"home: 12,000\.000 → 12,212\.000 \(\+212\.000\)", text)
    assert text.count("| `esp_output` | esp4 | 7,000.000 | 7,212.000 | +212.000 |") == 2
    assert "`forward`" not in text
    for word, name, number in (("was", "before", 10), ("is", "after", 11)):
        (run,) = (folder / "profiles" / name).iterdir()
        at = f"profiles/{name}/{run.name}"
        assert re.search(rf"\* {word}, \w+ commit {number}: {at}/profile.html and {at}/report.html\n", text)
        assert (run / "profile.html").is_file()
        ((case, (load,)),) = RunDirectory.open(run).manifest.base_loads.items()
        assert (case, load.load_fps) == ("0003-xfrm-aes128-sha1-64-one-way", LOAD_FPS / 10)
    assert text.partition("By function")[2] in done.stdout
    assert done.stdout.rstrip().endswith(str(folder / "bisect.md"))


def test_a_bisection_that_is_done_is_only_shown(project: Project) -> None:
    """Nothing is built or measured again, neither the steps nor the profiles."""
    project.grow(step_at(11))
    first = project.bisect()
    before = list(project.measured)
    second = project.bisect()
    assert project.measured == before
    assert "building" not in second.stderr
    assert second.stdout == first.stdout
    assert "+212.000 |" in (folder_of(project) / "bisect.md").read_text()


def test_an_interrupted_profile_goes_on_with_the_same_command(project: Project) -> None:
    """The commit was told before; the parent is not profiled again."""
    project.grow(step_at(11))
    project.patience = 9
    done = project.bisect()
    assert done.returncode == 130
    assert "commit 11 costs +212.000" in done.stdout
    assert "commit 11 costs +212.000" in (folder_of(project) / "bisect.md").read_text()
    project.patience = 1000
    assert project.bisect().returncode == 0
    assert len(project.measured) == 10
    assert "+212.000 |" in (folder_of(project) / "bisect.md").read_text()


@pytest.mark.parametrize("fault", ["the run", "the counts", "the gateways"])
def test_a_profile_that_fails_costs_no_verdict(
    project: Project, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """One message says why, and the next start tries the profile again, and nothing else."""
    project.grow(step_at(11))
    assert project.bisect("--no-profile").returncode == 0
    assert not (folder_of(project) / "profiles").exists()
    steps, world = len(project.measured), project.world
    with monkeypatch.context() as broken:
        if fault == "the run":
            project.profile_ends_with = 4
        elif fault == "the counts":

            def fails(run: RunDirectory) -> tuple[list[Profile], list[str]]:
                return [], ["no profile"]

            broken.setattr(from_run, "profiles", fails)
        else:
            project.world = replace(world, qemu="qemu sha256 ffffffffffffffff")
        done = project.bisect()
    why = {"the run": "ended with exit code 4", "the counts": "no profile", "the gateways": "a foreign base"}
    assert done.returncode == 0
    assert "commit 11 costs +212.000" in done.stdout
    assert done.stderr.count("no cost by function: ") == 1
    assert why[fault] in done.stderr
    assert "--no-profile leaves it out" in done.stderr
    project.profile_ends_with, project.world = 0, world
    tried = len(project.measured)
    done = project.bisect()
    assert done.returncode == 0
    assert "+212.000 |" in (folder_of(project) / "bisect.md").read_text()
    assert (tried - steps, len(project.measured) - tried) == (0 if fault == "the run" else 1, 2)


def test_a_report_that_fails_costs_no_profile(project: Project) -> None:
    project.grow(step_at(11))
    project.report_ends_with = 1
    done = project.bisect()
    assert done.returncode == 0
    assert done.stderr.count("the report could not be written; try again: espbench report ") == 2
    text = (folder_of(project) / "bisect.md").read_text()
    assert "+212.000 |" in text
    assert "report.html" not in text


def test_an_interruption_of_the_profiles_run_is_one_of_the_bisection(project: Project) -> None:
    project.grow(step_at(11))
    project.profile_ends_with = 130
    done = project.bisect()
    assert done.returncode == 130
    assert "no cost by function" not in done.stderr


def test_of_several_repeats_the_first_is_profiled(project: Project) -> None:
    plan = project.folder / "plan.yaml"
    plan.write_text(PLAN.replace("tests:", "repeat: 2\ntests:"))
    project.world = replace(world_of(plan), platform="qemu_e500")
    project.grow(step_at(11))
    done = project.bisect()
    assert done.returncode == 0, done.stderr
    for name in ("before", "after"):
        (run,) = (folder_of(project) / "profiles" / name).iterdir()
        (case,) = RunDirectory.open(run).manifest.base_loads
        assert case.endswith("-r1")


@pytest.mark.parametrize("patience", [0, 4, 1000])
def test_the_revision_that_is_built_at_the_end_is_told(project: Project, patience: int) -> None:
    """Interrupted or not; the command that is told builds the tree's own."""
    project.grow(step_at(11))
    (project.tree / "cost").write_text("9000.0")
    project.patience = patience
    done = project.bisect()
    assert done.returncode == (0 if patience == 1000 else 130)
    built = re.search(r"built now: (\w{12}) commit (\d+), and not the tree's own build", done.stderr)
    assert built
    told = subprocess.run(
        ["git", "-C", project.tree, "show", f"{built[1]}:cost"], check=True, capture_output=True, text=True
    )
    assert project.built.read_text() == told.stdout
    command = re.search(r"to build the tree's own: (.*)", done.stderr)
    assert command
    subprocess.run(command[1], shell=True, check=True)
    assert project.built.read_text() == "9000.0"


def test_nothing_is_told_of_builds_if_none_was_made(project: Project) -> None:
    project.grow(step_at(11))
    assert project.bisect().returncode == 0
    assert "built now: " not in project.bisect().stderr


@pytest.mark.parametrize(
    ("good", "bad", "code_at", "code"),
    [
        (None, 12212.0, {}, 1),
        (12000.0, None, {}, 1),
        (12000.0, 12212.0, {"12000.0": 4}, 4),
        (12000.0, 12212.0, {"12212.0": 2}, 2),
    ],
)
def test_without_good_or_bad_there_is_no_bisection(
    project: Project, good: float | None, bad: float | None, code_at: dict[str, int], code: int
) -> None:
    """A build that fails, and a run that refuses the plan with this build: their own exit codes."""
    costs = step_at(11)
    costs[0], costs[-1] = good, bad
    project.grow(costs)
    project.code_at = code_at
    assert project.bisect().returncode == code


def test_a_good_commit_without_a_valid_figure_is_no_base(project: Project) -> None:
    project.grow(step_at(11))
    project.spoil_outcome = lambda outcome: outcome.model_copy(update={"status": "INVALID"})
    done = project.bisect()
    assert done.returncode == 2
    assert "not a base" in done.stderr


def test_another_question_is_not_mixed_with_it(project: Project) -> None:
    project.grow(step_at(11))
    assert project.bisect().returncode == 0
    done = project.bisect("--limit", "instructions=1")
    assert done.returncode == 2
    assert "a bisection of something else" in done.stderr


def test_the_good_commit_of_another_build_is_no_base(project: Project) -> None:
    """Interrupted after the good commit was measured: its costs are of the first command, which is known by then."""
    project.grow(step_at(11))
    project.patience = 2
    assert project.bisect().returncode == 130
    assert (folder_of(project) / "baseline.json").exists()
    project.patience = 1000
    done = project.bisect("--build", f"{project.build} && true")
    assert done.returncode == 2, done.stdout
    assert "a bisection of something else" in done.stderr
    assert len(project.measured) == 2
    assert "commit 11 costs +212.000" in project.bisect().stdout


def test_a_base_of_which_nobody_knows_the_build_is_measured_again(project: Project) -> None:
    project.grow(step_at(11))
    project.patience = 2
    assert project.bisect().returncode == 130
    (folder_of(project) / "bisect.json").unlink()
    project.patience = 1000
    assert project.bisect().returncode == 0
    assert project.measured[2:4] == ["12000.0", "12000.0"]


def test_a_limit_that_was_too_large_may_be_made_smaller(project: Project) -> None:
    """The base is the same with each limit."""
    project.grow(step_at(11))
    assert project.bisect("--limit", "instructions=1000").returncode == 3
    before = len(project.measured)
    assert project.bisect("--limit", "instructions=1", "--no-profile").returncode == 0
    assert len(project.measured) == before + 1 + 4 + 1


def test_costs_that_go_up_twice_are_no_single_commit(project: Project) -> None:
    project.grow([12000.0 + 100 * (n >= 3) + 100 * (n >= 12) for n in range(COMMITS)])
    done = project.bisect()
    assert done.returncode == 3
    assert "no single commit" in done.stdout
    assert not (folder_of(project) / "profiles").exists()


def test_a_second_regression_that_is_smaller_is_told(project: Project) -> None:
    """16 % of the whole, and far beyond the limit: the answer would leave it in the tree."""
    project.grow([12000.0 + 1000 * (n >= 3) + 190 * (n >= 12) for n in range(COMMITS)])
    done = project.bisect()
    assert done.returncode == 3
    assert re.search(
        r"no single commit: .*; of \+1,190\.000 in all, \w+ commit 3 costs \+1,000\.000", done.stdout
    )


def test_a_regression_that_was_undone_and_made_again_is_found_where_it_was_made_again(
    project: Project,
) -> None:
    project.grow([12000.0 + 212 * (4 <= n <= 8 or n >= 13) for n in range(COMMITS)])
    done = project.bisect()
    assert done.returncode == 3
    assert re.search(r"had risen at place 4, .* of \+212\.000 in all, \w+ commit 13 costs", done.stdout)


def test_commits_that_do_not_build_are_gone_around(project: Project) -> None:
    costs = step_at(11)
    costs[8] = costs[10] = None
    project.grow(costs)
    done = project.bisect()
    assert "left out: --build: the command ended with 1" in done.stderr
    assert done.returncode == 3
    assert "commit 10 to " in done.stdout
    assert "1 commits between could not be built" in done.stdout


def fails_at(project: Project, monkeypatch: pytest.MonkeyPatch, *commits: int) -> str:
    """Return a build command that fails at these commits while FAIL is set; commit 11 costs more than those before."""
    project.grow(step_at(11))
    monkeypatch.setenv("FAIL", "1")
    numbers = " ".join(map(str, commits))
    return f'test -z "$FAIL" || ! expr " {numbers} " : ".* $(cat number) " || exit 1; {project.build}'


def test_an_answer_that_no_build_confirmed_says_so_until_one_does(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commits that failed are tried again, and no other one."""
    build = fails_at(project, monkeypatch, 13, 14, 15)
    done = project.bisect("--no-profile", "--build", build)
    assert done.returncode == 0, done.stderr
    assert re.search(r"not confirmed: 3 builds failed between it and \w+ commit 16", done.stdout)
    assert "not confirmed" in (folder_of(project) / "bisect.md").read_text()
    before = len(project.measured)
    monkeypatch.setenv("FAIL", "")
    done = project.bisect("--no-profile", "--build", build)
    assert "commit 11 costs +212.000" in done.stdout
    assert "not confirmed" not in done.stdout
    assert len(project.measured) == before + 1


def test_a_commit_that_can_be_built_after_all_is_measured(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commits around it are not measured twice."""
    build = fails_at(project, monkeypatch, 8, 10)
    done = project.bisect("--no-profile", "--build", build)
    assert done.returncode == 3
    monkeypatch.setenv("FAIL", "")
    done = project.bisect("--no-profile", "--build", build)
    assert done.returncode == 0, done.stderr
    assert "commit 11 costs +212.000" in done.stdout
    steps = json.loads((folder_of(project) / "bisect.json").read_text())["steps"]
    assert len({step["commit"] for step in steps}) == len(steps) == len(project.measured) - 1


@pytest.mark.parametrize("costs", [step_at(99), step_at(11, more=1.0)])
def test_where_bad_is_no_worse_than_the_limit_there_is_no_commit(
    project: Project, costs: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    installs_where_the_plan_looks(project, monkeypatch)
    project.grow(costs)
    done = project.bisect("--build", SLEEP + project.build)
    assert done.returncode == 3
    assert "no single commit" in done.stderr


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"qemu": "qemu sha256 ffffffffffffffff"},
         "emulation.qemu: the base's qemu sha256 0123456789abcdef; now qemu sha256 ffff"),
        ({"code": "0123456789abcdef"}, "; now 0123456789abcdef"),
    ],
)  # fmt: skip
def test_steps_of_another_instrument_are_not_mixed(
    project: Project, other: dict[str, str], said: str
) -> None:
    """Between an interruption and its continuation QEMU or espbench was replaced: every cost after it is another."""
    project.grow(step_at(11))
    project.patience = 5
    assert project.bisect().returncode == 130
    project.patience = 1000
    before = project.world
    project.world = replace(before, qemu=other.get("qemu", before.qemu), code=other.get("code", before.code))
    done = project.bisect()
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "to begin it anew" in done.stderr
    project.world = before
    assert "commit 11 costs +212.000" in project.bisect().stdout


def test_a_commit_that_espbench_run_refuses_is_gone_around(project: Project) -> None:
    """It builds, but its kernel lacks what a gateway needs."""
    costs = step_at(11)
    costs[8] = 1.0
    project.grow(costs)
    project.code_at = {"1.0": 2}
    done = project.bisect()
    assert done.returncode == 0, done.stderr
    assert "left out: espbench run refused it with exit code 2" in done.stderr
    assert "commit 11 costs +212.000" in done.stdout


@pytest.mark.parametrize("code", [1, 4, 130])
def test_any_other_end_of_a_run_ends_the_bisection(project: Project, code: int) -> None:
    """The commit is not to blame, so it is measured when the bisection goes on."""
    costs = step_at(11)
    costs[8] = 12001.0
    project.grow(costs)
    project.code_at = {"12001.0": code}
    assert project.bisect().returncode == code
    project.code_at = {}
    done = project.bisect()
    assert "left out" not in done.stderr
    assert "commit 11 costs +212.000" in done.stdout


def test_a_bad_commit_that_was_not_measured_is_told_with_the_cause(project: Project) -> None:
    """Nobody knows what it costs."""
    project.grow(step_at(11))
    why = [Reason.of_text("the gateway died")]
    project.spoil = lambda finding: (
        finding.model_copy(update={"status": "INVALID", "reasons": why})
        if "12212" in project.built.read_text()
        else finding
    )
    done = project.bisect()
    assert done.returncode == 3
    assert "not judged: 0001-plain-64-one-way: INVALID: the gateway died" in done.stderr
    assert "costs no more" not in done.stderr
    assert "no single commit" not in done.stderr


@pytest.mark.parametrize("is_named", [True, False])
def test_a_command_that_installs_nothing_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    project.grow(step_at(11))
    project.built.write_text("12000.0")
    if is_named:
        installs_where_the_plan_looks(project, monkeypatch)
    done = project.bisect("--build", "true")
    assert done.returncode == 2, done.stdout
    assert "--build true: it installed nothing" in done.stderr
    assert (str(project.built) if is_named else "names neither a prefix nor a kernel") in done.stderr
    assert not list((project.folder / "runs").rglob("baseline.json"))
    assert not list((project.folder / "runs").rglob("bisect.json"))


def test_a_bad_commit_that_is_not_installed_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The good one still stands there, and would be measured twice."""
    project.grow(step_at(11))
    installs_where_the_plan_looks(project, monkeypatch)
    done = project.bisect("--build", f"test $(cat number) = 16 || ({SLEEP}{project.build})")
    assert done.returncode == 2, done.stdout
    assert re.search(r"no file written there by the build of \w+ commit 16", done.stderr)


def test_a_commit_at_which_the_command_writes_nothing_is_left_out(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build of the step before it still stands there, here that of the bad commit."""
    project.grow(step_at(11))
    installs_where_the_plan_looks(project, monkeypatch)
    done = project.bisect("--build", f"test $(cat number) = 8 || ({SLEEP}{project.build})")
    assert done.returncode == 0, done.stderr
    assert "left out: --build: the command wrote nothing where the plan looks" in done.stderr
    assert "commit 11 costs +212.000" in done.stdout


def test_in_real_time_it_is_refused(project: Project) -> None:
    project.grow(step_at(11))
    (project.folder / "plan.yaml").write_text(PLAN.replace("mpc8548e", "uml"))
    done = project.bisect()
    assert done.returncode == 2
    assert "expected a plan in virtual time" in done.stderr


@pytest.mark.parametrize(("revision", "code"), [("main~3", 5), ("main~1", 0)])
def test_a_check_against_a_revision(project: Project, revision: str, code: int) -> None:
    """The tree as it stands beside the revision: what is not committed is measured."""
    project.grow(step_at(15))
    (project.tree / "cost").write_text("12212.0")
    done = in_process(
        "check", project.folder / "plan.yaml", "--against", revision, "--tree", project.tree, "--build",
        f"{project.build} && cp cost {project.folder}/kernel", "--out", project.folder / "runs",
    )  # fmt: skip
    assert len(project.measured) == 3, done.stderr
    # The plan names neither a prefix nor a kernel: of a base that is the same nobody knows whether it was built.
    assert done.returncode == (code or 3)
    assert "the command wrote nothing where the plan looks: it names neither" in done.stdout
    assert ("+212.000" in done.stdout) == (code == 5)


@pytest.mark.parametrize(("patience", "told"), [(0, "commit 13"), (2, "the tree as it stands"), (1000, "")])
def test_a_check_says_which_revision_it_left_behind(project: Project, patience: int, told: str) -> None:
    """Interrupted while the base is measured; its own build fails; and not a word after a whole check."""
    project.grow(step_at(15))
    project.patience = patience
    if told.startswith("the tree"):
        (project.tree / "cost").write_text("no number")
    done = in_process(
        "check", project.folder / "plan.yaml", "--against", "main~3", "--tree", project.tree, "--build", project.build,
        "--out", project.folder / "runs",
    )  # fmt: skip
    assert ("built now: " in done.stderr) == bool(told)
    assert f"{told}, and not the tree's own build" in done.stderr or not told
