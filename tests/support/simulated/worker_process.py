# SPDX-License-Identifier: Apache-2.0
"""The program of a worker process like espbench's, with simulated gateways; its trials are waits.

Runs as `python -m support.simulated.worker_process SECONDS FD ID`: SECONDS is the time of each trial; for the others
see espbench.runs.workers.worker. The result in its last message is the sum of its waits, s.
"""

from __future__ import annotations

import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from espbench.runs.procedure_kinds import procedure_for
from espbench.runs.workers.messages import CaseTask, Done, Hello, Task, TrialMade
from espbench.runs.workers.versions import version_here
from espbench.this_machine import ending
from support.simulated.workers import queue_of


def main() -> None:
    """Serve the driver until it is gone or ends this process."""
    ending.listen()
    with Connection(int(sys.argv[2])) as connection, tempfile.TemporaryDirectory() as logs:
        connection.send(Hello(Path(logs), version_here()))
        try:
            while True:
                task: Task = connection.recv()
                assert isinstance(task, CaseTask)
                connection.send(Done(_measured(task, float(sys.argv[1]), connection)))
        except (EOFError, ConnectionError, KeyboardInterrupt):
            return  # the driver is gone, or has ended this process


def _measured(task: CaseTask, trial_s: float, connection: Connection) -> float:
    """Make the trials that a case still needs; return the sum of their waits, s."""
    dut = queue_of(task.case)
    running = procedure_for(task.case, task.known, task.trials)
    slept_s = 0.0
    while (request := running.next()) is not None:
        time.sleep(trial_s)
        slept_s += trial_s
        record = dut.trial(request, task.case.id, len(running.trials))
        connection.send(TrialMade(record))
        connection.recv()
        running.add(record)
    return slept_s


if __name__ == "__main__":
    main()
