# SPDX-License-Identifier: Apache-2.0
"""The keys of a curve's figures name unit and direction in one way, for reports and for data frames."""

import pytest

from espbench.frames import columns
from espbench.quantities import UNIT_OF_ENDING, WAYS, key_of_way, way_of
from espbench.reporting.findings.finding_curves import column_title


@pytest.mark.parametrize(("ending", "unit"), UNIT_OF_ENDING.items())
def test_a_title_and_a_data_frame_name_the_same_unit(ending: str, unit: str) -> None:
    assert columns.kind(f"anything{ending}").unit == unit
    assert column_title(f"anything{ending}") == f"Anything, {unit}"


@pytest.mark.parametrize("way", WAYS)
def test_the_key_of_a_direction_is_split_as_it_was_made(way: str) -> None:
    assert way_of(key_of_way("rate_fps", way)) == ("rate_fps", way)
    assert way_of(f"rate_fps_{way}") == (f"rate_fps_{way}", "")
    west, east = way.split("-")
    assert column_title(key_of_way("rate_fps", way)) == f"Rate, frames/s, {west} → {east}"
    assert column_title(key_of_way("frame_loss_pct", way)) == f"Loss {west} → {east}, %"
