# SPDX-License-Identifier: Apache-2.0
"""Many runs as data frames: the rows of `espbench history`, with types and units."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import espbench
from espbench.errors import UsageError
from espbench.terms import Status
from support.synthetic.series import SHAPE, Night, write

NIGHTS, SLOWER = 5, 3


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> espbench.History:
    """Five nights, slower from the fourth on, INVALID in the second; and a run that cannot be read."""
    parent = tmp_path_factory.mktemp("nights")
    for number in range(NIGHTS):
        slower = number >= SLOWER
        status: Status | None = "INVALID" if number == 1 else None
        night = Night(
            0.5 if slower else 1.0, is_virtual=True, espbench="0.2.0" if slower else "0.1.0", status=status
        )
        write(parent / "runs", number, night)
    (parent / "runs" / "odd").mkdir()
    (parent / "runs" / "odd" / "manifest.json").write_text("{")
    return espbench.history(parent / "runs", index=parent / "index.sqlite")


def test_the_frames_have_types_and_units(history: espbench.History) -> None:
    """Empty is missing, moments are moments, and each number says in what."""
    for frame in (history.runs, history.points, history.changes):
        assert isinstance(frame["started"].dtype, pd.DatetimeTZDtype)
        numbers = [name for name in frame if pd.api.types.is_numeric_dtype(frame[name].dtype)]
        plain = [name for name in numbers if not pd.api.types.is_bool_dtype(frame[name].dtype)]
        assert set(plain) <= set(frame.attrs["units"])


def test_a_run_that_cannot_be_read_says_why(history: espbench.History) -> None:
    odd = history.runs[history.runs["problem"] != ""]
    assert list(odd["run"]) == ["odd"]
    assert odd["started"].isna().all()
    assert len(history.runs) == NIGHTS + 1


def test_points_and_changes_say_the_same(history: espbench.History) -> None:
    """The value halves with the version that is named; the void night has none."""
    changes = history.changes.query("figure == 'throughput' and ratio < 1")
    assert len(changes) == len(SHAPE.sizes)
    for _, change in changes.iterrows():
        points = history.points[history.points["series"] == change["series"]].set_index("run")["value"]
        assert points[change["run"]] == change["now"] == pytest.approx(change["was"] / 2, abs=0.001)
        assert points[change["before"]] == change["was"]
        assert points.isna().sum() == 1
        assert change["what_else"] == "espbench: 0.1.0 → 0.2.0"
        assert change["word"] == "worse"
        assert change["exactly"]
    assert set(history.series["runs"]) == {NIGHTS}
    assert set(history.series["newest_status"]) == {""}
    assert set(history.series["series"]) == set(history.points["series"])


def test_names_choose_series(history: espbench.History, tmp_path: Path) -> None:
    folder = Path(history.runs["path"].iloc[0]).parent
    some = espbench.history(folder, case="64 b", figure="THROUGH", index=tmp_path / "index.sqlite")
    assert list(some.series["figure"]) == ["throughput"]
    assert set(some.points["case"]) == set(some.series["case"])
    assert len(espbench.history(folder, plan="none", index=tmp_path / "index.sqlite").series) == 0


def test_a_folder_without_runs_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="what to do"):
        espbench.history(tmp_path)
