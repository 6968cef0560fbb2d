# SPDX-License-Identifier: Apache-2.0
"""Reuses a trial's record where a second trial would be the same to the last instruction.

In virtual time each trial of a case begins in the same state, and the host has no influence on it. So a second trial
for the same request executes the same instructions, and its record has the same figures. Tests ask for such trials: a
search repeats a load until it has enough frames to judge its goal, and latency takes twenty trials. The gateways need
not execute them again.
"""

from __future__ import annotations

from collections.abc import Callable

from espbench.measure.inputs.setup import Request
from espbench.measure.record import OfCase
from espbench.platforms.base import Testbed
from espbench.terms import SAME_AS_TRIAL, SAME_EACH_TIME, Trial


class Repeated:
    """Keeps the records of the present case by request."""

    def __init__(self) -> None:
        self._case = ""
        self._made: dict[Request, Trial] = {}

    def record(self, bed: Testbed, request: Request, of: OfCase, make: Callable[[], Trial]) -> Trial:
        """Return the record of the next trial: a copy of this case's record for the same request if there is one,
        else `make()`.
        """
        if not bed.same_each_time or request.shape.noise:  # noise has no hash
            return make()
        if of.case != self._case:
            self._case, self._made = of.case, {}
        earlier = self._made.get(request)
        if earlier is None or bed.profiled:
            made = make()
            made = self._made[request] = made.model_copy(update={"host": made.host | {SAME_EACH_TIME: True}})
            return made
        host = earlier.host | {SAME_AS_TRIAL: earlier.sequence}
        return earlier.model_copy(update={"sequence": of.sequence, "host": host})
