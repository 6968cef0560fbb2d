# SPDX-License-Identifier: Apache-2.0
"""A worker of a cluster runs a daemon that the user built, although its machine does not have that build."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from campaign.observed import environment

from support.dask_cluster import DaskCluster
from support.gateways.own_build import own_strongswan
from support.plans import pair_plan, write_plan
from support.virtual.virtual_runs import PATIENCE_S, Measured, build, without_the_host

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.boards,
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.needs("distributed"),
]

_WORKER = "if __name__ == '__main__':\n    from distributed.cli.dask_worker import main; main()"
_WITHOUT = 'mount -t tmpfs none "$0" && exec "$@"'  # an empty folder in the place of the build
_THROUGHPUT = {
    "minimum": "4000fps", "maximum": "200000fps", "trial": "10ms", "final_trial": "20ms", "warm_up": "10ms",
    "resolution": "40%",
}  # fmt: skip


def measured(folder: Path, plan: Path, out: str, cluster: DaskCluster, *options: str) -> Path:
    """Make a run; the plan's path is relative, and so is the build's in the plan."""
    command = [sys.executable, "-m", "espbench", "run", "--no-report", plan.name, "--out", out, *options]
    done = subprocess.run(
        command, cwd=folder, env=cluster.env, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr + cluster.log
    (directory,) = (folder / out).iterdir()
    return directory


def content(directory: Path) -> dict[str, Any]:
    """Return all of a run that must be the same on all machines."""
    run = Measured(directory)
    manifest = json.loads((directory / "manifest.json").read_text())
    contexts = {key: manifest[key] for key in ("contexts", "context_of_case", "cases")}
    return run.tables | contexts | {"trials": without_the_host(run.trials)}


def test_a_worker_has_the_users_daemon_and_the_files_are_those_of_one_job(tmp_path: Path) -> None:
    """The archive is in the worker's cache, under its digest; a worker with a changed copy is refused."""
    build("x86")
    own_strongswan(tmp_path / "builds/mine")
    stack = {"stack": "strongswan", "label": "mine", "prefix": "builds/mine"}
    asked = pair_plan(
        "virt-x86", throughput=_THROUGHPUT, stacks=[stack], suites=["aes128gcm16"], frame_sizes=[512]
    )
    plan = write_plan(tmp_path, asked)
    cluster = DaskCluster(tmp_path / "cluster", environment())
    try:
        cluster.start(
            ["unshare", "--mount", "sh", "-c", _WITHOUT, str(tmp_path / "builds"), sys.executable, "-c", _WORKER,
             cluster.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
             "--local-directory", str(tmp_path / "scratch")],
            XDG_CACHE_HOME=str(tmp_path / "cache"),
        )  # fmt: skip
        cluster.until(lambda: cluster.registered)
        there = measured(tmp_path, plan, "there", cluster, "--cluster", cluster.address)
        here = measured(tmp_path, plan, "here", cluster, "--jobs", "1")
        assert content(there) == content(here)
        assert Measured(there).of("mine")
        (sent,) = tmp_path.glob("cache/espbench/e500/own-*/strongswan/root.cpio")
        sent.write_bytes(b"another daemon")
        command = ["run", plan.name, "--out", "refused", "--cluster", cluster.address]
        refused = subprocess.run(
            [sys.executable, "-m", "espbench", *command],
            cwd=tmp_path, env=cluster.env, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        assert refused.returncode == 2
        assert "strongswan/root.cpio: expected SHA-256" in refused.stderr
    finally:
        cluster.end()
