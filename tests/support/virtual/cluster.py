# SPDX-License-Identifier: Apache-2.0
"""Starts a Dask cluster on this machine, with certificates; its workers measure the truth DUT."""

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
    """A scheduler and three workers. env: the environment of their clients and of themselves.

    worker_env: additional environment variables of the workers.
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
        """Start one more worker, without a nanny, which would start it again after its end."""
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
        """The output of the cluster's processes."""
        return (self.folder / "cluster.log").read_text()

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true; AssertionError with the log if it takes too long."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.1)

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def run(self, folder: Path, *options: str | Path) -> Observed:
        """Start `espbench run` on this cluster."""
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
    """Make one certificate authority and one certificate for all ends; return Dask's environment variables for them."""
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
