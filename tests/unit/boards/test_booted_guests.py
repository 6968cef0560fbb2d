# SPDX-License-Identifier: Apache-2.0
"""Guests that booted are copied for each case, and stay for the next one if it boots alike and nothing went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.plan import load_topology
from espbench.platforms.base import Side
from espbench.platforms.link_errors import Errors
from espbench.platforms.virtual import virtual_pair
from espbench.platforms.virtual.virtual_gateway import VirtualGateway
from espbench.platforms.virtual.virtual_guest import PANIC, Guest
from espbench.platforms.virtual.virtual_pair import VirtualPairs, VirtualTestbed
from espbench.runs.platform_kinds.shared.addressing import addressing_of


class Gateway(VirtualGateway):
    """A gateway that answers whatever it is asked at once."""

    def started_by(self, clock: object) -> dict[str, Any]:
        events.append(f"{self.side} boots")
        self._number = 7
        return {}

    def weigh_asking(self) -> None: ...

    def pause_until_a_whole_second(self) -> None:
        events.append(f"{self.side} waits for a whole second")


class Clock:
    """A generator that notes what it copies."""

    def console(self, port: str, line: str | None, until: str, timeout_s: float) -> list[str]:
        raise AssertionError

    def branch(self, between_guests: Sequence[Path], seed: int = 0, *, anew: bool = False) -> None:
        events.append("a case's copy" if anew else "a trial's copy")


class Machines:
    """Makes test beds below a folder."""

    def __init__(self, folder: Path) -> None:
        addressing = addressing_of(load_topology("gateway-to-gateway"), 1500)
        self.pairs = VirtualPairs("qemu", "dut", addressing, lambda: Path("true"), Errors())
        self.folder = folder
        self.registry = cast(Any, SimpleNamespace(entries=[], directory=lambda *_: folder, undo=self.undo))
        self.running: int | None = None

    def undo(self, entries: object) -> None:
        events.append("all end")

    def start(self, side: Side, ends: object) -> Gateway:
        process = cast(Any, SimpleNamespace(poll=lambda: self.running))
        guest = Guest(side, process, self.folder / f"{side}-console", self.folder / f"{side}-log")
        return Gateway(side, guest, self.folder / "notes")

    def case(self, alike: str | None) -> VirtualTestbed:
        bed = self.pairs.build(
            self.registry, virtual_pair.placement(), self.start, Fraction(1), {}, alike=alike
        )
        bed.attached(Clock())
        bed.begin_trial()
        return bed


events: list[str] = []
BOOTS = ["home boots", "office boots"]
WAITS = "home waits for a whole second"
COPIES = ["a case's copy", WAITS, "a trial's copy"]


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    events.clear()
    for name in ("configure", "_wait_for_carrier"):
        monkeypatch.setattr(virtual_pair, name, lambda *_: None)
    return Machines(tmp_path)


def test_the_next_case_has_a_copy_of_the_same_guests(machines: Machines) -> None:
    for _ in range(2):
        machines.case("one").release()
    assert events == [*BOOTS, *COPIES, *COPIES]


def test_its_requests_are_numbered_as_those_of_the_first(machines: Machines) -> None:
    first = machines.case("one")
    booted = first.gateways["home"]
    assert isinstance(booted, Gateway)
    first.release()
    again = machines.case("one").gateways["home"]
    assert isinstance(again, Gateway)
    assert again is not booted
    assert (again._number, again._asked, again._before_trials) == (0, 0, (0, 0))


def test_guests_that_boot_otherwise_are_others(machines: Machines) -> None:
    for alike in ("one", "two"):
        machines.case(alike).release()
    assert events == [*BOOTS, *COPIES, "all end", *BOOTS, *COPIES]


def test_guests_are_not_used_again_after_something_went_wrong(machines: Machines) -> None:
    machines.case("one").close()
    machines.case("one")
    assert events == [*BOOTS, *COPIES, "all end", *BOOTS, *COPIES]


def test_guests_of_which_a_copy_panicked_are_not_used_again(machines: Machines) -> None:
    bed = machines.case("one")
    (machines.folder / "home-console").write_text(f"{PANIC} - not syncing")
    bed.release()
    assert events[-1] == "all end"


def test_guests_that_ended_meanwhile_are_not_used_again(machines: Machines) -> None:
    machines.case("one").release()
    machines.running = 0
    machines.case("one")
    assert events == [*BOOTS, *COPIES, "all end", *BOOTS, *COPIES]


def test_guests_do_not_stay_where_links_have_no_room(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has often 64 MiB for them: enough for two copies of each link, not for three."""
    monkeypatch.setattr(virtual_pair, "free_for_links_mb", lambda: 64 * 1024**2 / 1e6)
    for _ in range(2):
        machines.case("one").release()
    assert events == [*BOOTS, WAITS, "a trial's copy", "all end"] * 2


def test_others_are_copied_for_trials_alone(machines: Machines) -> None:
    """Boards boot in a moment, and guests that are profiled count what they execute from their boot."""
    for _ in range(2):
        machines.case(None).release()
    assert events == [*BOOTS, WAITS, "a trial's copy", "all end"] * 2


def test_only_the_first_trial_of_a_case_waits_for_a_whole_second(machines: Machines) -> None:
    """Later ones begin in the same state."""
    bed = machines.case("one")
    bed.begin_trial()
    assert events == [*BOOTS, *COPIES, "a trial's copy"]


@pytest.mark.parametrize(("now_ns", "until_ns"), [(1, 10**9), (10**9, 10**9), (3 * 10**9 + 1, 4 * 10**9)])
def test_the_next_whole_second(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, now_ns: int, until_ns: int
) -> None:
    asked = []

    def request(_: VirtualGateway, text: str, timeout_s: float = 0.0) -> dict[str, Any]:
        asked.append(text)
        return {"now_ns": now_ns}

    home = machines.start("home", ())
    monkeypatch.setattr(VirtualGateway, "request", request)
    VirtualGateway.pause_until_a_whole_second(home)
    assert asked == ["ping", f"wait {until_ns}"]
