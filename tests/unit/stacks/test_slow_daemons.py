# SPDX-License-Identifier: Apache-2.0
"""Daemons that do not bring tunnels up in time: an answer of the test, not a gateway that broke."""

from __future__ import annotations

import errno
from typing import Any, cast

import pytest

from espbench.platforms.base import CommandResult, Gateway
from espbench.platforms.channel import AgentRefused
from espbench.stacks.daemons.builds import Build
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.stacks.libreswan.pluto import Libreswan
from espbench.stacks.strongswan.charon import StrongSwan
from support.gateways.ends import END


class SlowGateway:
    """Its shell does not end, or cannot be started; everything else ends at once."""

    side = "home"

    def __init__(self, number: int) -> None:
        self.number = number

    def run(self, argv: list[str], stdin: str = "", timeout_s: float = 60.0) -> CommandResult:
        if argv[-1].endswith("bring-up"):
            raise AgentRefused("home: sh did not end within 35 s", self.number)
        return CommandResult(0, "", "")

    def write(self, path: str, text: str) -> None: ...

    def read(self, paths: list[str]) -> dict[str, str | None]:
        return dict.fromkeys(paths)


@pytest.fixture(params=[StrongSwan, Libreswan])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def bring_up(kind: Any, number: int) -> None:
    build = Build(cast(Any, None), {"swanctl": "/swanctl", "whack": "/whack"}, "b", "", image=True)
    kind(cast(Gateway, SlowGateway(number)), END, build).bring_up(range(50), 30.0)


def test_a_step_that_is_too_slow_is_a_failed_negotiation(kind: Any) -> None:
    """So that `capacity` answers with the tunnels that stood before."""
    with pytest.raises(NegotiationFailed, match="home: not all of 50 tunnels came up within 35 s") as caught:
        bring_up(kind, errno.ETIMEDOUT)
    assert not caught.value.final


def test_any_other_refusal_stays_the_gateways(kind: Any) -> None:
    with pytest.raises(AgentRefused):
        bring_up(kind, errno.ENOENT)
