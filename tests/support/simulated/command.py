# SPDX-License-Identifier: Apache-2.0
"""Runs `espbench` with simulated gateways in virtual time, without a generator and without the machine's lock.

    python -m support.simulated.command run plan.yaml --out runs --jobs 2

`check` measures with it, too. `--jobs 1` would need real gateways.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from espbench.cli import run as command
from espbench.cli.gate import measuring
from espbench.cli.main import main
from espbench.generators import choose
from espbench.plan import Case
from espbench.runs.workers.messages import Done, Failed, News, Task, TrialMade
from espbench.runs.workers.process import OnNews
from espbench.terms import GatewayReading, Trial
from support.simulated.queue import QueueDut
from support.simulated.workers import Threads

PROGRAM = (sys.executable, "-m", "support.simulated.command")


PROOF = {"kind": "SA counters and blocked cleartext", "proven": True, "problems": []}


class Counting(Threads):
    """Simulated workers whose gateways report instructions per frame, and a proof of encryption."""

    def submit(self, task: Task, on_news: OnNews) -> Future[Done | Failed]:
        def tell(news: News, kept: Callable[[], None]) -> None:
            on_news(TrialMade(_counted(news.trial)) if isinstance(news, TrialMade) else news, kept)

        return super().submit(task, tell)


def _counted(trial: Trial) -> Trial:
    reading = GatewayReading(instructions_per_frame=9000.0, frames=trial.rx_frames)
    return trial.model_copy(update={"gateways": {"home": reading, "office": reading}, "proof": PROOF})


def _queue(case: Case) -> QueueDut:
    cost_us = (8 + case.mean_frame_size / 200) * (1 if case.stack.kind == "plain" else 3)
    return QueueDut(1e6 / cost_us, buffer=16)


def put_in_place() -> None:
    """Replace espbench's gateways, generator and machine lock, and the program that measures for `check`."""

    def nothing(*_: object, **__: object) -> Any:
        return contextlib.nullcontext()

    beds = SimpleNamespace(notes=lambda case: [], profiled=False)
    replaced: dict[str, Any] = {
        "LocalWorkers": lambda at_once: Counting(at_once, trial_s=0.0, queue=_queue),
        "Beds": lambda *_: beds,
        "require": nothing,
        "kits_of": lambda _: [],  # the workers of a cluster need no parts of guests
        "measuring": nothing,
    }
    for name, value in replaced.items():
        setattr(command, name, value)
    choose.require = nothing
    measuring.PROGRAM = PROGRAM


if __name__ == "__main__":
    put_in_place()
    main()
