# SPDX-License-Identifier: Apache-2.0
"""Finished results → which of two configurations is faster, where, and at what CPU cost; pure."""

from espbench.comparison.build import compare, of_run

__all__ = ["compare", "of_run"]
