# SPDX-License-Identifier: Apache-2.0
"""What is done to the gateways while frames flow: each action at its time, from a thread of its own."""

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
from espbench.platforms.base import NotBack
from espbench.platforms.placement import NICE
from espbench.sentences import Code
from espbench.terms import Reason

# So much off its time an action may be: of trials of many seconds.
LATE_S = 1.0


@dataclass(frozen=True)
class Action:
    """Something done so many seconds after the trial was asked for; what `act` returns is told of it.

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
    """An action that was done; CLOCK_MONOTONIC ns."""

    action: Action
    began_ns: int
    ended_ns: int
    told: dict[str, Any]


@contextmanager
def performing(actions: Sequence[Action]) -> Iterator[list[Performed]]:
    """Does the actions one after the other while the context lasts; it ends when all are done, or one failed.

    ActionFailed of the first that failed, or its NotBack, unless the context itself raised.
    """
    performed: list[Performed] = []
    if not actions:
        yield performed
        return
    stop = threading.Event()
    failed: list[EspbenchError] = []
    start = time.monotonic()

    def work() -> None:
        # As high as the sender, which hardly ever leaves its CPU to others, and on any CPU: what is done then is
        # little, and to do it in time is what the trial is about.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
            os.sched_setaffinity(threading.get_native_id(), range(os.cpu_count() or 1))
        for action in sorted(actions, key=lambda a: a.at_s):
            if stop.wait(max(0.0, start + action.at_s - time.monotonic())):
                return
            began = time.monotonic_ns()
            try:
                told = action.act()
            except NotBack as error:
                failed.append(error)
                return
            except EspbenchError as error:
                failed.append(ActionFailed(f"{action.name}: {error}"))
                return
            performed.append(Performed(action, began, time.monotonic_ns(), told))

    worker = threading.Thread(target=work, name="actions")
    worker.start()
    try:
        yield performed
    except BaseException:
        stop.set()
        raise
    finally:
        worker.join()
    if failed:
        raise failed[0]


def untimely(performed: Sequence[Performed], first_frame_ns: int) -> list[Reason]:
    """Why a trial is not what it says: something was not done when it should have been; times from the first frame."""
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
