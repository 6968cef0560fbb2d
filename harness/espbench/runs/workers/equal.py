# SPDX-License-Identifier: Apache-2.0
"""Makes the workers of a cluster equal to the driver, also workers that join later, by a Dask plug-in.

A worker gets the parts of the plan's guests that its cache lacks, and the user's kernels and modules. If a worker has
another espbench, or other parts, the run is refused at its start; a worker that joins later is closed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence

from distributed import Worker, WorkerPlugin

from espbench.errors import EspbenchError
from espbench.platforms.virtual.own import own_files
from espbench.platforms.virtual.own.own_files import OwnFiles
from espbench.platforms.virtual.parts import kits
from espbench.platforms.virtual.parts.copies import PackedPart, take
from espbench.runs.workers.versions import different_code, open_to_others, too_many_threads, version_here

_PARTS_WAY_OUT = (
    "install the same espbench there, or remove that folder there: the worker gets the part from here"
)


class Unequal(Exception):
    """Says why a worker must not do tasks of the run: where it is, what was expected, what it has, what to do."""


class EqualWorkers(WorkerPlugin):  # type: ignore[misc]
    """Requires that each worker has the driver's espbench, parts and files, and sends it those that it lacks."""

    def __init__(
        self,
        version: str,
        parts: Mapping[str, Sequence[PackedPart]],
        own: Sequence[OwnFiles],
        present: frozenset[str],
    ) -> None:
        """version: of the driver's espbench. parts: those of each kit, by the kit's name. own: the user's kernels and
        modules. present: the addresses of the workers that are there at the start of the run.
        """
        self._version = version
        self._parts = parts
        self._own = own
        self._present = present

    async def setup(self, worker: Worker) -> None:
        """Give the worker the files that it lacks; Unequal if it differs from the driver.

        A worker that differs and joined after the start is closed, too.
        """
        where = f"the worker at {worker.address} on {socket.gethostname()}"
        # A worker's address may be that of this machine alone although it listens on all.
        open_ones = [open_to_others(where, listener.listen_address) for listener in worker.listeners]
        if problem := (
            next(filter(None, open_ones), "")
            or too_many_threads(where, worker.state.nthreads)
            or await self._problem(where)
        ):
            if worker.address not in self._present:
                # Dask would let it do tasks all the same.
                worker.loop.add_callback(worker.close, reason="it is not equal to the driver of a run")
            raise Unequal(problem)

    async def _problem(self, where: str) -> str:
        if (version := version_here()) != self._version:
            return different_code(where, self._version, version)
        try:
            # This runs in a thread, because the scheduler gives up a worker that does not answer for long.
            problem = await asyncio.to_thread(self._take)
        except (EspbenchError, OSError) as error:  # a full disk, a cache that is somebody else's
            return f"{where}: {error}"
        return f"{where}: {problem}\n  what to do: {_PARTS_WAY_OUT}" if problem else ""

    def _take(self) -> str:
        problems = [take(kit, self._parts[kit.name]) for kit in kits.KITS if kit.name in self._parts]
        problems += [own_files.take(sent) for sent in self._own]
        return "; ".join(filter(None, problems))
