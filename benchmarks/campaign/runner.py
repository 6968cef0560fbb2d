# SPDX-License-Identifier: Apache-2.0
"""Runs the rows: makes every repetition that is not on disk yet, and prints the time left after each.

Repetitions of a row in virtual time are made side by side on all CPUs, those in real time one after the other. Rows
never run beside each other.
"""

from __future__ import annotations

import os
import random
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from campaign.row import Row, Verdict
from campaign.state import Done, State

# The estimated time of a repetition, s, as long as the row has none.
USUAL_S = 5.0


def seed_of(seed: int, row: str, repetition: int) -> int:
    """Return the seed of a repetition; it depends only on the campaign's seed, the row and the repetition."""
    return random.Random(f"{seed}/{row}/{repetition}").getrandbits(32)


def run(
    rows: Sequence[Row],
    state: State,
    count: int | None = None,
    say: Callable[[str], None] = print,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Make the missing repetitions of each row; count: at most this many repetitions of each row.

    An exception in a row is recorded as a fault of that repetition, with its place, and the campaign continues.
    """
    for row in rows:
        wanted = min(row.repetitions, row.repetitions if count is None else count)
        left = [n for n in range(wanted) if (row.name, n) not in state.done]
        if not left:
            continue
        if lacks := row.missing():
            say(f"{row.name}: not tried: {lacks}")
            state.add(Done(row.name, 0, 0, 0.0, Verdict(0, lacks=lacks)))
            continue
        say(f"{row.name}: {len(left)} of {wanted} repetitions to go; {row.what}")
        try:
            with row:
                for made, done in enumerate(_made(row, left, state.seed, clock), wanted - len(left) + 1):
                    state.add(done)
                    outcomes = ", ".join(f"{n} {what}" for what, n in sorted(done.verdict.outcomes.items()))
                    faults = "".join(f"\n    FAULT {text}" for text in done.verdict.faults)
                    left_s = time_left(rows, state, count)
                    say(f"  {made}/{wanted}  {outcomes or '-'}  ({_clock(left_s)} left){faults}")
        except Exception as error:  # the things that the row's repetitions share could not be made or undone
            say(f"    FAULT {_failed(error)}")
            # The fault is stored under a number that no repetition has.
            state.add(Done(row.name, row.repetitions, 0, 0.0, Verdict(0, faults=[_failed(error)])))


def _made(row: Row, repetitions: Sequence[int], seed: int, clock: Callable[[], float]) -> Iterator[Done]:
    """Make repetitions of a row, and yield each as soon as it is finished."""
    if not row.side_by_side:
        for repetition in repetitions:
            yield _one(row, repetition, seed_of(seed, row.name, repetition), clock)
        return
    # Threads suffice: a repetition waits for the programs that it starts. If the campaign is interrupted, repetitions
    # that run are finished and not recorded.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        begun = [
            pool.submit(_one, row, repetition, seed_of(seed, row.name, repetition), clock)
            for repetition in repetitions
        ]
        try:
            for future in as_completed(begun):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _one(row: Row, repetition: int, seed: int, clock: Callable[[], float]) -> Done:
    began = clock()
    try:
        verdict = row.run_one(repetition, seed)
    except Exception as error:
        verdict = Verdict(faults=[_failed(error)])
    return Done(row.name, repetition, seed, clock() - began, verdict)


def _failed(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
    return f"the campaign itself failed: {what}"


def time_left(rows: Sequence[Row], state: State, count: int | None = None) -> float:
    """Estimate the time left, s, from the mean time of each row's repetitions so far."""
    total, cpus = 0.0, len(os.sched_getaffinity(0))
    for row in rows:
        done = state.of(row.name)
        if any(d.verdict.lacks for d in done):
            continue
        each = sum(d.seconds for d in done) / len(done) if done else USUAL_S
        wanted = min(row.repetitions, row.repetitions if count is None else count)
        total += each * max(0, wanted - len(done)) / (cpus if row.side_by_side else 1)
    return total


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
