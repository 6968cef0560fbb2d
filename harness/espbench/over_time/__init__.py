# SPDX-License-Identifier: Apache-2.0
"""Many runs as series: what each point of each plan gave from run to run, and where that changed.

`index` keeps them in a file that can be thrown away, `facts` and `figures` say what is taken from a run directory,
`changes` where a series changes, `query` what is read from the index, `telling` words it; `records` are the types.
May import `this_machine`, `results`, `comparison.sorting` and `gate`.
"""

from espbench.over_time.index import History
from espbench.over_time.records import Change, Point, RunRow, Series

__all__ = ["Change", "History", "Point", "RunRow", "Series"]
