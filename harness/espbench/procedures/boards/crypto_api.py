# SPDX-License-Identifier: Apache-2.0
"""The driver-level test of a UML guest in real time. As with trials, a figure that the host disturbed is measured
again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from espbench.catalogue import board_crypto
from espbench.measure.validity import host
from espbench.measure.validity.faults import STARVATION_LIMIT_PCT
from espbench.platforms.base import Testbed
from espbench.platforms.uml import crypto_api
from espbench.results.accelerator import Variant

ATTEMPTS = 5
_PROC_CRYPTO = "/proc/crypto"


class UmlGuest:
    """Asks the guest of gateway Home; usable with `closing`, which removes the program that the guest runs."""

    def __init__(self, bed: Testbed) -> None:
        self._bed = bed
        self._gateway = bed.gateways["home"]
        self._folder = tempfile.TemporaryDirectory(prefix="espbench-crypto-api-")
        self._program = crypto_api.build(Path(self._folder.name))
        crypto_api.load(self._gateway)

    def close(self) -> None:
        """Remove the program."""
        self._folder.cleanup()

    def ask(self, suite: str, size: int, operations: int, variant: Variant) -> dict[str, Any]:
        """Run one test and return the guest's answer.

        If the host disturbed every attempt, disturbed_pct is the share of time that others took in the last one, else
        None.
        """
        asked = crypto_api.Asked(
            suite, size, operations, variant.operation, variant.data, variant.keys, variant.check
        )
        for _ in range(ATTEMPTS):
            before = self._look()
            said = crypto_api.measure(self._gateway, self._program, asked)
            taken = self._taken(before)
            if taken <= STARVATION_LIMIT_PCT:
                break
        algorithm = crypto_api.SUITES[suite].name
        driver = board_crypto.drivers(self._gateway.read([_PROC_CRYPTO])[_PROC_CRYPTO] or "").get(algorithm)
        is_disturbed = taken > STARVATION_LIMIT_PCT
        return {**said, "driver": driver or algorithm, "disturbed_pct": taken if is_disturbed else None}

    def _look(self) -> tuple[host.HostSnapshot, int | None, int | None, int | None]:
        gateway = self._gateway
        return host.look(), gateway.cpu_ns(), gateway.waited_ns(), self._bed.kept_waiting_ns()

    def _taken(self, before: tuple[host.HostSnapshot, int | None, int | None, int | None]) -> float:
        """Return the share of the time since `before` that others took from the guest, %."""
        first, *counted = before
        last, *counters = self._look()
        cpu_ns, waited_ns, kept_ns = (
            None if was is None or now is None else now - was
            for was, now in zip(counted, counters, strict=True)
        )
        record = host.compare(
            first, last, gateway_cpus=set(self._bed.placement.cpus["home"]), gateway_ns=cpu_ns,
            gateways_waited_ns=waited_ns, kept=None if kept_ns is None else host.Kept(kept_ns),
            sender_cpus=set(), sender_ns=0,
        )  # fmt: skip
        steal = max(record["steal_pct"].values(), default=0.0) - float(record["tick_pct"])
        return max(record["starved_pct"] or 0.0, steal)
