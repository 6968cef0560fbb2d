# SPDX-License-Identifier: Apache-2.0
"""Finished runs as pandas data frames: the Python API of espbench (docs/python.md).

`columns` says what type and unit each column has, `run` reads run directories, `verdicts` compares runs.
Nothing of espbench imports this package but the names in `espbench` itself. May import `results`,
`comparison` and `comparison.sorting`.
"""

from espbench.frames.run import Run, load, load_many
from espbench.frames.verdicts import compare

__all__ = ["Run", "compare", "load", "load_many"]
