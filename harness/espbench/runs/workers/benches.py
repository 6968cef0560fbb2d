# SPDX-License-Identifier: Apache-2.0
"""Finds the machines of a Dask cluster that measure in real time: their workers declare `--resources bench=1`."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Protocol

from espbench.errors import MachineLacks, UsageError
from espbench.measure import machine
from espbench.runs.workers.cluster import ClusterWorkers, worker_command
from espbench.runs.workers.messages import Done, Failed, ShareTask
from espbench.runs.workers.process import OnNews
from espbench.terms import MACHINE

RESOURCE = "bench"
_LOOK_EACH_S = 2.0


@dataclass(frozen=True)
class Bench:
    """A machine that measures in real time, and the Dask worker by which it is reached.

    name: the machine's fingerprint. host: its name on the network. address: the worker's. facts: the machine's `host`
    and `tools`, as a manifest has them.
    """

    name: str
    host: str
    address: str
    facts: Mapping[str, Any]


class Machines(Protocol):
    """The machines of a run in real time; each does one share at a time."""

    def present(self) -> Mapping[str, Bench]:
        """Return the machines that can be reached now, by name."""

    def is_there(self, bench: Bench) -> bool:
        """Return whether the worker by which a machine was reached is still there."""

    def busy_with(self, bench: Bench) -> str:
        """Return the name of the share of another run that a machine measures now; empty if there is none."""

    def submit(self, bench: Bench, task: ShareTask, on_news: OnNews) -> Future[Done | Failed]: ...
    def close(self) -> None: ...


class Benches:
    """The machines of a cluster that measure in real time; they may come and go."""

    def __init__(self, workers: ClusterWorkers) -> None:
        """MachineLacks if there is none; UsageError if two cannot be told apart."""
        self._workers = workers
        self._client = workers.client
        self._known: dict[str, Bench] = {}  # by the worker's address
        self._present: dict[str, Bench] = {}
        self._addresses: set[str] = set()  # of the workers that are there
        self._looked = float("-inf")
        self._executors: dict[str, Executor] = {}
        if not self.present():
            raise MachineLacks(
                f"--cluster {workers.address}: none of its workers has a machine to itself, so nothing can be measured "
                "there in real time",
                f"{worker_command(workers.address)} --no-dashboard --resources {RESOURCE}=1  "
                "(as root, one on each machine)",
            )

    def present(self) -> Mapping[str, Bench]:
        """Return the machines that can be reached now, by name; if a machine has several workers, one is used."""
        if time.monotonic() - self._looked > _LOOK_EACH_S and self._client.status == "running":
            found = self._client.scheduler_info(n_workers=-1)["workers"]
            addresses = [
                address for address, worker in found.items() if worker["resources"].get(RESOURCE, 0) >= 1
            ]
            self._ask([address for address in addresses if address not in self._known])
            benches = [self._known[address] for address in addresses if address in self._known]
            self._present = _by_name(benches)
            self._addresses = set(addresses)
            self._looked = time.monotonic()
        return self._present

    def is_there(self, bench: Bench) -> bool:
        """Return whether the machine's worker was there when the workers were last listed."""
        return bench.address in self._addresses

    def busy_with(self, bench: Bench) -> str:
        """Return the name of the share of another run that a machine measures now; empty if there is none."""
        return self._workers.busy_with(bench.address)

    def submit(self, bench: Bench, task: ShareTask, on_news: OnNews) -> Future[Done | Failed]:
        """Have a share measured on a machine; on_news is called in a thread of the Dask client."""
        if bench.address not in self._executors:
            self._executors[bench.address] = self._client.get_executor(
                pure=False,
                workers=[bench.address],
                resources={RESOURCE: 1},
                allow_other_workers=False,
                retries=0,
            )
        return self._workers.submit(task, on_news, self._executors[bench.address])

    def close(self) -> None:
        """End the running tasks on all machines; the cluster stays up."""
        self._workers.close()

    def _ask(self, addresses: list[str]) -> None:
        """Ask workers which machine they are on; a worker that has ended meanwhile is left out."""
        if addresses:
            answers = self._client.run(facts_here, workers=addresses, on_error="ignore")
            for address, facts in answers.items():
                host = facts.pop("name")
                self._known[address] = Bench(facts["host"][MACHINE], host, address, facts)


def benches_of(workers: ClusterWorkers) -> Benches:
    """Return the machines of a cluster that measure in real time; if that fails, close the workers."""
    try:
        return Benches(workers)
    except BaseException:
        workers.close()
        raise


def facts_here() -> dict[str, Any]:
    """Return this machine's `host` and `tools`, as a manifest has them, and its name on the network."""
    return {"name": socket.gethostname(), "host": machine.describe(), "tools": machine.tools()}


def _by_name(benches: list[Bench]) -> dict[str, Bench]:
    """Return the machines by name; UsageError if two have the same name: their figures could not be distinguished."""
    present: dict[str, Bench] = {}
    for bench in benches:
        first = present.setdefault(bench.name, bench)
        if first.host != bench.host:
            raise UsageError(
                f"the workers on {first.host} and {bench.host}: expected machines with a machine-id each\n"
                "  got: the same /etc/machine-id (a copied system?), so they cannot be told apart\n"
                f"  what to do: on {bench.host}: rm /etc/machine-id && systemd-machine-id-setup; start its worker again"
            )
    return present
