# SPDX-License-Identifier: Apache-2.0
"""Reads and writes run directories: appends trials, saves results, and reads what a resumed run needs.

`run_directory` uses the other modules: `trial_log` with its `seals`, the files of results and findings, the reader of
the first format, and `contradictions`, which marks throughputs that contradict each other. `published` reads the
figures that documents print, `exports` writes results for other programs. (The folder `frames` makes data frames of a
run directory.) May import of espbench only its words.
"""

from espbench.results.run_directory import FORMAT, RunDirectory

__all__ = ["FORMAT", "RunDirectory"]
