# SPDX-License-Identifier: Apache-2.0
"""Lets the run directory's disk be full at each write in turn, then makes space and resumes the run."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Self

from campaign import checks, truth
from campaign.observed import like
from campaign.row import FolderRow, Verdict

PAGE_KIB = 4
# Limits of pages and of files; the largest are more than a whole run needs. Their order is random, so that the first
# repetitions are spread over the run.
LIMITS = [f"size={PAGE_KIB * pages}k" for pages in range(1, 25)] + [f"nr_inodes={n}" for n in range(2, 17)]
random.Random(0).shuffle(LIMITS)


class DiskFull(FolderRow):
    """Runs on a tmpfs with one page more each time, then on one that may hold one file more each time.

    A page is about as long as a trial's line, so that each write is the first one that fails in some repetition.
    """

    name = "disk-full"
    side_by_side = True
    what = (
        "the run directory's disk is full at each page, and at each file, in turn: the message names the "
        "file, no trial is lost, and with space the run is resumed to equal tables"
    )
    repetitions = len(LIMITS)

    def __enter__(self) -> Self:
        super().__enter__()
        directory, _ = truth.finished(self._folder / "reference")
        self._reference = directory
        return self

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Run with one of the limits; nothing is random."""
        limit = LIMITS[repetition]
        folder = self._folder / str(repetition)
        disk = folder / "disk"
        disk.mkdir(parents=True)
        file = truth.written(folder, truth.plan())
        subprocess.run(["mount", "-t", "tmpfs", "-o", limit, "campaign", disk], check=True)
        try:
            verdict = self._fill(folder, disk, file, limit)
        finally:
            subprocess.run(["umount", "-l", disk], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        return verdict

    def _fill(self, folder: Path, disk: Path, file: Path, limit: str) -> Verdict:
        verdict = Verdict()
        arguments: list[str | Path] = [file, "--out", disk / "runs"]
        with truth.start(folder, *arguments) as run:
            code = run.ended()
        if code in checks.WHOLE:
            verdict.faults += checks.ended(code, run.said) + run.left()
            verdict.outcomes = Counter({"enough space": 1})
            return verdict
        verdict.faults += checks.ended(code, run.said, (1,)) + run.left()
        if "No space left on device" not in run.said or str(disk) not in run.said:
            verdict.faults.append(f"it does not say which file the disk refused: {run.said[-300:]}")
        before = run.log
        _, damaged = checks.trials_of(before)
        verdict.faults += damaged
        # If not even the manifest has space, there is nothing to resume, and the run begins anew.
        directory = run.directory
        if directory is not None and not (directory / "manifest.json").exists():
            verdict.faults += ["trials without a manifest"] if before else []
            directory = None
        if directory is not None:
            arguments = ["--resume", directory]
        subprocess.run(
            ["mount", "-o", "remount,size=64m,nr_inodes=10000", disk], check=True, capture_output=True
        )
        with truth.start(folder, *arguments) as again:
            code = again.ended()
        directory = directory or again.directory
        verdict.faults += checks.ended(code, again.said) + again.left()
        if directory is not None and code in checks.WHOLE:
            verdict.faults += checks.kept(before, (directory / "trials.jsonl").read_bytes())
            verdict.faults += like(directory, self._reference)
        verdict.outcomes = Counter({"told and resumed": 0 if verdict.faults else 1})
        verdict.faults = [f"{limit}: {text}" for text in verdict.faults]
        return verdict
