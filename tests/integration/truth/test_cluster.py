# SPDX-License-Identifier: Apache-2.0
"""`espbench run --cluster tls://…`: a Dask cluster on this machine, with certificates; the files are those of one job.

The boxes are the truth DUT, in the cluster's workers too.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from campaign import truth
from campaign.observed import TRUTH, Observed, environment

from espbench.this_machine.processes import descendants
from support.virtual import side_by_side
from support.virtual.side_by_side import DEEP, content, ended, files, nothing_left, started, until

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.slow,
    pytest.mark.needs("distributed", "generator", "gcc"),
]

_SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
_WORKER = """
if __name__ == "__main__":
    from campaign import truth_run
    truth_run.put_in_place()
    from distributed.cli.dask_worker import main
    main()
"""


class Cluster:
    """A scheduler and its workers, and what whoever speaks to them has in the environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = environment(**truth.environment(known=DEEP)) | certificates(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"tls://127.0.0.1:{free.getsockname()[1]}"
        self.scheduler = self._start(_SCHEDULER, "--protocol", "tls", "--no-dashboard", "--port", self._port)
        self.workers = [self.worker() for _ in range(2)]

    @property
    def _port(self) -> str:
        return self.address.rpartition(":")[2]

    def worker(self) -> subprocess.Popen[bytes]:
        """One more; without a nanny that would start it again."""
        return self._start(
            _WORKER, self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory",
            str(self.folder / "scratch"),
        )  # fmt: skip

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", program, *arguments], env=self.env, stdout=log, stderr=log
            )

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def run(self, folder: Path, *options: str | Path) -> Observed:
        """`espbench run` on it, once its workers are there."""
        folder.mkdir(exist_ok=True)
        return Observed(folder, *options, "--cluster", self.address, program=TRUTH, env=self.env)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path) as made:
        yield made


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    made = Cluster(folder)
    try:
        log = folder / "cluster.log"
        deadline = time.monotonic() + 600
        while log.read_text().count("Registered to:") < 2:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield made
    finally:
        made.end()


def certificates(folder: Path) -> dict[str, str]:
    """One authority and one certificate for all ends, as the environment gives them to Dask."""
    ca, key, cert = (folder / name for name in ("ca.pem", "key.pem", "cert.pem"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=espbench",
         "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    ca.write_bytes(cert.read_bytes())
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    ends = {
        f"{tls}{end}__{what}": str(file)
        for end in ("SCHEDULER", "WORKER", "CLIENT")
        for what, file in (("KEY", key), ("CERT", cert))
    }
    return ends | {
        f"{tls}CA_FILE": str(ca),
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
    }


@pytest.fixture(scope="module")
def one_job(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the result of one case after the other."""
    return side_by_side.one_job(tmp_path_factory.mktemp("one"))


def test_a_cluster_leaves_the_files_of_one_job(
    one_job: dict[str, Any], cluster: Cluster, tmp_path: Path
) -> None:
    """Nothing is left on its machines when the run is over."""
    folder = tmp_path / "run"
    file = truth.written(folder, content())
    with cluster.run(folder, file, "--out", folder / "runs") as run:
        assert files(ended(run)) == one_job
    deadline = time.monotonic() + 600
    while descendants_of(cluster):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_killed_worker_is_replaced_by_another(
    one_job: dict[str, Any], cluster: Cluster, tmp_path: Path
) -> None:
    """Its case is begun again elsewhere; nothing of it is left on its machine."""
    folder = tmp_path / "run"
    file = truth.written(folder, content())
    with cluster.run(folder, file, "--out", folder / "runs") as run:
        until(run, lambda: run.lines() >= 3)
        left = {pid: run_id for pid in descendants_of(cluster) if (run_id := run_id_of(pid))}
        assert left
        cluster.workers[0].kill()
        cluster.workers[0].wait()
        cluster.workers[0] = cluster.worker()
        assert files(ended(run)) == one_job
        assert "begun again" in run.said
    nothing_left(run, left)


def test_without_its_scheduler_a_run_ends_and_goes_on_here(
    one_job: dict[str, Any], cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    file = truth.written(folder, content())
    with cluster.run(folder, file, "--out", folder / "runs") as run:
        until(run, lambda: run.lines() >= 3)
        cluster.scheduler.kill()
        assert run.ended() == 1, run.said
        assert f"--cluster {cluster.address}: its scheduler is gone" in run.said
        assert run.directory is not None
    with started(folder, "--resume", run.directory, "--jobs", "2") as again:
        assert files(ended(again)) == one_job


def descendants_of(cluster: Cluster) -> list[int]:
    return [pid for worker in cluster.workers for pid in descendants(worker.pid)]


def run_id_of(pid: int) -> str:
    """Return the run id that a worker process got as argument; empty for another process, or an ended one."""
    words: list[bytes] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return words[-2].decode() if b"campaign.truth_worker" in words else ""
