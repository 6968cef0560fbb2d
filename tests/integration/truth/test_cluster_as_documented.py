# SPDX-License-Identifier: Apache-2.0
"""The certificates, the settings and the commands of docs/many-machines.md make a cluster that only its users reach."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from campaign import ROOT

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("distributed")]

TEXT = (ROOT / "docs/many-machines.md").read_text()
PLACE = "/etc/espbench"
_PATIENCE_S = 120.0
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


def pages(folder: Path) -> set[str]:
    """Start a scheduler as documented, but at free ports; return the pages that it shows."""
    (command,) = re.findall(r"^dask scheduler .*?(?=  +#)", TEXT, re.MULTILINE)
    words = shlex.split(command)
    ports = [free_port(), free_port()]
    words[words.index("8786")] = str(ports[0])
    script = "from distributed.cli.dask_scheduler import main; main()"
    with (folder / "log").open("wb") as log:
        scheduler = subprocess.Popen(
            [sys.executable, "-c", script, *words[2:], "--host", "127.0.0.1",
             "--dashboard-address", f"127.0.0.1:{ports[1]}"],
            env=os.environ | {"DASK_CONFIG": str(folder)}, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while "Scheduler at:" not in (folder / "log").read_text():
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        assert f"tls://127.0.0.1:{ports[0]}" in (folder / "log").read_text()
        return {page for page in _PAGES if shown(f"http://127.0.0.1:{ports[1]}{page}")}
    finally:
        scheduler.kill()
        scheduler.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def shown(url: str) -> bool:
    try:
        with urlopen(url, timeout=_PATIENCE_S) as answer:
            return bool(answer.status == 200)
    except HTTPError:
        return False
