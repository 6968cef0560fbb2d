# SPDX-License-Identifier: Apache-2.0
"""Runs a worker process of truth_run.py, whose boxes are the truth DUT too."""

from campaign import truth_run
from espbench.runs.workers import worker

if __name__ == "__main__":
    truth_run.put_in_place()
    worker.main()
