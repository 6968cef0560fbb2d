# SPDX-License-Identifier: Apache-2.0
"""The run directory: append, read, resume.

`run_directory` holds the others together: `trial_log` and its `seals`, the files of results and findings, the
reader of the first format; `prometheus_file` tells how far a run is; `published` reads the figures that documents
print. `frames` makes data frames of it. May import nothing of espbench but its words.
"""

from espbench.results.run_directory import FORMAT, RunDirectory

__all__ = ["FORMAT", "RunDirectory"]
