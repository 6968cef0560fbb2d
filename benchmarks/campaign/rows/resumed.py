# SPDX-License-Identifier: Apache-2.0
"""Kills the controller by SIGKILL at a random moment and resumes the run: tables must equal those without a kill."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Self

from campaign import checks, truth
from campaign.observed import Observed, clean, like
from campaign.row import FolderRow, Verdict

# The share of repetitions in which the resumed run is killed too.
AGAIN = 0.2


class Resumed(FolderRow):
    """Kills and resumes runs in virtual time, where results must be equal to the byte."""

    name = "kill-and-resume"
    side_by_side = True
    what = (
        "the controller is killed by kill -9 at a random moment, then `clean` and `run --resume`: the tables "
        "are equal to the byte"
    )
    repetitions = 100

    def __enter__(self) -> Self:
        super().__enter__()
        began = time.monotonic()
        directory, _ = truth.finished(self._folder / "reference")
        self._takes_s = time.monotonic() - began
        self._reference = directory
        return self

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Kill one run once or twice, and resume it until it is complete."""
        random_number = random.Random(seed)
        folder = self._folder / str(repetition)
        verdict = Verdict(moments=0)
        file = truth.written(folder, truth.plan())
        arguments: list[str | Path] = [file, "--out", folder / "runs"]
        kills = 1 + (random_number.random() < AGAIN)
        while True:
            with truth.start(folder, *arguments) as run:
                if verdict.moments < kills:
                    self._kill(run, random_number, verdict)
                code = run.ended()
                if directory := run.directory or (Path(arguments[1]) if arguments[0] == "--resume" else None):
                    arguments = ["--resume", directory]
                if code == -signal.SIGKILL:
                    continue
                verdict.faults += checks.ended(code, run.said)
                verdict.faults += run.left()
                break
        if directory is None:
            verdict.faults.append(f"it made no run directory: {run.said}")
        elif not verdict.faults:
            verdict.faults += like(directory, self._reference)
        verdict.outcomes = Counter({"equal": 0 if verdict.faults else 1})
        shutil.rmtree(folder, ignore_errors=True)
        return verdict

    def _kill(self, run: Observed, random_number: random.Random, verdict: Verdict) -> None:
        """Kill the run after a random share of a run's time; check that `clean` leaves the machine as before."""
        deadline = time.monotonic() + random_number.uniform(0.05, 1.0) * self._takes_s
        while time.monotonic() < deadline and run.process.poll() is None:
            run.look()
            time.sleep(0.02)
        before = run.log
        run.look()
        run.process.kill()
        run.ended()
        verdict.moments += 1
        verdict.faults += checks.kept(before, run.log)
        clean(run.id)
        verdict.faults += run.left()
