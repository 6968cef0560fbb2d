# SPDX-License-Identifier: Apache-2.0
"""A disk that is full before the first trial: told, never a trial's or a gateway's fault, and the run goes on later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from campaign.rows.disk_full import LIMITS, DiskFull

pytestmark = [pytest.mark.virtual_time, pytest.mark.root]


@pytest.fixture(scope="module")
def row() -> Iterator[DiskFull]:
    """The campaign's row, with the run that nobody disturbs."""
    with DiskFull() as made:
        yield made


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param("size=20k", id="the manifest of a pair that is set up", marks=pytest.mark.slow),
        pytest.param("nr_inodes=10", id="the same, for the whole case"),
        pytest.param("nr_inodes=8", id="the generator's log"),
    ],
)
def test_a_full_disk_ends_the_run_and_nothing_else(row: DiskFull, limit: str) -> None:
    """Trials were INVALID for it, and stayed so when the run was resumed; a log was a traceback."""
    assert row.run_one(LIMITS.index(limit), 0).faults == []
