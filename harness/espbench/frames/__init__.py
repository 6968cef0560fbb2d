# SPDX-License-Identifier: Apache-2.0
"""Finished runs as pandas data frames: the Python API of espbench (docs/python.md).

`columns` defines the type and unit of each column, `run` reads run directories, `trials` their trials, `verdicts`
compares runs, `many_runs` has their history, `measuring` has plans measured, and `lending` lends it an executor.
Nothing of espbench imports this package but the names in `espbench` itself. May import `plan.reading`, `results`,
`runs.workers`, `comparison`, `comparison.sorting`, `over_time` and `profile`.
"""

from espbench.frames.many_runs import History, history
from espbench.frames.measuring import Plan, Progress, check
from espbench.frames.run import Run, load, load_many
from espbench.frames.verdicts import compare

__all__ = ["History", "Plan", "Progress", "Run", "check", "compare", "history", "load", "load_many"]
