# SPDX-License-Identifier: Apache-2.0
"""Shows, before the first trial of a pair, that the network works, that cleartext is blocked, and that the tunnel
carries all frames.

The steps have this order, as in libreswan's own tests. Frames that arrive at the end *were* encrypted, since nothing
passed in clear before (docs/method.md, rule 1).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from espbench.errors import EspbenchError
from espbench.measure.inputs import esp_peer
from espbench.measure.inputs.esp_peer import EspPeer
from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, encryption
from espbench.sentences import Code

PROBE_FRAMES = 50  # one for each tunnel, if there are more
_PROBE_FPS = 500.0
# This is the time to wait for frames that must not arrive, and, in real time, for those that must. The wait
# ends as soon as all have arrived.
_PROBE_RESIDUE_S, _MUST_COME_S = 1.0, 5.0
_QUIET_S = 0.15
# A host that stands still loses frames of a probe too. A broken path never lets all of them through.
_ATTEMPTS = 3
# SA counters that miss frames are read again: a gateway that was kept from its CPU may count late.
_READ_AGAIN, _LATE_COUNTERS_S = 15, 0.2


class NotReady(EspbenchError):
    """The DUT does not do what the case needs, so nothing may be measured on it.

    code: PROBES_LOST if probe frames were lost that should have passed; a host that stands still also causes this.
    PROBES_NOT_SENT if the generator sent too few, which says nothing about the DUT.
    """

    def __init__(self, text: str, code: Code = Code.NOT_READY) -> None:
        super().__init__(text)
        self.code = code


class InClear(NotReady):
    """Frames crossed without encryption while the tunnel was set up: the case is VIOLATED (docs/method.md, rule 1)."""


def establish(setup: Setup, traffic: Traffic) -> dict[str, Any]:
    """Bring the stack up step by step, and return what each step showed, for the Security Context.

    Raise NotReady, or InClear if cleartext passed.
    """
    probe = replace(traffic, direction="both-ways", networks=1, ports=1, frames=(min(traffic.frames),))
    if setup.stack is None:
        arrived, sent = _probe(setup, replace(probe, direction=traffic.direction))
        if arrived == 0:
            raise NotReady(
                f"no frame came back through the DUT: {sent} were sent; check the gateways' addresses, "
                "its routes to the other port's network, and that it forwards",
                Code.PROBES_LOST,
            )
        return {"path": f"{arrived} of {sent} probe frames came through the DUT"}

    if not setup.stack.encrypts:
        setup.stack.establish()
        arrived, sent = _all_of_a_probe(setup, probe)
        if arrived != sent:
            raise NotReady(
                f"plain forwarding does not work: {arrived} of {sent} probe frames arrived", Code.PROBES_LOST
            )
        return {"plain forwarding": f"{arrived} of {sent} probe frames arrived"}

    shown = {}
    arrived, sent = _all_of_a_probe(setup, probe)
    if arrived != sent:
        raise NotReady(
            f"the network itself does not work: {arrived} of {sent} plain probe frames arrived",
            Code.PROBES_LOST,
        )
    shown["network before IPsec"] = f"{arrived} of {sent} probe frames arrived"

    setup.stack.block()
    crossed = _probe_of_esp(setup, probe)
    arrived, sent = crossed.arrived, crossed.sent
    if arrived:
        text = f"cleartext is not blocked: {arrived} of {sent} probe frames arrived without an SA"
        if crossed.others:
            raise NotReady(
                f"{text}, or others sent frames to the tester, which its generator cannot tell from its own; end "
                "such traffic on the ports' networks, or use generator: native"
            )
        raise InClear(text)
    shown["cleartext blocked, tunnel down"] = f"{arrived} of {sent} probe frames arrived"

    setup.stack.establish()
    setup.peer = EspPeer.of(setup.bed, setup.stack)
    arrived, sent = carried(setup, probe)
    who = "the gateway's SAs, and opened or sealed by the tester" if setup.peer else "both gateways' SAs"
    shown["tunnel up"] = f"{arrived} of {sent} probe frames arrived, counted by {who}"
    return shown


def carried(setup: Setup, probe: Traffic, sleep: Callable[[float], None] = time.sleep) -> tuple[int, int]:
    """Send a probe through every tunnel, both ways, and return (arrived, sent): all frames arrived, and all were
    encrypted.

    Raise NotReady if frames did not arrive, InClear if some were not encrypted. Cleartext in a probe that lost frames
    is not forgotten because the next probe lost none.
    """
    for _ in range(_ATTEMPTS):
        before = counters.read(setup.bed, setup.stack)
        crossed = _probe_of_esp(setup, probe, _must_come_s(setup))
        moved = counters.moved(before, counters.read(setup.bed, setup.stack))
        if crossed.leaks:
            raise InClear("; ".join(crossed.leaks))
        if crossed.arrived == crossed.sent:
            break
        all_opened = partial(_all_opened, setup, crossed.arrived)
        moved = _once_counted(setup, before, moved, all_opened, sleep)
        _refuse_unopened(setup, crossed, moved)
    if crossed.arrived != crossed.sent:
        errors = {side: c.sas.errors for side, c in moved.items() if c.sas.errors}
        why = "; ".join([f"xfrm errors {errors}", *crossed.wrong])
        raise NotReady(
            f"the tunnel does not carry traffic: {crossed.arrived} of {crossed.sent} frames arrived; {why}",
            Code.PROBES_LOST,
        )
    moved = _once_counted(setup, before, moved, lambda now: not _uncounted(now, crossed.sent), sleep)
    replaced = counters.rekeyed(moved)
    for side, c in moved.items():
        if c.sas.encrypted + c.sas.decrypted != crossed.sent:
            text = (
                f"{side}: {crossed.sent} frames crossed, its SAs counted {c.sas.encrypted} encrypted "
                f"and {c.sas.decrypted} decrypted"
            )
            # The counts of SAs that were replaced meanwhile are not known.
            in_doubt = replaced or crossed.others
            raise InClear(text) if _uncounted({side: c}, crossed.sent) and not in_doubt else NotReady(text)
    if crossed.wrong:
        raise NotReady(f"the gateway's ESP is not as it should be: {'; '.join(crossed.wrong)}")
    return crossed.arrived, crossed.sent


def _once_counted(
    setup: Setup,
    before: counters.Counters,
    moved: counters.Counters,
    complete: Callable[[counters.Counters], bool],
    sleep: Callable[[float], None],
) -> counters.Counters:
    """Return the changes of the counters since `before`. In real time, read them again until they are complete, but not
    for ever.
    """
    for _ in range(0 if setup.bed.virtual_time else _READ_AGAIN):
        if complete(moved):
            break
        sleep(_LATE_COUNTERS_S)
        moved = counters.moved(before, counters.read(setup.bed, setup.stack))
    return moved


def _opened(setup: Setup, moved: counters.Counters) -> int:
    """Return how many frames of a probe at most arrived after they had been encrypted: a gateway decrypted each of
    them, or, if the tester is the other end of the tunnel, the only gateway encrypted it or decrypted it.
    """
    sealed = sum(c.sas.encrypted for c in moved.values()) if setup.bed.ciphertext else 0
    return sealed + sum(c.sas.decrypted for c in moved.values())


def _all_opened(setup: Setup, arrived: int, moved: counters.Counters) -> bool:
    return _opened(setup, moved) >= arrived


def _refuse_unopened(setup: Setup, crossed: _Probe, moved: counters.Counters) -> None:
    """Raise InClear if more frames of a probe with losses arrived than were encrypted, and no count is in doubt."""
    opened = _opened(setup, moved)
    if crossed.arrived > opened and not (
        crossed.in_doubt or counters.rekeyed(moved) or counters.backwards(moved)
    ):
        raise InClear(
            f"{crossed.arrived} of {crossed.sent} frames arrived, the gateways' SAs counted only {opened} of them"
        )


def _uncounted(moved: counters.Counters, sent: int) -> bool:
    """Return whether a gateway's SAs counted fewer frames than crossed."""
    return any(c.sas.encrypted + c.sas.decrypted < sent for c in moved.values())


def _all_of_a_probe(setup: Setup, traffic: Traffic) -> tuple[int, int]:
    """Return (arrived, sent) of the first probe without loss, or of the last probe."""
    for _ in range(_ATTEMPTS):
        crossed = _probe_of_esp(setup, traffic, _must_come_s(setup))
        if crossed.arrived == crossed.sent:
            break
    return crossed.arrived, crossed.sent


def _must_come_s(setup: Setup) -> float:
    return _PROBE_RESIDUE_S if setup.bed.virtual_time else _MUST_COME_S


def _probe(setup: Setup, traffic: Traffic) -> tuple[int, int]:
    """Return (arrived, sent) of a few frames at a rate any DUT can do. Raise NotReady if too few were sent to show
    anything.
    """
    crossed = _probe_of_esp(setup, traffic)
    return crossed.arrived, crossed.sent


@dataclass(frozen=True)
class _Probe:
    """The counts of a probe; wrong: faults of the ESP that the tester opened itself; leaks: what it received there in
    clear. in_doubt: the tester's own counts may be wrong. others: frames of others may be among those that arrived.
    """

    arrived: int
    sent: int
    wrong: list[str]
    leaks: list[str]
    in_doubt: bool = False
    others: bool = False


def _probe_of_esp(setup: Setup, traffic: Traffic, residue_s: float = _PROBE_RESIDUE_S) -> _Probe:
    """Send a few frames, at least one through each tunnel and in each direction, and return their counts. If the host
    let less than half of them leave, or not one for each tunnel, send them again; all of them count.

    Raise NotReady if too few were sent in all attempts.
    """
    frames = max(PROBE_FRAMES, traffic.tunnels)
    arrived, sent, wrong, leaks = 0, 0, list[str](), list[str]()
    in_doubt = others = False
    for _ in range(_ATTEMPTS):
        offered = setup.generator.offer(
            setup.streams(traffic, _PROBE_FPS * traffic.directions),
            frames / _PROBE_FPS,
            residue_s,
            quiet_s=_QUIET_S,
        )
        arrived += sum(s.rx_frames for s in offered.streams)
        sent += sum(s.tx_frames for s in offered.streams)
        others |= encryption.counts_others(offered)
        in_doubt |= encryption.tester_in_doubt(offered)
        counts = esp_peer.esp_counts(offered)
        wrong += map(str, esp_peer.problems(counts))
        leaks += map(str, esp_peer.leaks(counts))
        if counts is not None and counts.bad_icv + counts.malformed:
            wrong.append(f"{counts.bad_icv} packets had a wrong ICV, {counts.malformed} were malformed")
        through_each = all(s.tx_frames >= traffic.tunnels for s in offered.streams)
        if 2 * sent >= frames * traffic.directions and through_each:
            return _Probe(arrived, sent, wrong, leaks, in_doubt, others)
    raise NotReady(
        f"the generator sent {sent} of {frames * traffic.directions} probe frames in {_ATTEMPTS} attempts; "
        "is the host busy?",
        Code.PROBES_NOT_SENT,
    )
