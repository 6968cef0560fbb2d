# SPDX-License-Identifier: Apache-2.0
"""Before the first trial of a pair: the network works, cleartext is blocked, the tunnel carries all.

In this order, as libreswan's own tests do it: what arrives after it *was* encrypted, since in clear
nothing passed (docs/method.md, rule 1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from espbench.errors import EspbenchError
from espbench.measure.inputs import esp_peer
from espbench.measure.inputs.esp_peer import EspPeer
from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters
from espbench.sentences import Code

PROBE_FRAMES = 50  # one for each tunnel, if there are more
_PROBE_FPS = 500.0
# How long frames are waited for that must not come; and, in real time, those that must: of these all end the wait.
_PROBE_RESIDUE_S, _MUST_COME_S = 1.0, 5.0
_QUIET_S = 0.15
# A host that stands still loses frames of a probe too; a path that is broken never lets all of them through.
_ATTEMPTS = 3


class NotReady(EspbenchError):
    """The pair of gateways does not do what the case needs; nothing may be measured on it.

    code: PROBES_LOST where frames that were to pass did not, which a host that stands still does, too.
    """

    def __init__(self, text: str, code: Code = Code.NOT_READY) -> None:
        super().__init__(text)
        self.code = code


def establish(setup: Setup, traffic: Traffic) -> dict[str, Any]:
    """Bring the stack up step by step; returns what was shown, for the Security Context."""
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
    arrived, sent = _probe(setup, probe)
    if arrived:
        raise NotReady(f"cleartext is not blocked: {arrived} of {sent} probe frames arrived without an SA")
    shown["cleartext blocked, tunnel down"] = f"{arrived} of {sent} probe frames arrived"

    setup.stack.establish()
    setup.peer = EspPeer.of(setup.bed, setup.stack)
    arrived, sent = carried(setup, probe)
    who = "the gateway's SAs, and opened or sealed by the tester" if setup.peer else "both gateways' SAs"
    shown["tunnel up"] = f"{arrived} of {sent} probe frames arrived, counted by {who}"
    return shown


def carried(setup: Setup, probe: Traffic) -> tuple[int, int]:
    """(arrived, sent) of a frame or more through every tunnel, both ways: all arrived, and all were encrypted.

    NotReady says what did not.
    """
    for _ in range(_ATTEMPTS):
        before = counters.read(setup.bed, setup.stack)
        arrived, sent, wrong = _probe_of_esp(setup, probe, _must_come_s(setup))
        moved = counters.moved(before, counters.read(setup.bed, setup.stack))
        if arrived == sent:
            break
    if arrived != sent:
        errors = {side: c.sas.errors for side, c in moved.items() if c.sas.errors}
        found = "; ".join([f"xfrm errors {errors}", *wrong])
        raise NotReady(
            f"the tunnel does not carry traffic: {arrived} of {sent} frames arrived; {found}",
            Code.PROBES_LOST,
        )
    for side, c in moved.items():
        if c.sas.encrypted + c.sas.decrypted != sent:
            raise NotReady(
                f"{side}: {sent} frames crossed, its SAs counted {c.sas.encrypted} encrypted "
                f"and {c.sas.decrypted} decrypted"
            )
    if wrong:
        raise NotReady(f"the gateway's ESP is not as it should be: {'; '.join(wrong)}")
    return arrived, sent


def _all_of_a_probe(setup: Setup, traffic: Traffic) -> tuple[int, int]:
    """(arrived, sent) of the first probe that arrived whole, or of the last."""
    for _ in range(_ATTEMPTS):
        arrived, sent, _ = _probe_of_esp(setup, traffic, _must_come_s(setup))
        if arrived == sent:
            break
    return arrived, sent


def _must_come_s(setup: Setup) -> float:
    return _PROBE_RESIDUE_S if setup.bed.virtual_time else _MUST_COME_S


def _probe(setup: Setup, traffic: Traffic) -> tuple[int, int]:
    """(arrived, sent) of a few frames at a rate any DUT can do. NotReady: too few left to show anything."""
    arrived, sent, _ = _probe_of_esp(setup, traffic)
    return arrived, sent


def _probe_of_esp(
    setup: Setup, traffic: Traffic, residue_s: float = _PROBE_RESIDUE_S
) -> tuple[int, int, list[str]]:
    """The same, and what was wrong with ESP that the tester opened itself.

    Where the host let less than half of the frames leave, more are sent: all of them count.
    """
    frames = max(PROBE_FRAMES, traffic.tunnels)
    arrived, sent, wrong = 0, 0, list[str]()
    for _ in range(_ATTEMPTS):
        offered = setup.generator.offer(
            setup.streams(traffic, _PROBE_FPS * traffic.directions),
            frames / _PROBE_FPS,
            residue_s,
            quiet_s=_QUIET_S,
        )
        arrived += sum(s.rx_frames for s in offered.streams)
        sent += sum(s.tx_frames for s in offered.streams)
        counts = esp_peer.esp_counts(offered)
        wrong += esp_peer.problems(counts)
        if counts is not None and counts.bad_icv + counts.malformed:
            wrong.append(f"{counts.bad_icv} packets had a wrong ICV, {counts.malformed} were malformed")
        if 2 * sent >= frames * traffic.directions:
            return arrived, sent, wrong
    raise NotReady(
        f"the generator sent {sent} of {frames * traffic.directions} probe frames in {_ATTEMPTS} attempts; "
        "is the host busy?",
        Code.PROBES_LOST,
    )
