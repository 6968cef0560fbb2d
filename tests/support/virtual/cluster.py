# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster on this machine, with certificates; the boxes of its workers are the truth DUT."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from campaign import truth
from campaign.observed import TRUTH, Observed, environment

from support.virtual.side_by_side import DEEP, PATIENCE_S

WORKERS = 3
_SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
_WORKER = """
if __name__ == "__main__":
    from campaign import truth_run
    truth_run.put_in_place()
    from distributed.cli.dask_worker import main
    main()
"""


class Cluster:
    """A scheduler and three workers, and what whoever speaks to them has in the environment.

    worker_env: what its workers have in the environment beside that.
    """

    def __init__(self, folder: Path, worker_env: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._worker_env = worker_env
        self.env = environment(**truth.environment(known=DEEP)) | certificates(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"tls://127.0.0.1:{free.getsockname()[1]}"
        self.scheduler = self._start(_SCHEDULER, "--protocol", "tls", "--no-dashboard", "--port", self._port)
        self.workers = [self.worker() for _ in range(WORKERS)]

    @property
    def _port(self) -> str:
        return self.address.rpartition(":")[2]

    def worker(self, **env: str) -> subprocess.Popen[bytes]:
        """One more; without a nanny that would start it again."""
        return self._start(
            _WORKER, self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory",
            str(self.folder / "scratch"), **self._worker_env | env,
        )  # fmt: skip

    def _start(self, program: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        with (self.folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", program, *arguments], env=self.env | env, stdout=log, stderr=log
            )

    @property
    def log(self) -> str:
        """The text that its processes have written."""
        return (self.folder / "cluster.log").read_text()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for something that it does."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.1)

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def run(self, folder: Path, *options: str | Path) -> Observed:
        """`espbench run` on it, once its workers are there."""
        folder.mkdir(exist_ok=True)
        return Observed(folder, *options, "--cluster", self.address, program=TRUTH, env=self.env)


@contextmanager
def running(folder: Path, **worker_env: str) -> Iterator[Cluster]:
    found = Cluster(folder, worker_env)
    try:
        found.until(lambda: found.log.count("Registered to:") >= WORKERS)
        yield found
    finally:
        found.end()


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
