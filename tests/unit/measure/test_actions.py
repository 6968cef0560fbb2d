# SPDX-License-Identifier: Apache-2.0
"""Actions while frames flow: whatever keeps one from being done ends the trial with an error."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

import pytest

from espbench.errors import CannotWrite, EspbenchError
from espbench.measure.inputs.actions import Action, ActionFailed, performing
from espbench.platforms.base import Moment, NotBack, TrialClock


class Clock(TrialClock):
    """A clock of virtual time whose trial reaches its first `reached` moments."""

    now_ns = staticmethod(lambda: 7)

    def __init__(self, reached: int) -> None:
        self.reached = reached
        self.moments: Sequence[Moment] = ()

    def in_next_trial(self, moments: Sequence[Moment]) -> None:
        self.moments = moments

    def trial(self) -> None:
        for moment in self.moments[: self.reached]:
            moment.act()


def failing(error: BaseException) -> Action:
    def act() -> dict[str, Any]:
        raise error

    return Action("reset", 0.0, act)


def well(name: str = "well") -> Action:
    return Action(name, 0.0, lambda: {"said": name})


FULL = OSError(errno.ENOSPC, "No space left on device")
ERRORS = (FULL, ValueError("a bug"), NotBack("gone"), CannotWrite("home.log: cannot write"))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("virtual", [False, True])
def test_an_action_that_fails_is_never_forgotten(error: Exception, virtual: bool) -> None:
    """Also if no gateway is why: the same error comes when the trial has ended, and later actions are left out."""
    clock = Clock(9) if virtual else None
    kept: list[Any] = []
    with pytest.raises(type(error)) as caught, performing([failing(error), well()], clock) as performed:  # noqa: PT012
        kept.append(performed)
        if clock:
            clock.trial()
    assert caught.value is error
    assert kept == [[]]


def test_what_a_gateway_refuses_names_the_action() -> None:
    with (
        pytest.raises(ActionFailed, match="reset: no answer"),
        performing([failing(EspbenchError("no answer"))]),
    ):
        pass


def test_a_trial_without_one_of_its_actions_is_none() -> None:
    """A trial in virtual time may end before the moment of an action."""
    clock = Clock(1)
    with (
        pytest.raises(ActionFailed, match="the trial ended without: second, third"),
        performing([well(), well("second"), well("third")], clock),
    ):
        clock.trial()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ends_early_is_noticed() -> None:
    with pytest.raises(ActionFailed, match="without: reset"), performing([failing(SystemExit())]):
        pass


def test_what_the_context_raises_comes_first() -> None:
    with pytest.raises(KeyError), performing([failing(FULL)]):
        raise KeyError


def test_all_are_done_in_the_order_of_their_times() -> None:
    later = Action("later", 0.02, dict)
    with performing([later, well()]) as performed:
        pass
    assert [done.action.name for done in performed] == ["well", "later"]
