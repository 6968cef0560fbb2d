# SPDX-License-Identifier: Apache-2.0
"""A daemon's process, as its gateway's /proc shows it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from espbench.stacks.daemons.processes import resident_kib

STATUS = "Name:\tcharon\nState:\tS (sleeping)\nVmRSS:\t   10240 kB\n"


@pytest.mark.parametrize(
    ("files", "kib"),
    [
        ({"/run/pid": "17\n", "/proc/17/status": STATUS}, 10240),
        ({"/run/pid": "17\n", "/proc/17/status": "Name:\tcharon\nState:\tZ (zombie)\n"}, None),
        ({"/run/pid": "17\n"}, None),
        ({"/run/pid": ""}, None),
        ({}, None),
    ],
)
def test_a_process_that_runs_has_memory(files: dict[str, str], kib: int | None) -> None:
    class Gateway:
        def read(self, paths: list[str]) -> dict[str, str | None]:
            return {path: files.get(path) for path in paths}

    assert resident_kib(cast(Any, Gateway()), "/run/pid") == kib
