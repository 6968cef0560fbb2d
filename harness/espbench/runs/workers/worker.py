# SPDX-License-Identifier: Apache-2.0
"""The program of a worker process: does one task after the other until its driver is gone, and leaves nothing behind.

Runs as `python -m espbench.runs.workers.worker FD ID PARENT`: FD is the socket to the driver (messages.py), ID the name
of its journal, PARENT the driver's process. On SIGTERM, or when its driver is gone for any reason, it undoes all that
it made and ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from espbench.errors import EspbenchError, Interrupted
from espbench.measure.inputs.usual_speed import UsualSpeed
from espbench.platforms.virtual.parts import recipe
from espbench.procedures.boards import accelerator
from espbench.results.accelerator import AcceleratorResult
from espbench.results.durable import refused_by_disk, write_failure
from espbench.runs import parts
from espbench.runs.beds import Beds
from espbench.runs.one_case import OneCase
from espbench.runs.platform_kinds.shared.platform import Workspace
from espbench.runs.procedure_kinds import procedure_for
from espbench.runs.setups import Setups
from espbench.runs.workers.driver import Driver
from espbench.runs.workers.messages import (
    AcceleratorTask,
    CaseTask,
    Done,
    Failed,
    Hello,
    RunFacts,
    ShareTask,
    Task,
)
from espbench.runs.workers.shares import measure_share
from espbench.runs.workers.versions import version_here
from espbench.this_machine import ending, registry
from espbench.this_machine.registry import Registry


@dataclass
class _Run:
    """The tools for the tasks of one run."""

    pickled: bytes
    beds: Beds
    setups: Setups
    one_case: OneCase


class Worker:
    """Does tasks; its own registry lists all that it makes for them."""

    def __init__(self, registry: Registry, driver: Driver) -> None:
        self._registry = registry
        self._driver = driver
        self._run: _Run | None = None
        self._resolved: Any = None

    def do(self, task: Task) -> Any:
        """Do a task and return its result; a case returns no trials, since the driver already has them."""
        self._driver.manifest = task.manifest
        if isinstance(task, ShareTask):
            measure_share(task, self._registry, self._driver)
            return None
        run = self._parts(task.run)
        if isinstance(task, AcceleratorTask):
            return self._accelerator(task, run)
        return self._case(task, run)

    def _case(self, task: CaseTask, run: _Run) -> None:
        running = procedure_for(task.case, task.known, task.trials)
        pair = run.one_case.measure(running, None, self._driver.time_left)
        if pair is not None:
            pair.bed.release()

    def _accelerator(self, task: AcceleratorTask, run: _Run) -> AcceleratorResult:
        results: list[AcceleratorResult] = []
        dut, crypto = task.figure[:2]
        accelerator.measure_dut(
            dut,
            crypto,
            [task.figure[2:]],
            task.operations,
            run.beds,
            lambda: parts.new_generator(self._resolved, self._registry, self._driver.logs),
            results.append,
        )
        return results[0]

    def _parts(self, pickled: bytes) -> _Run:
        """Return the tools for a run; make them unless they are those of the run before."""
        if self._run is not None and self._run.pickled == pickled:
            return self._run
        facts: RunFacts = pickle.loads(pickled)
        self._resolved = facts.resolved
        logs = self._driver.logs
        assert facts.placement is not None
        workspace = Workspace(self._registry, logs, facts.placement, facts.profiled)
        platforms = parts.platforms_of(facts.resolved, _as_here(facts))
        for platform in platforms.values():
            platform.use_copies({path: recipe.store() / place for path, place in facts.copies.items()})
        beds = Beds(facts.resolved, platforms, workspace, self._driver.note)
        setups = Setups(
            facts.resolved,
            facts.cases,
            self._driver,
            beds,
            lambda: parts.new_generator(facts.resolved, self._registry, logs),
            UsualSpeed(),
        )
        one_case = OneCase(setups, self._driver.append, self._driver, virtual_time=True)
        self._run = _Run(pickled, beds, setups, one_case)
        return self._run


def _as_here(facts: RunFacts) -> parts.Devices:
    """Return the devices; if the user's files were sent, with these files' paths in this machine's cache."""

    def here(path: str) -> str:
        return str(recipe.store() / facts.copies[path]) if path in facts.copies else path

    return [(name, profile and profile.with_paths(here)) for name, profile in facts.devices]


def main() -> NoReturn:
    """Serve the driver, then end; the exit code only shows how this process ended."""
    ending.listen()
    code = 0
    try:
        ending.with_parent(int(sys.argv[3]))
        with Connection(int(sys.argv[1])) as connection:
            _serve(connection, sys.argv[2])
    except KeyboardInterrupt:
        code = Interrupted.exit_code
    ending.deaf()
    with contextlib.suppress(EspbenchError):  # the journal stays, and the driver reads it
        registry.undo_the_rest()
    sys.exit(code)


def _serve(connection: Connection, run_id: str) -> None:
    with Registry(run_id) as made:
        logs = made.directory("worker")
        try:
            connection.send(Hello(logs, version_here()))
            worker = Worker(made, Driver(connection, logs))
            while True:
                task: Task = connection.recv()
                connection.send(_answer(worker, task, logs))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return  # the driver is gone


def _answer(worker: Worker, task: Task, logs: Path) -> Done | Failed:
    try:
        result = worker.do(task)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except EspbenchError as error:
        return Failed(_as_sent(error), logs=_written(logs))
    except Exception as error:
        if isinstance(error, OSError) and refused_by_disk(error):
            failure = write_failure(error.filename or logs, error, "every trial before is safe")
            return Failed(failure, logs=_written(logs))
        # A fault of espbench's own is reported to the driver, so that it is not lost with this process.
        return Failed(None, traceback.format_exc(), _written(logs))
    return Done(result, _written(logs))


def _as_sent(error: EspbenchError) -> EspbenchError:
    """Return the error, or an EspbenchError with its text if it cannot be pickled without a loss."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever the error's class raises
        return EspbenchError(str(error))
    return error if str(again) == str(error) else EspbenchError(str(error))


def _written(logs: Path) -> dict[str, bytes]:
    """Return the contents of the logs by name, and empty them; programs that write into them append."""
    contents = {}
    for file in sorted(logs.iterdir()):
        contents[file.name] = file.read_bytes()
        os.truncate(file, 0)
    return contents


if __name__ == "__main__":
    main()
