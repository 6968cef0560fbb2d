# SPDX-License-Identifier: Apache-2.0
"""Compares finished results: says which of two configurations is faster, where, and at what CPU cost.

It reads run directories and writes nothing. `build` makes a whole comparison: outcomes are sorted (`sorting`), judged
(`deciding`) and put into words (`telling`). May import `results` and `comparison.*`.
"""

from espbench.comparison.build import compare, of_run

__all__ = ["compare", "of_run"]
