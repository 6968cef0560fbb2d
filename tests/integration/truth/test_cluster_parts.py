# SPDX-License-Identifier: Apache-2.0
"""The workers of a real Dask cluster get the parts of guests that they lack, also one that comes later.

The parts are a few bytes: no guest is started.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from espbench.platforms.virtual.parts.kits import E500_KIT
from support.virtual import parts_cache
from support.virtual.cluster import Cluster, running
from support.virtual.side_by_side import PATIENCE_S

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.slow,
    pytest.mark.needs("distributed", "generator", "gcc"),
]

_CONNECT = """
import sys
from espbench.errors import UsageError
from espbench.platforms.virtual.parts.kits import E500_KIT
from espbench.runs.workers.cluster import connect
try:
    workers = connect(sys.argv[1], [E500_KIT])
except UsageError as error:
    sys.exit(str(error))
print("equal", flush=True)
sys.stdin.read()
workers.close()
"""


def connected(cluster: Cluster, home: Path) -> subprocess.Popen[str]:
    """Start one who connects as `espbench run` does, with that cache, and stays until its input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", _CONNECT, cluster.address], env=cluster.env | {"XDG_CACHE_HOME": str(home)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_workers_get_the_parts_that_they_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are there get them at once, a later one when it comes; one with another kernel says so."""
    there = parts_cache.contents(parts_cache.fill(monkeypatch, tmp_path / "driver", E500_KIT))
    here, later = tmp_path / "here" / "espbench" / "e500", tmp_path / "later" / "espbench" / "e500"
    other = parts_cache.fill(monkeypatch, tmp_path / "other", E500_KIT, text="by another compiler")
    with running(tmp_path / "cluster", XDG_CACHE_HOME=str(tmp_path / "here")) as cluster:
        driver = connected(cluster, tmp_path / "driver")
        assert driver.stdout is not None
        assert driver.stdout.readline() == "equal\n"
        assert parts_cache.contents(here) == there
        cluster.workers.append(cluster.worker(XDG_CACHE_HOME=str(tmp_path / "later")))
        cluster.until(lambda: later.exists() and parts_cache.contents(later) == there)
        assert "Unequal" not in cluster.log
        different = cluster.worker(XDG_CACHE_HOME=str(tmp_path / "other"))
        assert different.wait(PATIENCE_S) == 0
        assert "Unequal: the worker at" in cluster.log
        driver.communicate("")
        assert driver.returncode == 0
        registered = cluster.registered
        cluster.workers.append(cluster.worker(XDG_CACHE_HOME=str(tmp_path / "other")))
        cluster.until(lambda: cluster.registered > registered)
        refused = connected(cluster, tmp_path / "driver")
        _, said = refused.communicate()
        assert refused.returncode == 1
        where = rf"the worker at \S+ on {re.escape(socket.gethostname())}: {re.escape(str(other))}/\S+"
        assert re.search(rf"--cluster {cluster.address}: {where}: expected SHA-256 \w+…, got \w+…", said)
