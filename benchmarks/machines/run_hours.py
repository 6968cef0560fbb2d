#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimates in which hours of a run each test of a plan is measured, on 1, 4 and 16 machines (docs/many-machines.md):

    .venv/bin/python benchmarks/machines/run_hours.py plans/rfc2544-full.yaml

Nothing is measured. espbench's own procedures and driver go through the plan with simulated gateways
(support.simulated), which are as fast as virt-x86 in docs/virtual-time.md. This gives the trials of each case, and the
cases that it waits for. The time of a case is the sum of: the seconds of its trials times --second, the seconds of the
waits around them times --wait, --trial for each trial, and --case. These options come from measurements; in real time
--second and --wait are 1. In virtual time, a trial that would be the same is executed once (--once). A machine takes
one case at a time, in the order of `espbench run --cluster`.

Resets cannot be simulated; their number of trials is that in the plan.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from espbench.measure.inputs.setup import Request
from espbench.plan import Case, cases, load_plan
from espbench.plan.keys.ipsec_tests import Reset
from espbench.results import RunDirectory
from espbench.runs.book import Book
from espbench.terms import Trial
from support.simulated.queue import QueueDut
from support.simulated.workers import Threads, begun, session

MACHINES = (1, 4, 16)
BUFFER = 4000  # frames


@dataclass
class Job:
    """A case: its test, its number of trials, and the cases that it waits for.

    sent_s, around_s: the time of the trials, and of the waits around them, s. behind: the length of the longest chain
    of cases that wait for this one.
    """

    name: str
    test: str
    trials: int
    sent_s: float
    around_s: float
    needs: list[str]
    behind: int = 0


class BothWays(QueueDut):
    """A DUT that gets a burst in each direction; a request has the number of frames of one direction."""

    def trial(self, request: Request, case: str, sequence: int) -> Trial:
        """Return the record of both bursts, or of any other trial."""
        if request.shape.burst_frames:
            shape = replace(request.shape, burst_frames=2 * request.shape.burst_frames)
            request = replace(request, shape=shape)
        return super().trial(request, case, sequence)


def gateways_of(case: Case) -> QueueDut:
    """Return simulated gateways for a case, as fast as virt-x86."""
    size = case.mean_frame_size
    cost_us = 8.9 + 0.0019 * size if case.stack.kind == "plain" else 16.0 + 0.0027 * size
    kind = BothWays if case.direction == "both-ways" else QueueDut
    return kind(1e6 / cost_us, BUFFER)


def jobs_of(plan: Path, *, once: bool) -> list[Job]:
    """Return the cases of a plan in the order of measuring; once: count the time of equal trials of a case once."""
    content = yaml.safe_load(plan.read_text())
    resets = [test for test in content["tests"] if "reset" in test]
    content["tests"] = [test for test in content["tests"] if "reset" not in test]
    with tempfile.TemporaryDirectory(prefix="espbench-hours-") as folder:
        found = _simulated(content, Path(folder), once=once)
        if resets:
            content["tests"] = [{"throughput": content["tests"][0]["throughput"]}, *resets]
            found += [
                _reset(case, case.settings, once=once)
                for case in _cases(content, Path(folder))
                if isinstance(case.settings, Reset)
            ]
    names = {job.name: job for job in found}
    for job in reversed(found):
        for needed in job.needs:
            names[needed].behind = max(names[needed].behind, job.behind + 1)
    return found


def _cases(content: dict[str, object], folder: Path) -> list[Case]:
    file = folder / "plan.yaml"
    file.write_text(yaml.safe_dump(content))
    return cases(load_plan(file))


def _simulated(content: dict[str, object], folder: Path, *, once: bool) -> list[Job]:
    measured = _cases(content, folder)
    resolved = load_plan(folder / "plan.yaml")
    directory = begun(resolved, folder)
    session(resolved, directory, Threads(4, trial_s=0.0, queue=gateways_of)).run()
    book = Book(resolved, measured, directory)
    found = [_job(case, book, directory, once=once) for case in book.cases]
    directory.close()
    return found


def _job(case: Case, book: Book, directory: RunDirectory, *, once: bool) -> Job:
    trials = directory.trials_of(case.id)
    if once:
        asked = {(t.phase, t.intended_fps, t.intended_duration_s, t.tx_frames): t for t in trials}
        trials = list(asked.values())
    sent_s = sum(trial.duration_s for trial in trials)
    needs = [needed.id for needed in book.needs(case)]
    return Job(case.id, case.test, len(trials), sent_s, _around_s(case, len(trials)), needs)


def _reset(case: Case, settings: Reset, *, once: bool) -> Job:
    trials = 1 if once else settings.repeats
    return Job(case.id, "reset", trials, trials * settings.trial, _around_s(case, trials), [])


def _around_s(case: Case, trials: int) -> float:
    s = case.settings
    return s.warm_up + trials * (s.learning + s.residue + s.settle)


def scheduled(jobs: list[Job], machines: int, took_s: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Return the times at which each case begins and ends, s, if cases are given out as the driver does.

    Cases with the longest chains of waiting cases come first.
    """
    waiting = sorted(jobs, key=lambda job: -job.behind)
    running: list[tuple[float, str]] = []
    when: dict[str, tuple[float, float]] = {}
    done: set[str] = set()
    now = 0.0
    while waiting or running:
        for job in [job for job in waiting if done.issuperset(job.needs)][: machines - len(running)]:
            waiting.remove(job)
            when[job.name] = now, now + took_s[job.name]
            heapq.heappush(running, (when[job.name][1], job.name))
        now, name = heapq.heappop(running)
        done.add(name)
    return when


def main() -> None:
    """Print a table of tests with their hours."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path)
    parser.add_argument("--second", type=float, default=1.0, help="seconds for each second of a trial")
    parser.add_argument("--wait", type=float, default=1.0, help="seconds for each second of a wait")
    parser.add_argument("--trial", type=float, default=0.0, help="additional seconds for each trial")
    parser.add_argument("--case", type=float, default=0.0, help="additional seconds for each case")
    parser.add_argument("--once", action="store_true", help="equal trials of a case are executed once")
    asked = parser.parse_args()
    jobs = jobs_of(asked.plan, once=asked.once)
    took_s = {
        job.name: asked.case
        + asked.trial * job.trials
        + asked.second * job.sent_s
        + asked.wait * job.around_s
        for job in jobs
    }
    tests: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        tests[job.test].append(job)
    whens = [scheduled(jobs, machines, took_s) for machines in MACHINES]
    print(f"| test | cases | trials | hours | {' | '.join(f'{m} machine(s): hours' for m in MACHINES)} |")
    print("|---|" + "---:|" * (3 + len(MACHINES)))
    for test, of_test in tests.items():
        spans = [
            f"{min(when[job.name][0] for job in of_test) / 3600:.1f} to "
            f"{max(when[job.name][1] for job in of_test) / 3600:.1f}"
            for when in whens
        ]
        hours = sum(took_s[job.name] for job in of_test) / 3600
        print(
            f"| {test} | {len(of_test)} | {sum(job.trials for job in of_test):,} | {hours:.1f} | {' | '.join(spans)} |"
        )
    ends = [max(end for _, end in when.values()) / 3600 for when in whens]
    total = f"{sum(took_s.values()) / 3600:.1f}"
    trials = sum(job.trials for job in jobs)
    print(f"| all | {len(jobs)} | {trials:,} | {total} | {' | '.join(f'{end:.1f}' for end in ends)} |")


if __name__ == "__main__":
    main()
