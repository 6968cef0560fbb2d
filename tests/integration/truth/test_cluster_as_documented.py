# SPDX-License-Identifier: Apache-2.0
"""The certificates, the settings and the commands of docs/many-machines.md make a cluster that only its users reach.

Its workers, with their nannies, measure a plan as one job does.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from campaign import ROOT, truth
from campaign.observed import TRUTH, Observed, environment

from espbench.this_machine.processes import descendants, parent
from support.dask_cluster import Programs, free_port
from support.virtual import side_by_side
from support.virtual.side_by_side import PATIENCE_S, ended, files, until

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("distributed")]

TEXT = (ROOT / "docs/many-machines.md").read_text()
PLACE = "/etc/espbench"
PRELOADED = "from campaign import truth_run; truth_run.put_in_place()"
WORKERS = 2
_PAGES = ("/info/main/workers.html", "/metrics", "/json/counts.json", "/status")


def blocks(beginning: str) -> list[str]:
    """Return the examples that begin with this."""
    return re.findall(rf"```(?:yaml)?\n({re.escape(beginning)}.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the certificates, in the place of /etc/espbench, and Dask's file."""
    (commands,) = blocks("openssl ")
    subprocess.run(["sh", "-e", "-c", commands], cwd=tmp_path, check=True, capture_output=True)
    (settings,) = blocks("distributed:\n")
    assert PLACE in settings
    (tmp_path / "espbench.yaml").write_text(settings.replace(PLACE, str(tmp_path)))
    return tmp_path


def test_the_certificates_hold_for_strict_readers(folder: Path) -> None:
    """Python 3.13 and later are strict."""
    command = ["openssl", "verify", "-x509_strict", "-CAfile", "ca.pem", "cert.pem"]
    assert (
        subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
        == "cert.pem: OK\n"
    )


def test_a_scheduler_shows_its_work_to_nobody(folder: Path) -> None:
    """It answers with TLS alone, and its web server has no page; without the settings, it has some."""
    assert pages(folder) == set()
    settings = yaml.safe_load((folder / "espbench.yaml").read_text())
    del settings["distributed"]["scheduler"]["http"]
    (folder / "espbench.yaml").write_text(yaml.safe_dump(settings))
    assert "/info/main/workers.html" in pages(folder)


@pytest.mark.needs("generator", "gcc")
def test_a_run_on_this_cluster_leaves_the_files_of_one_job(folder: Path, tmp_path: Path) -> None:
    """Also if a worker is killed: its nanny starts another one, and the run goes on."""
    trials = {"trial": "5s", "final_trial": "10s"}  # so long that the worker is killed while it measures
    file = truth.written(tmp_path / "plan", truth.plan(throughput=trials))
    with side_by_side.started(tmp_path / "one", file, "--out", tmp_path / "one/runs", "--jobs", "1") as run:
        one_job = files(ended(run))
    with workers(folder) as (cluster, address):

        def on_cluster(name: str) -> Observed:
            options = (file, "--out", tmp_path / name / "runs", "--cluster", address)
            return Observed(tmp_path / name, *options, program=TRUTH, env=cluster.env)

        with on_cluster("many") as run:
            assert files(ended(run)) == one_job
        with on_cluster("killed") as run:
            until(run, lambda: run.lines() >= 1)
            os.kill(parent(a_process_with_a_task(run)), signal.SIGKILL)
            directory = ended(run)
        assert re.search(r"its machine was lost: the worker at tls://\S+ ended; begun again", run.said)
        assert files(directory) == one_job
        cluster.until(lambda: cluster.registered == WORKERS + 1)


def a_process_with_a_task(run: Observed) -> int:
    """Return a process that measures a case; its parent is the Dask worker."""
    for process in descendants(os.getpid()):
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"campaign.truth_worker" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0"):
                return process
    raise AssertionError(run.said)


def documented(command: str) -> list[str]:
    """Return the words of the first example of a command of Dask, as a program of this Python."""
    example, *_ = re.findall(rf"^{command} .*?(?=  +#)", TEXT, re.MULTILINE)
    return [sys.executable, "-m", *shlex.split(example)]


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[Programs, int, int]]:
    """Start a scheduler as documented, but at free ports of 127.0.0.1: yield it, its port and that of its pages."""
    port, pages_port = free_port(), free_port()
    words = documented("dask scheduler")
    words[words.index("8786")] = str(port)
    cluster = Programs(folder, environment(DASK_CONFIG=str(folder)))
    try:
        here = ["--host", "127.0.0.1", "--dashboard-address", f"127.0.0.1:{pages_port}"]
        cluster.start([*words, *here])
        cluster.until(lambda: f"Scheduler at: tls://127.0.0.1:{port}" in " ".join(cluster.log.split()))
        yield cluster, port, pages_port
    finally:
        cluster.end()


@contextmanager
def workers(folder: Path) -> Iterator[tuple[Programs, str]]:
    """Start two workers as documented, whose boxes are the truth DUT: yield their cluster and its address."""
    with scheduler(folder) as (cluster, port, _):
        cluster.env |= truth.environment(known=side_by_side.DEEP)
        words = documented("dask worker")
        words[words.index("tls://HOST:8786")] = address = f"tls://127.0.0.1:{port}"
        words[words.index("--nworkers") + 1] = str(WORKERS)
        # A nanny starts its worker as a new Python, which gets the truth DUT from a module that Dask loads first.
        nannies = cluster.start(words, DASK_DISTRIBUTED__WORKER__PRELOAD=f"[{PRELOADED!r}]")
        try:
            cluster.until(lambda: cluster.registered == WORKERS)
            yield cluster, address
        finally:
            nannies.terminate()  # they end their workers, which they could not do if they were killed
            nannies.wait(PATIENCE_S)


def pages(folder: Path) -> set[str]:
    """Return the pages that a scheduler shows."""
    with scheduler(folder) as (_, __, port):
        return {page for page in _PAGES if shown(f"http://127.0.0.1:{port}{page}")}


def shown(url: str) -> bool:
    try:
        with urlopen(url, timeout=PATIENCE_S) as answer:
            return bool(answer.status == 200)
    except HTTPError:
        return False
