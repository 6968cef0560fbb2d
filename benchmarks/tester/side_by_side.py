# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of the driver of parallel cases, and the idle time because cases wait for each other's results.

    python benchmarks/tester/side_by_side.py [--trial SECONDS] [--workers 16,2]

The 154 cases are simulated, each by a thread whose trials are waits. They are 22 series of seven frame sizes, in which
each size except the first two waits for those before it. The speed-up is the sum of all waits by the time of the run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from espbench.plan import cases, load_plan
from support.plans import pair_plan, write_plan
from support.simulated.workers import Threads, begun, session

SEARCH = {"trial": "1s", "final_trial": "2s", "resolution": "2%", "maximum": "100000fps", "minimum": "100fps"}
PLAN = pair_plan(
    "mpc8548e",
    throughput=SEARCH,
    stacks=["plain", *({"stack": "xfrm", "label": f"way-{n}"} for n in range(10))],
    suites=["3des-sha1"],
    frame_sizes=[64, 128, 256, 512, 1024, 1280, 1424],
    directions=["one-way", "both-ways"],
)


def main() -> None:
    """Print a row for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trial", type=float, default=0.1, help="seconds of a trial")
    parser.add_argument("--workers", default="16,2")
    asked = parser.parse_args()
    print(
        "| workers | cases | trials | s | times as fast as one | CPU ms a case, of the driver and the searches |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for at_once in map(int, asked.workers.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            resolved = load_plan(write_plan(Path(folder), PLAN))
            directory = begun(resolved, Path(folder))
            workers = Threads(at_once, trial_s=asked.trial)
            began, cpu_s = time.monotonic(), time.process_time()
            session(resolved, directory, workers).run()
            took_s = time.monotonic() - began
            directory.close()
            count = len(cases(resolved))
            cpu_ms = 1e3 * (time.process_time() - cpu_s) / count
            print(
                f"| {at_once} | {count} | {workers.made} | {took_s:.1f} | {workers.slept_s / took_s:.1f} "
                f"| {cpu_ms:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
