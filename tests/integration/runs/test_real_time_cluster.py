# SPDX-License-Identifier: Apache-2.0
"""`espbench run --cluster` in real time: shares on machines of a Dask cluster, with certificates, on namespaces.

The machines are this one, with a machine-id each; since it has one lock, their shares are measured in turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from campaign.observed import Observed

from espbench.measure import machine
from espbench.this_machine.processes import descendants
from support.command_line import in_process
from support.gateways.bench_cluster import BenchCluster, running
from support.plans import PINNED, pair_plan, quick, write_plan
from support.virtual.side_by_side import PATIENCE_S, until

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.needs("distributed", "generator")]

# The highest load is far below what namespaces forward: no figure depends on how busy this machine is.
SEARCH = quick(
    trial="300ms", final_trial="500ms", minimum="500fps", maximum="2000fps", loss_goals=["50%"], retries=2
)
TWO_SHARES = {"directions": ["one-way", "both-ways"]}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BenchCluster]:
    with running(tmp_path / "cluster") as found:
        yield found


def plan(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    made = pair_plan("netns", throughput=SEARCH)
    return write_plan(folder, made | PINNED | TWO_SHARES)


def manifest(run: Observed) -> dict[str, Any]:
    assert run.directory is not None
    read: dict[str, Any] = json.loads((run.directory / "manifest.json").read_text())
    return read


def machines_of_shares(run: Observed) -> dict[str, set[str]]:
    """Return the machines of the cases of each direction, which is a share."""
    read = manifest(run)
    machines: dict[str, set[str]] = {}
    for entry in read["cases"]:
        machines.setdefault(entry["direction"], set()).add(read["machine_of_case"][entry["case"]])
    return machines


def test_two_machines_measure_a_share_each_and_say_so(cluster: BenchCluster, tmp_path: Path) -> None:
    """All cases have a result, in the plan's order; nothing is left on the machines, and no machine-id is told."""
    workers = [cluster.bench("1"), cluster.bench("2")]
    folder = tmp_path / "run"
    with cluster.run(folder, plan(folder), "--out", folder / "runs") as run:
        assert run.ended(PATIENCE_S) in (0, 3), run.said
    shares = machines_of_shares(run)
    assert [len(machines) for machines in shares.values()] == [1, 1]
    assert len(set.union(*shares.values())) == 2
    read = manifest(run)
    assert {c["machine"] for c in read["calibration"]} == set(read["machines"])
    assert not any(digit * 32 in json.dumps(read) for digit in "12")
    assert run.directory is not None
    rows = (run.directory / "results.csv").read_text().splitlines()[1:]
    assert [row.partition(",")[0] for row in rows] == [entry["case"] for entry in read["cases"]]
    order = list(dict.fromkeys(json.loads(line)["case"] for line in run.log.splitlines()))
    assert order == [entry["case"] for entry in read["cases"]]
    verified = in_process("verify", run.directory)  # with each machine's own ceilings
    assert verified.returncode == 0, verified.stdout + verified.stderr
    cluster.until(lambda: not any(descendants(worker.pid) for worker in workers))


def test_a_machine_that_dies_leaves_its_share_to_another(cluster: BenchCluster, tmp_path: Path) -> None:
    """The share begins anew there; its trials so far are kept beside the run."""
    by_digit = {digit: cluster.bench(digit) for digit in "12"}
    folder = tmp_path / "run"
    with cluster.run(folder, plan(folder), "--out", folder / "runs", gone_after_s=10.0) as run:
        until(run, lambda: run.lines() >= 1)
        (first,) = {json.loads(line)["case"] for line in run.log.splitlines()[:1]}
        measuring = manifest(run)["machine_of_case"][first]
        # The one that has a process that measures now: the other waits for the machine's lock.
        dying = next(p for p in by_digit.values() if machine_that_sees(p.pid) == measuring)
        dying.kill()
        dying.wait()
        assert run.ended(PATIENCE_S) in (0, 3), run.said
    assert f"its machine, {measuring}, is gone; begun anew on" in run.said
    assert len({machine for machines in machines_of_shares(run).values() for machine in machines}) == 1
    assert run.directory is not None
    assert (run.directory / "trials.left.jsonl").exists()


def machine_that_sees(pid: int) -> str:
    """Return the name that espbench gives the machine of a process, from the machine-id that it sees."""
    machine_id = Path(f"/proc/{pid}/root/etc/machine-id").read_text().strip()
    return machine.fingerprint_of(machine_id)


def test_machines_that_cannot_measure_get_no_share(cluster: BenchCluster, tmp_path: Path) -> None:
    """Without a machine of its own a cluster is refused; one that lacks a program is named, and gets nothing."""
    folder = tmp_path / "run"
    cluster.worker("3")
    with cluster.run(folder, plan(folder), "--out", folder / "runs") as run:
        assert run.ended(PATIENCE_S) == 4
    assert "--resources bench=1" in run.said
    assert not (folder / "runs").exists()
    bare = tmp_path / "bin"
    bare.mkdir()
    cluster.bench("1", path=str(bare))
    with cluster.run(folder, plan(folder), "--out", folder / "runs") as run:
        assert run.ended(PATIENCE_S) == 4, run.said
        assert "cannot measure this plan, and gets no more of it" in run.said
    cluster.bench("2")
    assert run.directory is not None
    with cluster.run(folder, "--resume", run.directory) as resumed:
        assert resumed.ended(PATIENCE_S) in (0, 3), resumed.said
    done = in_process("run", "--resume", run.directory)
    assert done.returncode == 2
    assert "add --cluster" in done.stderr
