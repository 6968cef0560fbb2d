# SPDX-License-Identifier: Apache-2.0
"""Judges whether the times in an IKE daemon's log can be trusted: this machine's clock did not step meanwhile, and its
other programs did not take the gateways' CPUs.

Such times have the system's clock, which the gateways of this machine share with it. A trial with frames has the same
limits (measure/validity/faults.py), but they are of the time in which frames are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from espbench.measure import looks
from espbench.measure.inputs.setup import Setup
from espbench.measure.validity.faults import disturbance
from espbench.sentences import Code
from espbench.stacks.daemons.sa_events import Span
from espbench.terms import Reason

# A step of the clock matters from this on, ms; and from this share of the time on, because NTP corrects a clock by up
# to 0.05 % without a step.
_STEP_MS = 5.0
_STEP_SHARE = 0.001


@contextmanager
def watched(setup: Setup, reasons: list[Reason]) -> Iterator[None]:
    """Watch this machine while daemons negotiate; add to `reasons` why these times cannot be trusted.

    In virtual time no clock steps, and no program can disturb a gateway.
    """
    if setup.bed.virtual_time:
        yield
        return
    before = looks.look(setup)
    yield
    host = looks.without_frames(setup, before, looks.look(setup))
    if abs(host["clock_step_ms"]) > max(_STEP_MS, 1e3 * _STEP_SHARE * host["elapsed_s"]):
        reasons.append(Reason.of(Code.CLOCK_STEPPED, ms=host["clock_step_ms"]))
    reasons += disturbance(0.0, 0.0, host, final=False)


def backwards(times: Iterable[Span]) -> list[Reason]:
    """Return a reason if negotiations ended before they began, by the daemon's log: its clock stepped."""
    n = sum(span.seconds < 0 for span in times)
    return [Reason.of(Code.ENDED_BEFORE_BEGUN, n=n)] if n else []
