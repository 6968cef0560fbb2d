# SPDX-License-Identifier: Apache-2.0
"""`espbench run --cluster tls://…`: a Dask cluster on this machine, with certificates; the files are those of one job.

The boxes are the truth DUT, in the cluster's workers too.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from campaign import ROOT, truth

from espbench.this_machine.processes import descendants
from support.virtual import side_by_side
from support.virtual.cluster import WORKERS, Cluster, running
from support.virtual.side_by_side import (
    PATIENCE_S,
    cases_begun,
    content,
    ended,
    files,
    nothing_left,
    until,
)

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("distributed", "generator", "gcc")]

HARNESS, BENCHMARKS = ROOT / "harness", ROOT / "benchmarks"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path / "cluster") as found:
        yield found


@pytest.fixture(scope="module")
def one_job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the result of one case after the other."""
    return side_by_side.one_job(tmp_path_factory)


def test_a_cluster_leaves_the_files_of_one_job(
    one_job: dict[str, Any], cluster: Cluster, tmp_path: Path
) -> None:
    """Nothing is left on its machines when the run is over, and nobody without the certificate was heard."""
    folder = tmp_path / "run"
    file = truth.written(folder, content())
    with cluster.run(folder, file, "--out", folder / "runs") as run:
        until(run, lambda: len(cases_begun(run)) >= WORKERS)
        assert heard(cluster, with_certificate=True)
        assert not heard(cluster, with_certificate=False)
        assert files(ended(run)) == one_job
    cluster.until(lambda: not descendants_of(cluster))


@pytest.mark.slow
def test_killed_workers_and_a_killed_scheduler_cost_nothing(
    one_job: dict[str, Any], cluster: Cluster, tmp_path: Path
) -> None:
    """Cases of three killed workers go on elsewhere; without its scheduler a run ends, and is resumed on another
    cluster.
    """
    folder = tmp_path / "run"
    file = truth.written(folder, content())
    with cluster.run(folder, file, "--out", folder / "runs") as run:
        until(run, lambda: run.lines() >= 3)
        left = {pid: run_id for pid in descendants_of(cluster) if (run_id := run_id_of(pid))}
        assert left
        for worker in cluster.workers:
            worker.kill()
            worker.wait()
        cluster.workers = [cluster.worker() for _ in range(2)]
        until(run, lambda: "begun again" in run.said)
        begun = run.lines()
        until(run, lambda: run.lines() > begun)
        cluster.scheduler.kill()
        assert run.ended() == 1, run.said
        assert re.search(r"its machine was lost: the worker at tls://\S+ ended; begun again", run.said)
        assert f"--cluster {cluster.address}: its scheduler is gone" in run.said
        assert run.directory is not None
        before = run.log
    nothing_left(run, left)
    with running(tmp_path / "other") as other, other.run(folder, "--resume", run.directory) as resumed:
        assert files(ended(resumed)) == one_job
    assert set(before.splitlines()) <= set(resumed.log.splitlines())


@pytest.mark.slow
def test_faults_are_named_with_their_machine(tmp_path: Path) -> None:
    """A worker process that is killed, and a fault of espbench's own."""
    folder = tmp_path / "run"
    file = truth.written(folder, content())
    host = socket.gethostname()
    with running(tmp_path / "cluster") as cluster, cluster.run(folder, file, "--out", folder / "runs") as run:
        until(run, lambda: run.lines() >= 1)
        pid = next(pid for pid in descendants_of(cluster) if run_id_of(pid))
        os.kill(pid, signal.SIGKILL)
        until(
            run, lambda: f"its worker, process {pid}, ended by SIGKILL (on {host}); begun again" in run.said
        )
    with (
        running(tmp_path / "broken", TRUTH_DUT="[]") as cluster,
        cluster.run(folder, file, "--out", folder / "runs") as run,
    ):
        assert run.ended() == 1
        assert re.search(rf"a fault of espbench's own:\non {re.escape(host)}:\nTraceback", run.said)


@pytest.mark.slow
def test_a_worker_with_other_code_does_no_task(
    one_job: dict[str, Any], cluster: Cluster, tmp_path: Path
) -> None:
    """One that comes later says so and ends; where one is there at the start, the run is refused."""
    path = os.pathsep.join([str(other_clone(tmp_path / "other")), str(BENCHMARKS)])
    folder = tmp_path / "run"
    file = truth.written(folder, content())
    with cluster.run(folder, file, "--out", folder / "runs") as run:
        until(run, lambda: run.lines() >= 1)
        for worker in cluster.workers:  # the run does not end before the stranger has come
            worker.send_signal(signal.SIGSTOP)
        stranger = cluster.worker(PYTHONPATH=path)
        try:
            assert stranger.wait(PATIENCE_S) == 0
        finally:
            for worker in cluster.workers:
                worker.send_signal(signal.SIGCONT)
        assert re.search(r"Unequal: the worker at \S+ on \S+\n +expected: espbench", cluster.log)
        assert files(ended(run)) == one_job
    registered = cluster.registered
    cluster.workers.append(cluster.worker(PYTHONPATH=path))
    cluster.until(lambda: cluster.registered > registered)
    with cluster.run(tmp_path / "refused", file, "--out", folder / "runs") as run:
        assert run.ended() == 2, run.said
        assert re.search(
            r"the worker at \S+\n +expected: espbench \S+, code \w+, traffic generator \w+\n +got: espbench",
            run.said,
        )


def other_clone(clone: Path) -> Path:
    """Make a clone whose espbench has one module more than ours; return its harness."""
    clone.mkdir()
    for path in ROOT.iterdir():
        if path != HARNESS and not path.name.startswith("."):
            (clone / path.name).symlink_to(path)
    shutil.copytree(HARNESS, clone / HARNESS.name, ignore=shutil.ignore_patterns("__pycache__"))
    (clone / HARNESS.name / "espbench" / "more.py").touch()
    return clone / HARNESS.name


def heard(cluster: Cluster, *, with_certificate: bool) -> bool:
    """Return whether the scheduler answers one who knows its authority, and has its certificate or none."""
    context = ssl.create_default_context(cafile=str(cluster.folder / "ca.pem"))
    context.check_hostname = False
    if with_certificate:
        context.load_cert_chain(cluster.folder / "cert.pem", cluster.folder / "key.pem")
    host, port = cluster.address.removeprefix("tls://").split(":")
    with (
        suppress(ssl.SSLError, ConnectionResetError),
        socket.create_connection((host, int(port)), PATIENCE_S) as plain,
        context.wrap_socket(plain) as connection,
    ):
        return connection.recv(1) != b""
    return False


def descendants_of(cluster: Cluster) -> list[int]:
    return [pid for worker in cluster.workers for pid in descendants(worker.pid)]


def run_id_of(pid: int) -> str:
    """Return the run id that a worker process got as argument; empty for another process, or an ended one."""
    words: list[bytes] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return words[-2].decode() if b"campaign.truth_worker" in words else ""
