# SPDX-License-Identifier: Apache-2.0
"""The run directory: append, read, resume; tables of it are in `tables` (pandas, imported on demand)."""

from espbench.results.run_directory import FORMAT, RunDirectory

__all__ = ["FORMAT", "RunDirectory"]
