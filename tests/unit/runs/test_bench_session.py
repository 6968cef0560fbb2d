# SPDX-License-Identifier: Apache-2.0
"""The driver of a run in real time on several machines: what is compared is of one, whatever happens to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.plan import ResolvedPlan, load_plan
from espbench.plan.resolved.arms import execution_order
from espbench.results import RunDirectory
from espbench.runs.workers.loop import MAXIMUM_RETRIES
from espbench.runs.workers.messages import ShareTask
from espbench.runs.workers.process import WorkerLost
from support.plans import pair_plan, write_plan
from support.simulated.benches import SimulatedBenches, begun, bench, session
from support.simulated.workers import Silent

SEARCH = {"trial": "1s", "final_trial": "2s", "resolution": "5%", "maximum": "100000fps", "minimum": "100fps"}
PLAN = pair_plan(
    "netns",
    throughput=SEARCH,
    stacks=["plain", "null", "xfrm"],
    suites=["aes128gcm16"],
    frame_sizes=[64, 512, 1424],
) | {"repeat": 3, "compare": {"by": "stack", "seed": 5, "at": False}}


@pytest.fixture(scope="module")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> ResolvedPlan:
    return load_plan(write_plan(tmp_path_factory.mktemp("plan"), PLAN))


def machines_of(directory: RunDirectory) -> dict[int, set[str]]:
    """Return by repeat, which is a share of this plan, the machines that measured its cases."""
    manifest = RunDirectory.open(directory.path).manifest
    machines: dict[int, set[str]] = {}
    for entry in manifest.cases:
        machines.setdefault(entry.repeat, set()).add(manifest.machine_of_case[entry.case])
    return machines


def results_of(directory: RunDirectory) -> list[tuple[str, float | None]]:
    return [(outcome.case, outcome.throughput_fps) for outcome in directory.outcomes()]


@pytest.fixture(scope="module")
def one_machine(
    resolved: ResolvedPlan, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, float | None]]:
    directory = begun(resolved, tmp_path_factory.mktemp("one"))
    session(resolved, directory, SimulatedBenches("a")).run()
    directory.close()
    return results_of(directory)


def test_each_share_is_of_one_machine_and_files_are_in_the_order_of_one(
    one_machine: list[tuple[str, float | None]], resolved: ResolvedPlan, tmp_path: Path
) -> None:
    """Results stand in the plan's order, trials in the order of measuring of the whole plan."""
    directory, benches = begun(resolved, tmp_path), SimulatedBenches("a", "b", "c")
    returned = session(resolved, directory, benches).run()
    directory.close()
    machines = machines_of(directory)
    assert all(len(of_share) == 1 for of_share in machines.values())
    assert len(benches.tasks) == 3
    assert benches.closed
    assert results_of(directory) == one_machine
    assert [result.case for result in returned] == [case for case, _ in one_machine]
    manifest = RunDirectory.open(directory.path).manifest
    assert manifest.machines is not None
    assert set(manifest.machines) == set.union(*machines.values())
    for entry in manifest.cases:
        machine = manifest.machine_of_case[entry.case]
        context = manifest.contexts[manifest.context_of_case[entry.case]]
        assert context["kernel"] == f"of {machine}"
    assert {c.machine for c in manifest.calibration} == set(manifest.machines)
    order = list(dict.fromkeys(trial.case for trial in directory.trials()))
    cases = benches_cases(benches)
    assert order == [case.id for case in execution_order(cases, resolved)]
    several = len(manifest.machines) > 1
    assert any("Figures of different machines" in warning for warning in manifest.warnings) == several


def benches_cases(benches: SimulatedBenches) -> list[Any]:
    import pickle  # noqa: PLC0415

    return list(pickle.loads(benches.tasks[0][1].run).cases)


def test_arms_take_turns_as_in_one_run(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """Shares do not each begin the seed anew: then every repeat would have the same order."""
    directory, benches = begun(resolved, tmp_path), SimulatedBenches("a", "b")
    session(resolved, directory, benches).run()
    directory.close()
    whole = [case.id for case in execution_order(benches_cases(benches), resolved)]
    assert len(benches.measured) == 3
    for cases_of_share in benches.measured.values():
        assert cases_of_share == [case for case in whole if case in cases_of_share]
    entries = {entry.case: entry for entry in directory.manifest.cases}
    orders = [
        [(entries[case].stack, entries[case].frame_size) for case in cases_of_share]
        for cases_of_share in benches.measured.values()
    ]
    assert not orders[0] == orders[1] == orders[2]


def test_a_lost_worker_goes_on_where_it_was(
    one_machine: list[tuple[str, float | None]], resolved: ResolvedPlan, tmp_path: Path
) -> None:
    """The machine is still there: it keeps its trials."""

    def befalls(machine: str, task: ShareTask, made: int) -> None:
        if task.attempt == 1 and made == 5:
            raise WorkerLost(f"{task.name}: its worker ended")

    directory, benches = begun(resolved, tmp_path), SimulatedBenches("a", befalls=befalls)
    session(resolved, directory, benches).run()
    directory.close()
    assert results_of(directory) == one_machine
    again = [task for _, task in benches.tasks if task.attempt == 2]
    assert len(again) == 3
    assert all(sum(map(len, task.trials.values())) == 5 for task in again)
    assert all(task.manifest.calibration for task in again)
    assert not list(directory.path.glob("*.left*"))


def test_a_machine_that_is_gone_leaves_its_share_to_be_begun_anew(
    one_machine: list[tuple[str, float | None]], resolved: ResolvedPlan, tmp_path: Path
) -> None:
    """Its trials are kept beside, and none of them is in the run."""
    benches: SimulatedBenches

    def befalls(machine: str, task: ShareTask, made: int) -> None:
        if machine == "b" and made == 5:
            benches.machines.pop("b", None)
            raise WorkerLost(f"{task.name}: its machine was lost")

    benches = SimulatedBenches("a", "b", befalls=befalls)
    observer = Silent()
    directory = begun(resolved, tmp_path)
    session(resolved, directory, benches, observer).run()
    directory.close()
    assert results_of(directory) == one_machine
    manifest = RunDirectory.open(directory.path).manifest
    assert set(manifest.machine_of_case.values()) == {"a"}
    assert any("its machine, b, is gone; begun anew on host-a" in note for note in observer.notes)
    (copy,) = directory.path.glob("trials.left.jsonl")
    assert copy.read_text().count("\n") >= 5
    assert {context["kernel"] for context in manifest.contexts.values()} == {"of a"}


def test_a_resumed_run_goes_on_on_the_machines_that_it_has(
    one_machine: list[tuple[str, float | None]], resolved: ResolvedPlan, tmp_path: Path
) -> None:
    """Complete shares are not given out again; a begun one goes to its machine, even if another is asked first."""
    interrupt = {"at": 5}

    def befalls(machine: str, task: ShareTask, made: int) -> None:
        if "repeat 3" in task.share and made == interrupt["at"]:
            raise KeyboardInterrupt

    directory = begun(resolved, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        session(resolved, directory, SimulatedBenches("a", befalls=befalls)).run()
    begun_shares = {case[:4] for case in directory.trial_counts()}
    directory.close()
    assert 0 < len(begun_shares) < 27
    interrupt["at"] = -1
    again = SimulatedBenches("z", "a")
    directory = RunDirectory.open(directory.path)
    session(resolved, directory, again).run()
    directory.close()
    assert results_of(directory) == one_machine
    assert [(machine, task.share) for machine, task in again.tasks] == [
        ("a", "netns, one-way, IPv4, repeat 3")
    ]


def test_a_machine_that_lacks_something_gets_no_more(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """Others measure; where all lack it, the run ends with what the first lacks."""

    def befalls(machine: str, task: ShareTask, made: int) -> None:
        if machine == "b":
            raise MachineLacks("no ip", "apt install iproute2")

    observer = Silent()
    directory, benches = begun(resolved, tmp_path), SimulatedBenches("b", "a", befalls=befalls)
    session(resolved, directory, benches, observer).run()
    directory.close()
    assert set(machines_of(directory)[1]) == {"a"}
    assert any("host-b cannot measure this plan" in note and "no ip" in note for note in observer.notes)
    directory = begun(resolved, tmp_path / "none")
    with pytest.raises(MachineLacks, match="no ip"):
        session(resolved, directory, SimulatedBenches("b", befalls=befalls)).run()
    directory.close()


def test_a_machine_that_is_busy_with_another_run_is_named(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """The share waits there, for hours perhaps: the run must not be silent about that."""
    observer, benches = Silent(), SimulatedBenches("a", "b")
    benches.busy["b"] = "netns, both-ways, IPv4"
    directory = begun(resolved, tmp_path)
    session(resolved, directory, benches, observer).run()
    directory.close()
    waits = [note for note in observer.notes if note.startswith("waits: ")]
    assert waits
    assert all("host-b still measures netns, both-ways, IPv4 for another run" in note for note in waits)


def test_a_run_ends_where_no_machine_is_left_or_a_share_is_lost_again_and_again(
    resolved: ResolvedPlan, tmp_path: Path
) -> None:
    directory = begun(resolved, tmp_path)
    with pytest.raises(EspbenchError, match="no machine is left"):
        session(resolved, directory, SimulatedBenches()).run()
    directory.close()

    def befalls(machine: str, task: ShareTask, made: int) -> None:
        if "repeat 2" in task.share:
            raise WorkerLost("its worker ended by SIGKILL")

    directory, benches = begun(resolved, tmp_path / "lost"), SimulatedBenches("a", befalls=befalls)
    with pytest.raises(EspbenchError, match=rf"ended by SIGKILL, {MAXIMUM_RETRIES + 1} times"):
        session(resolved, directory, benches).run()
    directory.close()
    assert len(directory.outcomes()) == 18


def test_a_machine_that_changed_measures_no_more_of_the_run(resolved: ResolvedPlan, tmp_path: Path) -> None:
    """Another kernel is another machine."""

    def befalls(machine: str, task: ShareTask, made: int) -> None:
        if made == 5:
            raise KeyboardInterrupt

    directory = begun(resolved, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        session(resolved, directory, SimulatedBenches("a", befalls=befalls)).run()
    again = SimulatedBenches("a")
    again.machines["a"] = bench("a", kernel="Linux 6.12")
    with pytest.raises(UsageError, match=r"expected: kernel: Linux 6\.1\n +got: kernel: Linux 6\.12"):
        session(resolved, directory, again).run()
    directory.close()
