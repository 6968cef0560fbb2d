# SPDX-License-Identifier: Apache-2.0
"""Sends the frames that belong to no trial: the learning frames before each trial, and traffic that warms gateways
up.

No figure contains them. But they must be encrypted like all others: cleartext among them ends the case
(docs/method.md, rule 1).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from espbench.errors import EspbenchError
from espbench.generators.base import Offered
from espbench.measure.inputs.setup import Setup, TrialBroken, blame
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, encryption
from espbench.measure.proof.readiness import InClear
from espbench.measure.validity import network_events
from espbench.terms import Reason

# Ten frames in each direction; slow gateways must forward them too. In virtual time they take longer, because another
# rate would change the state in which trials begin, and with it the figures of all earlier runs.
_LEARNING_FRAMES = 10
_LEARNING_FPS, _LEARNING_FPS_VIRTUAL = 500.0, 100.0


def learn(
    setup: Setup,
    traffic: Traffic,
    wait_s: float,
    *,
    fragments: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Send a few learning frames (RFC 2544 23 b), and wait `wait_s`. Raise InClear if one of them was not encrypted."""
    virtual = setup.bed.virtual_time
    fps = _LEARNING_FPS_VIRTUAL if virtual else _LEARNING_FPS

    def send() -> Offered:
        offered = setup.generator.offer(
            setup.streams(traffic, fps * traffic.directions),
            _LEARNING_FRAMES / fps,
            wait_s,
            quiet_s=None if virtual else min(wait_s, 0.05),
        )
        if not virtual:
            sleep(wait_s)
        return offered

    _without_cleartext("learning frames", setup, send, fragments=fragments, sleep=sleep)


def warm_up(
    setup: Setup,
    traffic: Traffic,
    load_fps: float,
    duration_s: float,
    *,
    fragments: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Send traffic that warms up caches, flows and the CPU's clock.

    Raise TrialBroken if a gateway or the generator fails, InClear if a frame was not encrypted.
    """

    def send() -> Offered:
        return setup.generator.offer(setup.streams(traffic, load_fps), duration_s, 1.0, quiet_s=0.1)

    try:
        _without_cleartext("warm-up", setup, send, fragments=fragments, sleep=sleep)
    except InClear:
        raise
    except EspbenchError as error:
        raise TrialBroken(*blame(setup, error)) from error


def _without_cleartext(
    name: str,
    setup: Setup,
    send: Callable[[], Offered],
    *,
    fragments: bool,
    sleep: Callable[[float], None],
) -> None:
    """Send the frames. Raise InClear if counters at rest, before and after, show that some crossed in clear.

    In virtual time the gateways' counters are not read here: reading costs the gateways instructions, which the
    figures of the trials would show. There, only frames that the tester itself received in clear count.
    """
    if not setup.encrypts:
        send()
        return
    if setup.bed.virtual_time:
        leaks = encryption.leaks(setup, send(), {}, fragments=fragments, gateways_in_doubt=True)
    else:
        leaks = _counted_leaks(setup, send, fragments=fragments, sleep=sleep)
    if leaks:
        raise InClear(f"{name}: {'; '.join(map(str, leaks))}")


def _counted_leaks(
    setup: Setup, send: Callable[[], Offered], *, fragments: bool, sleep: Callable[[float], None]
) -> list[Reason]:
    """Send the frames; return the reasons to believe that some crossed in clear. Counters in doubt give no reason."""
    if setup.bed.counters_late_s:
        sleep(setup.bed.counters_late_s)  # else earlier frames could be counted as these, beside the SAs
    with network_events.monitor(setup) as monitor:
        before, at_rest_before = counters.read_until_rest(setup.bed, setup.stack, sleep)
        offered = send()
        first, at_rest_after = counters.read_until_rest(setup.bed, setup.stack, sleep)

    def leaks(delta: counters.Counters, *, gateways_in_doubt: bool = False) -> list[Reason]:
        return encryption.leaks(
            setup,
            offered,
            delta,
            fragments=fragments,
            tester_in_doubt=encryption.tester_in_doubt(offered),
            gateways_in_doubt=gateways_in_doubt,
        )

    delta = counters.moved(before, counters.read_again(setup.bed, setup.stack, before, first, leaks, sleep))
    events = network_events.heard(monitor)
    changed = network_events.faults(events, setup, [], offered.start_ns, upset=False)
    at_rest = at_rest_before and at_rest_after
    in_doubt = not at_rest or bool(changed or counters.backwards(delta) or counters.rekeyed(delta))
    return leaks(delta, gateways_in_doubt=in_doubt)
