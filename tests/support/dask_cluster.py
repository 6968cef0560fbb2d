# SPDX-License-Identifier: Apache-2.0
"""Starts the scheduler of a Dask cluster on this machine, with certificates, and programs beside it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from support.virtual.side_by_side import PATIENCE_S

_SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"


class Programs:
    """The programs of a cluster. env: the environment of all of them, and of clients."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.env = env | {"DASK_TEMPORARY_DIRECTORY": str(folder / "scratch")}
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, command: list[str], **env: str) -> subprocess.Popen[bytes]:
        """Start a program that ends with the cluster; env: additional environment variables of it."""
        with (self.folder / "cluster.log").open("ab") as log:
            process = subprocess.Popen(command, env=self.env | env, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    @property
    def log(self) -> str:
        """The output of the cluster's processes."""
        return (self.folder / "cluster.log").read_text()

    @property
    def registered(self) -> int:
        """The number of workers that have registered with the scheduler so far."""
        return self.log.count("Registered to:")

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true; AssertionError with the log if it takes too long."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.log
            time.sleep(0.1)

    def end(self) -> None:
        """Kill all processes of the cluster."""
        for process in reversed(self._processes):
            process.kill()
            process.wait()


class DaskCluster(Programs):
    """A scheduler, and the programs that are started for it."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, env | certificates(folder))
        port = str(free_port())
        self.address = f"tls://127.0.0.1:{port}"
        self.scheduler = self.start(
            [sys.executable, "-c", _SCHEDULER, "--protocol", "tls", "--no-dashboard", "--port", port]
        )


def free_port() -> int:
    """Return the number of a TCP port that nobody uses on 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


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
