# SPDX-License-Identifier: Apache-2.0
"""Finished results → which of two configurations is faster, where, and at what CPU cost; pure.

`build` makes a whole comparison: outcomes are sorted (`sorting`), decided on (`deciding`) and put in words
(`telling`). May import `results` and `comparison.*`.
"""

from espbench.comparison.build import compare, of_run

__all__ = ["compare", "of_run"]
