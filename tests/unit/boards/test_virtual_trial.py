# SPDX-License-Identifier: Apache-2.0
"""A trial in virtual time: it begins where each begins, waits for nothing of the host's and blames it for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from espbench.generators.base import Generator, LossEpisode, Offered, PortCounts, Stall
from espbench.measure import trial
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase
from espbench.measure.validity import daemons
from espbench.platforms.base import Port, PortName, Testbed
from espbench.platforms.virtual import virtual_pair
from espbench.sentences import Code
from support.generators.streams import counts

MS = 1_000_000


class Bed(Testbed):
    """Two ports and nothing between them; it notes when a trial begins."""

    def begin_trial(self, chance: str = "") -> None:
        begun.append("trial")

    def close(self) -> None: ...


class Offers:
    """A generator that loses ten frames during a stall of the host."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def offer(self, streams: Any, duration_s: float, residue_s: float, **more: Any) -> Offered:
        begun.append("frames")
        self.asked.append({"duration_s": duration_s, "residue_s": residue_s, **more})
        stream = counts(1000, 990, loss_episodes=[LossEpisode(from_ns=10 * MS, to_ns=11 * MS, frames=10)])
        return Offered(
            stalls_watched=True,
            start_ns=0, last_tx_ns=10**9, duration_s=1.0, intended_duration_s=1.0, streams=[stream],
            ports=[PortCounts(name="west", rx_overrun=0, foreign=0), PortCounts(name="east", rx_overrun=0, foreign=0)],
            host_stalls=[Stall(at_ns=9 * MS, ms=20.0)],
        )  # fmt: skip


begun: list[str] = []
slept: list[float] = []


def measured(*, virtual_time: bool, actions: Sequence[Action] = ()) -> tuple[Any, Offers]:
    """The record of a trial, and what the generator was asked for."""
    begun.clear()
    slept.clear()

    def port(name: PortName, host: int) -> Port:
        link = Path(f"/dev/shm/{name}")
        return Port(
            name,
            "",
            None,
            (),
            0,
            "02:00:00:00:00:01",
            None,
            {4: f"198.18.0.{host}"},
            {},
            1e9,
            1500,
            link=link,
        )

    ports: dict[PortName, Port] = {"west": port("west", 1), "east": port("east", 2)}
    bed = Bed("qemu_e500", "board", ports, {}, virtual_pair.placement(), {}, virtual_time=virtual_time)
    generator = Offers()
    hops: dict[PortName, str] = {"west": "02:00:00:00:00:02", "east": "02:00:00:00:00:02"}
    record = trial.measure(
        Setup(bed, cast(Generator, generator), None, hops),
        Traffic(((64, 1),), 4, "one-way"),
        Request(1000.0, 1.0, "search"),
        OfCase("0001", 0, 0.01),
        Waits(learning_s=2.0, residue_s=1.5, settle_s=5.0),
        actions=actions,
        sleep=slept.append,
    )
    return record, generator


def test_each_trial_begins_in_the_same_state_and_waits_in_virtual_time() -> None:
    _, generator = measured(virtual_time=True)
    assert begun == ["trial", "frames", "frames"]
    assert slept == []
    learning, trial_itself = generator.asked
    assert (learning["residue_s"], learning["quiet_s"]) == (2.0, None)  # to the end, nothing cuts it short
    assert trial_itself["residue_s"] == 1.5


def test_elsewhere_the_waits_are_the_clocks() -> None:
    _, generator = measured(virtual_time=False)
    assert slept == [2.0, 5.0]
    assert generator.asked[0]["quiet_s"] == 0.05


@pytest.mark.parametrize("virtual_time", [True, False])
def test_a_trial_in_which_a_daemon_died_is_broken(
    virtual_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames do not show it. A test that itself ends a daemon looks for itself."""
    monkeypatch.setattr(daemons, "dead", lambda setup: ["home: charon has died"])
    with pytest.raises(TrialBroken, match=r"^home: charon has died$") as died:
        measured(virtual_time=virtual_time)
    assert died.value.code == Code.DAEMON_DIED
    assert measured(virtual_time=False, actions=[Action("its end", 0.0, dict)])[0].tx_frames


@pytest.mark.parametrize(("virtual_time", "excused"), [(True, 0), (False, 10)])
def test_a_stall_of_the_host_excuses_nothing_in_virtual_time(virtual_time: bool, excused: int) -> None:
    record, _ = measured(virtual_time=virtual_time)
    assert record.validity == "VALID"
    assert record.host["lost_in_stalls_by_direction"] == [excused]
    assert record.lost == 10
