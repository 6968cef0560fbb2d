# SPDX-License-Identifier: Apache-2.0
"""Executes actions on the gateways while frames flow, each at its time.

In real time a thread does this. In virtual time the trial stops at that time, and the gateways execute the action
while its frames flow.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from espbench.errors import CannotWrite, EspbenchError
from espbench.platforms.base import Moment, NotBack, TrialClock
from espbench.platforms.placement import NICE
from espbench.sentences import Code
from espbench.terms import Reason

# An action may be this much too early or too late, in trials of many seconds.
LATE_S = 1.0


@dataclass(frozen=True)
class Action:
    """An action `at_s` seconds after the start of the trial; the record has what `act` returns.

    upsets: SAs are replaced or a gateway restarts, so that the counters before and after do not belong together.
    interrupts: the traffic is interrupted on purpose, and the outage is measured; the loss in it is the DUT's.
    breaks_links: a gateway is switched off and on, and the carrier of its links with it. lasts: the action takes as
    long as the gateway needs for it, and the test measures that time. Otherwise it takes no time, and a delay is the
    host's.
    """

    name: str
    at_s: float
    act: Callable[[], dict[str, Any]]
    upsets: bool = True
    interrupts: bool = True
    lasts: bool = False
    breaks_links: bool = False


class ActionFailed(EspbenchError):
    """An action on a gateway failed; the text names the action and the cause."""


@dataclass(frozen=True)
class Performed:
    """An action that was executed; times in ns of CLOCK_MONOTONIC, or of virtual time."""

    action: Action
    began_ns: int
    ended_ns: int
    facts: dict[str, Any]


@contextmanager
def performing(actions: Sequence[Action], clock: TrialClock | None = None) -> Iterator[list[Performed]]:
    """Execute the actions one after the other while the context lasts. The context ends when all are done, or one
    failed.

    clock: the clock of virtual time; then the context holds exactly one trial. Raise the first action's error, unless
    the context itself raised: ActionFailed, NotBack, CannotWrite, or one that is no EspbenchError, such as OSError.
    Raise ActionFailed if an action was not executed.
    """
    performed: list[Performed] = []
    failed: list[Exception] = []
    if not actions:
        yield performed
    elif clock is not None:
        clock.in_next_trial([_moment(action, clock, performed, failed) for action in actions])
        yield performed
    else:
        with _thread(actions, performed, failed):
            yield performed
    if failed:
        raise failed[0]
    done = {id(each.action) for each in performed}
    if left_out := [action.name for action in actions if id(action) not in done]:
        raise ActionFailed(f"the trial ended without: {', '.join(left_out)}")


def _moment(action: Action, clock: TrialClock, performed: list[Performed], failed: list[Exception]) -> Moment:
    """Return the action as a moment of a trial in virtual time; the action is left out if an earlier one failed."""

    def act() -> None:
        if failed:
            return
        try:
            performed.append(_done(action, clock.now_ns))
        except Exception as error:  # `performing` raises it when the trial has ended
            failed.append(error)

    return Moment(action.at_s, act)


def _done(action: Action, now_ns: Callable[[], int]) -> Performed:
    """Execute the action. Raise ActionFailed if a gateway is why it fails; other errors stay what they are."""
    began_ns = now_ns()
    try:
        facts = action.act()
    except (NotBack, CannotWrite):
        raise
    except EspbenchError as error:
        raise ActionFailed(f"{action.name}: {error}") from error
    return Performed(action, began_ns, now_ns(), facts)


@contextmanager
def _thread(actions: Sequence[Action], performed: list[Performed], failed: list[Exception]) -> Iterator[None]:
    """Execute the actions in a thread while the context lasts."""
    stop = threading.Event()
    start = time.monotonic()

    def work() -> None:
        # The thread has the priority of the sender, which hardly ever leaves its CPU to others, and may use
        # any CPU: an action is little work, but the trial depends on its being done in time.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            os.sched_setaffinity(threading.get_native_id(), range(os.cpu_count() or 1))
        for action in sorted(actions, key=lambda a: a.at_s):
            if stop.wait(max(0.0, start + action.at_s - time.monotonic())):
                return
            try:
                performed.append(_done(action, time.monotonic_ns))
            except Exception as error:  # it would end only this thread, and the trial would seem complete
                failed.append(error)
                return

    worker = threading.Thread(target=work, name="actions")
    worker.start()
    try:
        yield
    except BaseException:
        stop.set()
        raise
    finally:
        worker.join()


def untimely(performed: Sequence[Performed], first_frame_ns: int) -> list[Reason]:
    """Return a reason for each action that was executed too early or too late; times from the first frame."""
    reasons = []
    for done in performed:
        asked_ns = first_frame_ns + 1e9 * done.action.at_s
        last_ns = done.began_ns if done.action.lasts else done.ended_ns
        off_s = max(asked_ns - done.began_ns, last_ns - asked_ns) / 1e9
        if off_s > LATE_S:
            reasons.append(
                Reason.of(
                    Code.ACTION_UNTIMELY,
                    action=done.action.name,
                    at_s=done.action.at_s,
                    began_s=(done.began_ns - first_frame_ns) / 1e9,
                    ended_s=(done.ended_ns - first_frame_ns) / 1e9,
                )
            )
    return reasons
