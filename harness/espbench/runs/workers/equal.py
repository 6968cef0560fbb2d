# SPDX-License-Identifier: Apache-2.0
"""The plug-in that makes the workers of a cluster equal to the driver, also those that come later.

A worker gets the parts of the plan's guests that its cache lacks, and the user's kernels and modules. One that has
another espbench, or other parts, says so: at the start of a run the run is refused, later the worker ends.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence

from distributed import Worker, WorkerPlugin

from espbench.errors import EspbenchError
from espbench.platforms.virtual.parts import kits, own_files
from espbench.platforms.virtual.parts.copies import PackedPart, take
from espbench.platforms.virtual.parts.own_files import OwnFiles
from espbench.runs.workers.versions import different_code, version_here

_PARTS_WAY_OUT = (
    "install the same espbench there, or remove that folder there: the worker gets the part from here"
)


class Unequal(Exception):
    """A worker that may do no task of the run: where it is, what was expected, what it has, what to do."""


class EqualWorkers(WorkerPlugin):  # type: ignore[misc]
    """Demands of each worker what the driver has."""

    def __init__(
        self,
        version: str,
        parts: Mapping[str, Sequence[PackedPart]],
        own: Sequence[OwnFiles],
        present: frozenset[str],
    ) -> None:
        """parts: those of each kit, by the kit's name. present: the addresses of the workers that are there by now.

        own: the user's kernels and modules.
        """
        self._version = version
        self._parts = parts
        self._own = own
        self._present = present

    async def setup(self, worker: Worker) -> None:
        """Give the worker what it lacks; Unequal if it is another than the driver, and its end if it came later."""
        if problem := await self._problem(f"the worker at {worker.address} on {socket.gethostname()}"):
            if worker.address not in self._present:
                # Dask would let it do tasks all the same.
                worker.loop.add_callback(worker.close, reason="it is not equal to the driver of a run")
            raise Unequal(problem)

    async def _problem(self, where: str) -> str:
        if (version := version_here()) != self._version:
            return different_code(where, self._version, version)
        try:
            # This takes a thread, since the scheduler gives up a worker that is silent for long.
            problem = await asyncio.to_thread(self._take)
        except (EspbenchError, OSError) as error:  # a full disk, a cache that is somebody else's
            return f"{where}: {error}"
        return f"{where}: {problem}\n  what to do: {_PARTS_WAY_OUT}" if problem else ""

    def _take(self) -> str:
        problems = [take(kit, self._parts[kit.name]) for kit in kits.KITS if kit.name in self._parts]
        problems += [own_files.take(sent) for sent in self._own]
        return "; ".join(filter(None, problems))
