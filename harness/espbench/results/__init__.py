# SPDX-License-Identifier: Apache-2.0
"""The run directory: append, read, resume; `frames` makes data frames of it."""

from espbench.results.run_directory import FORMAT, RunDirectory

__all__ = ["FORMAT", "RunDirectory"]
