# SPDX-License-Identifier: Apache-2.0
"""Outcomes as a pandas table, for comparisons and for users' notebooks."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from espbench.results.outcome_files import COLUMNS, row
from espbench.terms import Outcome


def outcome_table(outcomes: Iterable[Outcome]) -> pd.DataFrame:
    """One row per case and loss goal, the columns of `results.csv`; NaN where there is no figure."""
    table = pd.DataFrame([row(outcome) for outcome in outcomes], columns=list(COLUMNS))
    # A column of nothing but None would stay `object`, and arithmetic on it would fail.
    figures = [
        name
        for name in COLUMNS
        if name.endswith(("_fps", "_mbps", "_pct", "_us", "_us_per_frame", "loss_bound"))
    ]
    table[figures] = table[figures].astype(float)
    return table
