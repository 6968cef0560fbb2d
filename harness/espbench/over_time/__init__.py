# SPDX-License-Identifier: Apache-2.0
"""Arranges many runs in series: the figures of each point of each plan from run to run, and where they changed.

`index` keeps the series in a file that may be deleted at any time. `facts` and `figures` extract data from a run
directory, `changes` finds where a series changes, `query` reads the index, and `telling` words changes; `records`
defines the types. May import `this_machine`, `results`, `comparison.sorting` and `gate`.
"""

from espbench.over_time.index import History
from espbench.over_time.records import Change, Point, RunRow, Series

__all__ = ["Change", "History", "Point", "RunRow", "Series"]
