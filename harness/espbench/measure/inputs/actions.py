# SPDX-License-Identifier: Apache-2.0
"""Acts on the gateways while frames flow: each action at its time.

In real time a thread does it. In virtual time the trial stands still at that time, and the gateways are asked while its
frames flow.
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

from espbench.errors import EspbenchError
from espbench.platforms.base import Moment, NotBack, TrialClock
from espbench.platforms.placement import NICE
from espbench.sentences import Code
from espbench.terms import Reason

# So much off its time an action may be: of trials of many seconds.
LATE_S = 1.0


@dataclass(frozen=True)
class Action:
    """An action so many seconds after the trial was asked for; what `act` returns is in its record.

    upsets: SAs are replaced or a gateway starts anew, so that the counters before and after do not belong together.
    breaks_links: a gateway is switched off and on, and with it the carrier of the links that lead to it.
    lasts: it takes as long as the gateway needs for it, which belongs to what is measured; otherwise it is done at
    once, and what it takes longer is the host's.
    """

    name: str
    at_s: float
    act: Callable[[], dict[str, Any]]
    upsets: bool = True
    lasts: bool = False
    breaks_links: bool = False


class ActionFailed(EspbenchError):
    """Something could not be done to a gateway; the text names what, and why."""


@dataclass(frozen=True)
class Performed:
    """An action that was done; ns of CLOCK_MONOTONIC, or of virtual time."""

    action: Action
    began_ns: int
    ended_ns: int
    facts: dict[str, Any]


@contextmanager
def performing(actions: Sequence[Action], clock: TrialClock | None = None) -> Iterator[list[Performed]]:
    """Do the actions one after the other while the context lasts; it ends when all are done, or one failed.

    clock: that of virtual time, where the context holds one trial. Raises ActionFailed of the first that failed, or its
    NotBack, unless the context itself raised.
    """
    performed: list[Performed] = []
    failed: list[EspbenchError] = []
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


def _moment(
    action: Action, clock: TrialClock, performed: list[Performed], failed: list[EspbenchError]
) -> Moment:
    """The action as a moment of a trial in virtual time; it is left out if one before it failed."""

    def act() -> None:
        if failed:
            return
        try:
            performed.append(_done(action, clock.now_ns))
        except EspbenchError as error:
            failed.append(error)

    return Moment(action.at_s, act)


def _done(action: Action, now_ns: Callable[[], int]) -> Performed:
    """Do it; ActionFailed or NotBack if it fails."""
    began_ns = now_ns()
    try:
        facts = action.act()
    except NotBack:
        raise
    except EspbenchError as error:
        raise ActionFailed(f"{action.name}: {error}") from error
    return Performed(action, began_ns, now_ns(), facts)


@contextmanager
def _thread(
    actions: Sequence[Action], performed: list[Performed], failed: list[EspbenchError]
) -> Iterator[None]:
    """Do the actions from a thread while the context lasts."""
    stop = threading.Event()
    start = time.monotonic()

    def work() -> None:
        # The priority is the sender's, which hardly ever leaves its CPU to others, and any CPU may be used: an action
        # is little work, and the trial depends on its being done in time.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            os.sched_setaffinity(threading.get_native_id(), range(os.cpu_count() or 1))
        for action in sorted(actions, key=lambda a: a.at_s):
            if stop.wait(max(0.0, start + action.at_s - time.monotonic())):
                return
            try:
                performed.append(_done(action, time.monotonic_ns))
            except EspbenchError as error:
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
    """Return a reason for each action that was not done when it should have been; times from the first frame."""
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
