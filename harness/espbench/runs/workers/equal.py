# SPDX-License-Identifier: Apache-2.0
"""The plug-in that makes the workers of a cluster equal to the driver, also those that come later.

A worker gets the parts of the plan's guests that its cache lacks. Only a worker with the driver's espbench and the
driver's parts gets the resource that the run's tasks ask for; the others say why not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence

from distributed import Worker, WorkerPlugin

from espbench.errors import EspbenchError
from espbench.platforms.virtual.parts import kits
from espbench.platforms.virtual.parts.copies import PackedPart, take
from espbench.runs.workers.versions import different_code, version_here

_PARTS_WAY_OUT = (
    "install the same espbench there, or remove that folder there: the worker gets the part from here"
)


class Unequal(Exception):
    """A worker that may do no task of the run: where it is, what was expected, what it has, what to do."""


class EqualWorkers(WorkerPlugin):  # type: ignore[misc]
    """Demands of each worker what the driver has; parts: those of each kit, by the kit's name."""

    def __init__(self, name: str, version: str, parts: Mapping[str, Sequence[PackedPart]]) -> None:
        self.name = name
        self._version = version
        self._parts = parts

    async def setup(self, worker: Worker) -> None:
        """Let the worker do tasks of this run, one at once; Unequal if it is another than the driver."""
        where = f"the worker at {worker.address} on {socket.gethostname()}"
        if (version := version_here()) != self._version:
            raise Unequal(different_code(where, self._version, version))
        try:
            # This takes a thread, since the scheduler gives up a worker that is silent for long.
            problem = await asyncio.to_thread(self._take)
        except (EspbenchError, OSError) as error:  # a full disk, a cache that is somebody else's
            raise Unequal(f"{where}: {error}") from None
        if problem:
            raise Unequal(f"{where}: {problem}\n  what to do: {_PARTS_WAY_OUT}")
        await worker.set_resources(**{self.name: 1})

    def _take(self) -> str:
        problems = [take(kit, self._parts[kit.name]) for kit in kits.KITS if kit.name in self._parts]
        return "; ".join(filter(None, problems))
