# SPDX-License-Identifier: Apache-2.0
"""Lets the truth DUT leak cleartext, stand still or damage frames; a run must detect that and give no wrong figure."""

from __future__ import annotations

import csv
import random
import shutil
import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import checks, truth
from campaign.observed import whole
from campaign.row import Row, Verdict
from espbench.sentences import Code

# At the lowest load a trial has 250 frames, and a final trial 500.
LEAST_FRAMES = 250
LEAST_TRIALS = 4  # a search has at least this many trials; a later trial might not be made
TOLERANT_GOAL = 0.05


def violated(outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Check that, after a leak, each outcome is VIOLATED, says that frames crossed in clear, and has no figure."""
    faults = []
    for outcome in outcomes:
        why = (outcome["answer"] or {"values": {}})["values"].get("why")
        said = why["code"] if isinstance(why, dict) else ""
        if outcome["status"] != "VIOLATED":
            faults.append(f"{outcome['case']}: cleartext was seen, and the status is {outcome['status']}")
        elif said != Code.CROSSED_IN_CLEAR or not outcome["reason_codes"]:
            faults.append(
                f"{outcome['case']}: VIOLATED, and not because frames crossed in clear: {outcome['words']!r}"
            )
        if outcome["throughput_fps"] is not None:
            faults.append(f"{outcome['case']}: cleartext was seen, and there is a figure")
    return faults


def leak_seen(trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """Check that the counters of some trial show a leak."""
    return [] if any(t["proof"].get("proven") is False for t in trials) else ["no trial saw any cleartext"]


def damage_counted(trials: Sequence[Mapping[str, Any]], one_of: int) -> list[str]:
    """Check that each trial counted the right number of damaged frames: one of `one_of` frames that came through.

    One more or less is right too, because the DUT counts from the learning frames on.
    """
    faults = []
    for number, trial in enumerate(trials, 1):
        came = trial["rx_frames"] + (trial["corrupted"] or 0)
        if abs((trial["corrupted"] or 0) - came // one_of) > 1:
            faults.append(f"trial {number}: {came} came through, of which {trial['corrupted']} damaged, "
                          f"expected {came // one_of}")  # fmt: skip
    return faults


def outage_counted(trials: Sequence[Mapping[str, Any]], outage_s: float) -> list[str]:
    """Check that no trial lost fewer frames than were sent during the outage."""
    faults = []
    for number, trial in enumerate(trials, 1):
        least = int(outage_s * trial["offered_fps"]) - 1
        if trial["lost"] < least:
            faults.append(f"trial {number}: lost {trial['lost']} frames, the outage alone took {least}")
    return faults


def by_goal(rows: Sequence[Mapping[str, str]], goal: float) -> list[Mapping[str, str]]:
    """Return the rows of one loss goal."""
    return [row for row in rows if float(row["loss_goal"]) == goal]


@dataclass(frozen=True)
class Read:
    """The results of a run: the rows of results.csv, the outcomes of results.json, the records of trials.jsonl."""

    rows: Sequence[Mapping[str, str]]
    outcomes: Sequence[Mapping[str, Any]]
    trials: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, directory: Path) -> Read:
        """Read them from a run directory."""
        rows = [*csv.DictReader((directory / "results.csv").read_text().splitlines())]
        trials, _ = checks.trials_of((directory / "trials.jsonl").read_bytes())
        return cls(rows, checks.outcomes_of((directory / "results.json").read_text()), trials)


class _TruthRow(Row):
    """A row that makes one run in each repetition, with a DUT that misbehaves in a random way."""

    repetitions = 15
    side_by_side = True

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Make a run, and check its results as the kind of misbehaviour demands."""
        random_number = random.Random(seed)
        folder = Path(tempfile.mkdtemp(prefix=f"campaign-{self.name}-"))
        try:
            content, asked = self._chosen(repetition, random_number)
            directory, run = truth.finished(folder, content, **asked)
            read = Read.of(directory)
            faults = whole(run, directory) + self._judge(read, asked)
            if run.process.returncode != self.code:
                faults.append(f"exit code {run.process.returncode}, expected {self.code}")
            outcomes = Counter("right" if row["status"] == "OK" else row["status"] for row in read.rows)
            return Verdict(outcomes=outcomes, faults=[f"{asked}: {text}" for text in faults])
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    code = 0

    @abstractmethod
    def _chosen(self, repetition: int, random_number: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a plan, and the settings of the DUT (arguments of truth.environment)."""

    @abstractmethod
    def _judge(self, read: Read, asked: dict[str, Any]) -> list[str]:
        """Return the faults of the run's results."""


class Leaks(_TruthRow):
    """Leaks every n-th frame in clear, in each trial or in a single one."""

    name = "truth-leaks"
    what = (
        "the truth DUT lets one frame of n pass in clear, in all trials or in one: the case is VIOLATED and "
        "has no figure; exit code 3"
    )
    code = 3

    def _chosen(self, repetition: int, random_number: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
        asked: dict[str, Any] = {
            "encrypts": True,
            "each_trial": {"leak_one_of": random_number.choice([1, 2, 10, LEAST_FRAMES])},
        }
        if repetition % 2:
            asked["only_trial"] = random_number.randrange(LEAST_TRIALS)
        return truth.plan(frame_sizes=[64]), asked

    def _judge(self, read: Read, asked: dict[str, Any]) -> list[str]:
        # Only this check finds a row with a figure that results.json does not have.
        with_figure = [
            f"{row['case']}: a figure in results.csv" for row in read.rows if row["throughput_fps"]
        ]
        return violated(read.outcomes) + with_figure + leak_seen(read.trials)


class Stalls(_TruthRow):
    """Lets no frame through for some time of each trial, so that no load is without loss."""

    name = "truth-stalls"
    what = (
        "the truth DUT stands still for 20 to 200 ms of each trial: 0 % has no figure, and all frames lost in "
        "that time are counted"
    )

    def _chosen(self, repetition: int, random_number: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
        times = {
            "outage_after_ns": random_number.randrange(10_000_000, 250_000_000),
            "outage_for_ns": random_number.randrange(20_000_000, 200_000_000),
        }
        return truth.plan(frame_sizes=[64], throughput={"loss_goals": [0]}), {"each_trial": times}

    def _judge(self, read: Read, asked: dict[str, Any]) -> list[str]:
        wrong = [f"{row['case']}: {row['status']}, expected BELOW_MINIMUM" for row in read.rows
                 if row["status"] != "BELOW_MINIMUM"]  # fmt: skip
        return wrong + outage_counted(read.trials, asked["each_trial"]["outage_for_ns"] / 1e9)


class Damages(_TruthRow):
    """Damages one of n frames: too many for a loss goal of 0 %, few enough for one of 5 %."""

    name = "truth-damages"
    what = (
        "the truth DUT damages one frame of n: each is counted, 0 % has no figure, and 5 % has the right one"
    )

    def _chosen(self, repetition: int, random_number: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
        content = truth.plan(frame_sizes=[64], throughput={"loss_goals": [0, f"{100 * TOLERANT_GOAL:g}%"]})
        return content, {"each_trial": {"damage_one_of": random_number.choice([40, 50, 100, 200])}}

    def _judge(self, read: Read, asked: dict[str, Any]) -> list[str]:
        one_of = asked["each_trial"]["damage_one_of"]
        faults = [f"goal 0: {row['status']}, expected BELOW_MINIMUM" for row in by_goal(read.rows, 0.0)
                  if row["status"] != "BELOW_MINIMUM"]  # fmt: skip
        most = truth.RATE_FPS * (1 - 1 / one_of) / (1 - TOLERANT_GOAL) + 2 * truth.BUFFER
        known = checks.Truth(truth.RIGHT.least, most)
        return (
            faults
            + checks.right(by_goal(read.rows, TOLERANT_GOAL), known)[1]
            + damage_counted(read.trials, one_of)
        )
