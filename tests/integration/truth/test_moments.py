# SPDX-License-Identifier: Apache-2.0
"""Actions in mid-trial in virtual time: each begins exactly at its time, while the frames of the trial flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.generators.base import Offered
from espbench.measure.inputs.actions import Action, ActionFailed, performing
from espbench.measure.inputs.traffic import Traffic
from espbench.platforms.base import Moment
from support.virtual import truth_dut
from support.virtual.truth_dut import TruthDut

pytestmark = [pytest.mark.virtual_time, pytest.mark.needs("generator", "gcc")]

FPS, SECONDS = 10_000, 1.0
MS = 10**6


def offer(dut: TruthDut) -> Offered:
    """One stream of 10,000 frames from west to east."""
    traffic = Traffic(frames=((64, 1),), ip_version=4, direction="one-way")
    streams = traffic.streams(dut.setup.bed, dut.setup.next_hops, float(FPS))
    return dut.generator.offer(streams, SECONDS, 0.5, quiet_s=0.05)


def setting(dut: TruthDut, name: str, at_s: float, **known: int) -> Action:
    """Sets what the DUT does."""

    def act() -> dict[str, Any]:
        dut.set(**known)
        return {"said": name}

    return Action(name, at_s, act)


def test_frames_flow_before_while_and_after(tmp_path: Path) -> None:
    """Blocked from 0.25 s to 0.5 s: just the frames of that time are lost, and the trial is as long as without."""
    with truth_dut.set_up(tmp_path, delay_ns=20_000) as dut:
        actions = [setting(dut, "open", 0.5, blocked=0), setting(dut, "block", 0.25, blocked=1)]
        with performing(actions, dut.generator) as performed:
            offered = offer(dut)
        without = offer(dut)
    (stream,), (free,) = offered.streams, without.streams
    assert [p.action.name for p in performed] == ["block", "open"]
    assert [p.began_ns - offered.start_ns for p in performed] == [250 * MS, 500 * MS]
    assert all(p.began_ns < p.ended_ns <= p.began_ns + 2 * MS for p in performed)
    assert [p.facts for p in performed] == [{"said": "block"}, {"said": "open"}]
    assert stream.tx_frames == free.tx_frames == FPS * SECONDS
    assert free.lost == 0
    assert stream.lost == FPS // 4
    assert offered.duration_s == without.duration_s


def test_an_action_that_lasts_puts_the_next_one_off(tmp_path: Path) -> None:
    """One after the other: the second begins when the first has ended, and the trial waits for both."""
    with truth_dut.set_up(tmp_path, delay_ns=20_000) as dut:

        def count_often() -> dict[str, Any]:
            for _ in range(400):
                dut.counts()
            return {}

        actions = [Action("long", 0.9, count_often), setting(dut, "late", 0.95, blocked=0)]
        with performing(actions, dut.generator) as performed:
            offered = offer(dut)
        [counts] = [dut.counts()]
    long, late = performed
    assert long.ended_ns - offered.start_ns > SECONDS * 1e9  # it outlasted the sending
    assert late.began_ns == long.ended_ns
    assert offered.streams[0].lost == 0
    assert counts["forwarded"] == [FPS * SECONDS, 0]


def test_an_action_that_fails_ends_the_trial_in_order(tmp_path: Path) -> None:
    """Its failure is raised when the trial is over; those after it are left out, and the next trial is whole."""

    def fail() -> dict[str, Any]:
        raise EspbenchError("nobody is there")

    with truth_dut.set_up(tmp_path, delay_ns=20_000) as dut:
        actions = [Action("dying", 0.2, fail), setting(dut, "block", 0.5, blocked=1)]
        with pytest.raises(ActionFailed, match="dying: nobody is there"), performing(actions, dut.generator):
            offered = offer(dut)
        assert offered.streams[0].lost == 0
        assert offer(dut).streams[0].lost == 0


@pytest.mark.parametrize(
    ("times", "why"),
    [([0.5, 1.5], "a time of moments_s is 1.5, expected 0.5 to 1"), ([-0.1], "-0.1, expected 0 to 1")],
)
def test_a_moment_outside_the_trial_is_refused(tmp_path: Path, times: list[float], why: str) -> None:
    with truth_dut.set_up(tmp_path, delay_ns=20_000) as dut:
        dut.generator.in_next_trial([Moment(at_s, lambda: None) for at_s in times])
        with pytest.raises(EspbenchError, match=why):
            offer(dut)
        assert offer(dut).streams[0].lost == 0
