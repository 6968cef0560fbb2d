# SPDX-License-Identifier: Apache-2.0
"""Reads plans with random damage: each must be accepted or refused within a second, in 200 MB, without a traceback."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from campaign import plan_mutations
from campaign.row import Row, Verdict

PLANS = 1000  # in one repetition
# The memory limit of a process is larger than that of a plan, so that it can still report a plan that takes too much.
BYTES = 2 * plan_mutations.MIB << 20
Mutate = Callable[[str, random.Random], str]


def try_many(seed: str, plans: int, mutate: Mutate, sender: Connection) -> None:
    """Try many plans in this process, which has limits of its own; send each plan's number first.

    So the parent can name a plan that ends this process.
    """
    for ending in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C ends it without a message
        signal.signal(ending, signal.SIG_DFL)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + BYTES, now + BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    random_number = random.Random(seed)
    outcomes: Counter[str] = Counter()
    texts = plan_mutations.sources()
    for number in range(plans):
        sender.send(("begun", number))
        kind, text = random_number.choice(texts)
        result = plan_mutations.tried(mutate(text, random_number), kind)
        if result.is_right:
            outcomes[result.verdict] += 1
        else:
            said = result.said.strip().splitlines()[-1:]
            sender.send(("fault", f"plan {number} of seed {seed}: {result.verdict} {' '.join(said)}"[:500]))
    sender.send(("done", outcomes))


class MutatedPlans(Row):
    """Tries 100 × 1,000 plans, in processes with limits of their own."""

    name = "mutated-plans"
    what = (
        "plans and profiles get random changes of structure, tags and numbers: each is accepted or refused within 1 s "
        "and 200 MB, without a traceback"
    )
    repetitions = 100

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Try a thousand plans; a plan that kills its process is the last one of that process."""
        return tried_many(seed, plan_mutations.mutated)


def tried_many(seed: int, mutate: Mutate) -> Verdict:
    """Try PLANS plans, divided among as many processes as there are CPUs, and return the verdict."""
    context = multiprocessing.get_context("fork")
    workers = len(os.sched_getaffinity(0))
    begun: list[tuple[str, BaseProcess, Connection]] = []
    for number in range(workers):
        receiver, sender = context.Pipe(duplex=False)
        share = PLANS // workers + (number < PLANS % workers)
        own_seed = f"{seed}.{number}"
        process: BaseProcess = context.Process(
            target=try_many, args=(own_seed, share, mutate, sender), daemon=True
        )
        process.start()
        sender.close()
        begun.append((own_seed, process, receiver))
    verdict = Verdict(moments=0)
    for own_seed, process, receiver in begun:
        last, done = -1, False
        with contextlib.suppress(EOFError):  # the process has ended, normally or not
            while True:
                kind, value = receiver.recv()
                if kind == "begun":
                    last, verdict.moments = value, verdict.moments + 1
                elif kind == "fault":
                    verdict.faults.append(value)
                else:
                    verdict.outcomes += value
                    done = True
        process.join()
        if not done:
            verdict.faults.append(
                f"plan {last} of seed {own_seed} ended the process: exit code {process.exitcode}"
            )
    return verdict
