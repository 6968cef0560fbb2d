# SPDX-License-Identifier: Apache-2.0
"""The code of a trial's reason says whose failure broke it, so that nobody has to read its words."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import cast

import pytest

from espbench.errors import EspbenchError, GatewayFailed, GeneratorFailed
from espbench.measure.inputs.actions import ActionFailed
from espbench.measure.inputs.setup import Request, Setup, blame
from espbench.measure.proof.readiness import NotReady
from espbench.measure.trial import broken
from espbench.platforms.channel import AgentChannel, AgentRefused
from espbench.sentences import Code
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.terms import Reason


def pair(*, office_lives: bool = True) -> Setup:
    """Two gateways, of which one may be dead."""

    def gateway(*, lives: bool) -> SimpleNamespace:
        return SimpleNamespace(alive=lambda: lives, last_words=lambda: "Kernel panic\n")

    gateways = {"home": gateway(lives=True), "office": gateway(lives=office_lives)}
    return cast(Setup, SimpleNamespace(bed=SimpleNamespace(gateways=gateways)))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GeneratorFailed("died"), Code.GENERATOR_FAILED),
        (GatewayFailed("gateway home did not answer"), Code.GATEWAY_FAILED),
        (AgentRefused("home: no such file", 2), Code.GATEWAY_FAILED),
        (NegotiationFailed("IKE failed"), Code.NEGOTIATION_FAILED),
        (NotReady("cleartext is not blocked"), Code.NOT_READY),
        (NotReady("plain forwarding does not work", Code.PROBES_LOST), Code.PROBES_LOST),
        (EspbenchError("something else"), Code.BROKEN),
    ],
)
def test_who_failed_is_the_code_of_the_reason(error: EspbenchError, code: Code) -> None:
    assert blame(pair(), error) == (str(error), code)


def test_a_dead_gateway_is_to_blame_whatever_was_noticed_first() -> None:
    words, code = blame(pair(office_lives=False), GeneratorFailed("nothing came back"))
    assert code == Code.GATEWAY_DIED
    assert words == "gateway office died during the trial; its last words:\nKernel panic"
    assert blame(pair(office_lives=False), ActionFailed("reset: x"))[1] == Code.BROKEN


def test_a_silent_agent_is_its_gateways_failure() -> None:
    """Closed, or without an answer in time."""
    for ours, theirs in (socket.socketpair(), socket.socketpair()):
        channel = AgentChannel("home", ours, lambda: "")
        with theirs, pytest.raises(GatewayFailed, match="gateway home did not answer"):
            channel.request("ping", within_s=0.01)
        with pytest.raises(GatewayFailed, match="gateway home died"):
            channel.request("ping", within_s=1.0)
        channel.close()


def test_the_record_of_a_broken_trial_keeps_the_code() -> None:
    why = Reason.of(Code.GATEWAY_DIED, text="gateway home died")
    record = broken(Request(1000.0, 1.0, "search"), why, case="0001", sequence=0)
    assert record.model_dump()["reason_codes"] == [
        {"code": "gateway-died", "values": {"text": "gateway home died"}}
    ]
    assert record.model_dump()["reasons"] == ["gateway home died"]
