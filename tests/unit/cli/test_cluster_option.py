# SPDX-License-Identifier: Apache-2.0
"""Tests of what may not be given to a cluster, and of which clusters may not be spoken to."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.runs.workers import cluster
from support.command_line import in_process
from support.plans import external_text, plan_text


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.7:8786", "10.0.0.7:8786", "tcp://scheduler:8786", "ws://127.0.0.1:1"]
)
def test_a_way_that_is_open_to_others_is_refused(address: str) -> None:
    """Tasks are pickled: whoever reaches such a port runs programs."""
    with pytest.raises(UsageError, match=r"expected: tls://HOST:PORT(?s:.*)anybody who reaches that port"):
        cluster.connect(address)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match=r"expected: tls://HOST:PORT\n  got: tls://\[::1:8786"):
        cluster.connect("tls://[::1:8786")


@pytest.mark.parametrize(
    ("plan", "options", "why"),
    [
        (external_text(), [], "boxes, which are cabled to one machine: start the run there"),
        (plan_text(dut="mpc8548e"), ["--jobs", "2"], "--jobs 2 beside it"),
    ],
)
def test_what_a_cluster_cannot_have_is_refused_before_anything_is_made(
    tmp_path: Path, plan: str, options: list[str], why: str
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(plan)
    done = in_process("run", file, "--cluster", "tls://127.0.0.1:1", *options, "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert why in done.stderr
    assert not (tmp_path / "runs").exists()
