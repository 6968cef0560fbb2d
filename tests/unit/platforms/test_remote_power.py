# SPDX-License-Identifier: Apache-2.0
"""A box that is switched off and on: waited for, told apart from one that never was off, given up at last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import EspbenchError, Interrupted
from espbench.measure.inputs.actions import Action, performing
from espbench.platforms.base import NotBack, PowerSwitch, Side
from espbench.platforms.remote import remote_power
from espbench.platforms.remote.labgrid_board import LabgridTarget
from espbench.platforms.remote.remote_gateway import Box
from espbench.platforms.remote.remote_platform import RemoteTestbed
from espbench.platforms.remote.remote_power import PoweredBox
from espbench.platforms.remote.ssh import Login
from espbench.this_machine.registry import Registry

MACS = ["02:00:00:00:00:01", "02:00:00:00:00:02"]


class FakeBoard:
    """A switch that remembers; one of its states may fail."""

    has_console, delay_s = True, 0.0

    def __init__(self, broken: str = "") -> None:
        self.target = LabgridTarget(Path("/lab.yaml"), "home", 60.0)
        self.broken = broken
        self.switched: list[str] = []

    def off(self) -> None:
        self._to("off")

    def on(self) -> None:
        self._to("on")

    def _to(self, state: str) -> None:
        if state == self.broken:
            raise EspbenchError(f"cannot switch it {state}")
        self.switched.append(state)


class FakeGateway:
    """Has what a power cycle asks of the gateway that goes down."""

    side: Side = "home"
    lan, wan = "eth1", "eth2"

    def __init__(self) -> None:
        self.noted: list[str] = []
        self.abandoned = False
        self.after: tuple[object, int] | None = None

    def read(self, paths: list[str]) -> dict[str, str]:
        return dict(zip(paths, ["boot-1\n", *(f"{mac}\n" for mac in MACS)], strict=True))

    def cpu_ns(self) -> int:
        return 7

    def abandon(self) -> None:
        self.abandoned = True

    def go_on_with(self, booted: object, used_ns: int) -> None:
        self.after = booted, used_ns

    def note(self, text: str) -> None:
        self.noted.append(text)


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry("power", tmp_path / "journals") as made:
        yield made


@pytest.fixture
def cycle(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Switch a box whose surveys answer these one after the other; what came of it, and its pieces."""
    monkeypatch.setattr(
        "espbench.this_machine.ending.heard", lambda: False
    )  # other tests may have left it so

    def made(answers: list[Any], board: FakeBoard | None = None) -> Any:
        clock, board, gateway = Clock(), board or FakeBoard(), FakeGateway()
        left = list(answers)

        def survey(side: Side, box: Box, within_s: float) -> Any:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return answer

        notes: list[str] = []
        monkeypatch.setattr(remote_power, "time", clock)
        monkeypatch.setattr(remote_power, "survey", survey)
        monkeypatch.setattr(remote_power, "configure", lambda gateway, addressing: notes.append("configured"))
        monkeypatch.setattr(remote_power, "connect", lambda *arguments: lambda: "booted")
        powered = PoweredBox(
            registry, tmp_path, Box(Login("192.0.2.10"), "eth1", "eth2"), cast(Any, board), cast(Any, gateway),
            cast(Any, None), [], notes.append,
        )  # fmt: skip
        pieces = SimpleNamespace(clock=clock, board=board, gateway=gateway, notes=notes, reported=None)
        try:
            pieces.reported = powered.cycle(lambda: notes.append("guarded"), lambda: notes.append("links"))
        except EspbenchError as error:
            pieces.error = error
        return pieces

    return made


def boot(number: int, macs: list[str] = MACS) -> dict[str, Any]:
    return {"boot": f"boot-{number}", "macs": macs}


UNREACHABLE = EspbenchError("home (root@192.0.2.10): cannot be reached: Connection refused")


def test_a_box_that_boots_is_waited_for_and_made_the_router_it_was(cycle: Callable[..., Any]) -> None:
    """The time that it was down is told, and progress; addresses and links come before it is ready."""
    cycled = cycle([UNREACHABLE] * 45 + [boot(2)])
    assert cycled.board.switched == ["off", "on"]
    assert cycled.gateway.abandoned
    assert cycled.gateway.after == ("booted", 7)
    assert cycled.reported == {"off_s": 0.0, "boot_s": 45.0, "brought_anew": True}
    assert cycled.notes == [
        "home: switched off and on; it may take 60 s until it is back",
        f"home: not back after 31 s: {UNREACHABLE}",
        "home: back 45 s after it was switched on",
        "guarded",  # before it routes, so that no frame crosses in clear
        "configured",
        "links",
    ]
    assert [f"home: {text}" for text in cycled.gateway.noted] == cycled.notes[:3]


def test_a_box_that_stays_away_ends_it_with_one_message(cycle: Callable[..., Any]) -> None:
    error = cycle([UNREACHABLE]).error
    assert isinstance(error, NotBack)
    assert str(error).startswith(
        "home was switched off and on, and was not back within 60 s: home (root@192.0.2.10)"
    )
    assert "home-console.log" in str(error)
    assert "back_within" in str(error)


def test_a_switch_of_another_box_is_found_out(cycle: Callable[..., Any]) -> None:
    """The box answers with the boot id it had; that it does for a moment only is a switch that is slow."""
    cycled = cycle([boot(1)])
    assert isinstance(cycled.error, NotBack)
    assert "was never off" in str(cycled.error)
    assert cycled.clock.now < 30
    assert cycle([boot(1), UNREACHABLE, boot(2)]).reported is not None


def test_other_mac_addresses_are_named(cycle: Callable[..., Any]) -> None:
    error = cycle([boot(2, ["02:00:00:00:00:09", MACS[1]])]).error
    assert "came back with other MAC addresses (02:00:00:00:00:09" in str(error)


def test_a_switch_that_does_not_switch_off_leaves_the_box_alone(cycle: Callable[..., Any]) -> None:
    cycled = cycle([boot(2)], FakeBoard("off"))
    assert not isinstance(cycled.error, NotBack)
    assert not cycled.gateway.abandoned


def test_a_box_that_cannot_be_switched_on_is_in_the_journal(
    cycle: Callable[..., Any], registry: Registry
) -> None:
    """Whoever ends the run tries it again, and `clean` where nobody did."""
    board = FakeBoard("on")
    assert "switch it on by hand" in str(cycle([boot(2)], board).error)
    (entry,) = [entry for entry in registry.entries if entry.kind == "power"]
    assert entry.detail == {"config": "/lab.yaml", "target": "home"}
    board.broken = ""
    registry.undo([entry])
    assert board.switched == ["off", "on"]


def test_ctrl_c_does_not_wait_for_the_boot(
    cycle: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But the box is switched on again first."""
    monkeypatch.setattr("espbench.this_machine.ending.heard", lambda: True)
    cycled = cycle([UNREACHABLE])
    assert isinstance(cycled.error, Interrupted)
    assert cycled.board.switched == ["off", "on"]


def test_that_a_box_is_gone_is_not_taken_for_a_trial_that_broke() -> None:
    """Its message is the run's: nothing more can be measured."""

    def gone() -> dict[str, Any]:
        raise NotBack("home was not back")

    with (
        pytest.raises(NotBack, match=r"\Ahome was not back\Z"),
        performing([Action("power cycle", 0.0, gone)]),
    ):
        pass


def test_a_pair_of_boxes_has_the_switches_its_profile_names() -> None:
    bed = RemoteTestbed.__new__(RemoteTestbed)
    bed.powered = {"home": cast(Any, None)}
    assert isinstance(bed, PowerSwitch)
    assert bed.no_power_switch("home") == ""
    assert "labgrid: under boxes, office in the DUT profile" in bed.no_power_switch("office")
