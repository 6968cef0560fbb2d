# SPDX-License-Identifier: Apache-2.0
"""Starts a second run while one runs on this machine: it must be refused, or wait; both must have right figures."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from campaign import checks
from campaign.observed import ESPBENCH, Observed, environment, whole
from campaign.row import Row, Verdict
from campaign.rows.hit import BOX_BPS, BOX_TRUTH, throughput
from campaign.truth import written
from support.gateways.boxes import RouterBox


class TwoRuns(Row):
    """Starts a second run a random time after the first: in even repetitions without `--wait`, in odd ones with it."""

    name = "two-runs"
    what = (
        "a second run begins at a random moment of the first: it is refused and says who holds the machine, "
        "or, with `--wait`, begins when the first has ended; both are right; a second writer of the first "
        "run's directory is refused"
    )
    repetitions = 6

    def missing(self) -> str:
        return "" if os.geteuid() == 0 else "root"

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Make two runs, each with its own box, and check both."""
        random_number = random.Random(seed)
        folder = Path(tempfile.mkdtemp(prefix="campaign-two-runs-"))
        verdict = Verdict()
        wait = bool(repetition % 2)
        with RouterBox() as one, RouterBox() as two:
            for box in (one, two):
                box.limit_rate(BOX_BPS, burst=2000, limit=3000)
            # The first run takes longer than the start of two other runs, also on a busy machine.
            plans = [
                written(
                    folder / name,
                    box.plan(name=name, repeat=repeat) | {"tests": [{"throughput": throughput()}]},
                )
                for name, box, repeat in (("one", one, 4), ("two", two, 1))
            ]
            with Observed(folder / "one", plans[0], "--out", folder / "one/runs") as first:
                while not first.look() and first.process.poll() is None:
                    time.sleep(0.02)
                time.sleep(random_number.uniform(0.0, 3.0))
                if directory := first.directory:
                    verdict.faults += _refused_writer(first, directory)
                with Observed(folder / "two", plans[1], "--out", folder / "two/runs", wait=wait) as second:
                    began_alone = _began_after(first, second)
                    codes = first.ended(), second.ended()
                    verdict.faults += checks.ended(codes[0], first.said) + first.left()
                    verdict.faults += _judge(first)
                    if wait or codes[1] in checks.WHOLE:  # without --wait: the first had ended by then
                        verdict.faults += checks.ended(codes[1], second.said) + second.left() + _judge(second)
                        verdict.faults += [] if began_alone else ["it began while the other one ran"]
                        how = "waited, right" if wait else "begun too late to be refused, right"
                        verdict.outcomes = Counter({how: int(not verdict.faults)})
                    else:
                        verdict.faults += refused_by_name(codes[1], second.said, first.process.pid)
                        verdict.outcomes = Counter({"refused": int(not verdict.faults)})
        shutil.rmtree(folder, ignore_errors=True)
        return verdict


def refused_by_name(code: int | None, said: str, holder: int) -> list[str]:
    """Check that the exit code is 2 or 4, and that the message names `--wait` and the process that uses the machine."""
    faults = checks.ended(code, said, (2, 4))
    if str(holder) not in said:
        faults.append(f"it does not name process {holder}, which holds the machine: {said[-300:]}")
    if "--wait" not in said:
        faults.append("it does not say that --wait waits")
    return faults


def _refused_writer(first: Observed, directory: Path) -> list[str]:
    done = subprocess.run(
        [*ESPBENCH, "run", "--resume", directory], capture_output=True, text=True, check=False,
        env=environment(), timeout=600,
    )  # fmt: skip
    if first.process.poll() is not None:
        return []  # the first run has ended meanwhile, so nothing had to be refused
    faults = checks.ended(done.returncode, done.stderr, (2, 4))
    if str(first.process.pid) not in done.stderr:
        faults.append(
            f"resuming a run that runs does not name process {first.process.pid}: {done.stderr[-300:]}"
        )
    return faults


def _began_after(first: Observed, second: Observed) -> bool:
    """Watch until one of the runs ends; return False if both had a program running at the same time.

    The machine is free when the programs of the first run are gone; its own process ends a little later.
    """
    alone = True
    while first.process.poll() is None and second.process.poll() is None:
        if both_measure(first, second):
            alone = False
        time.sleep(0.05)
    return alone


def both_measure(first: Observed, second: Observed) -> bool:
    """Return whether both runs have a program running.

    The first run is asked last; otherwise it could end, and the second begin, between the two questions.
    """
    return second.measures() and first.measures()


def _judge(run: Observed) -> list[str]:
    if run.process.returncode not in checks.WHOLE or run.directory is None:
        return []
    rows = checks.rows_of((run.directory / "results.csv").read_text())
    return whole(run, run.directory) + checks.right(rows, BOX_TRUTH)[1]
