# SPDX-License-Identifier: Apache-2.0
"""A box over SSH: why one is refused, that only ports that left are restored, how accurate its CPU figure is."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from espbench.platforms.base import CommandResult
from espbench.platforms.remote import remote_box, remote_platform
from espbench.platforms.remote.cpu_tick import accuracy, sampling_error
from espbench.platforms.remote.remote_box import Port
from espbench.platforms.remote.remote_gateway import CpuTimes

# -- refused ---------------------------------------------------------------------------------------

SINGLE = {"dst": "10.9.0.0/16", "gateway": "10.1.1.2", "dev": "e0", "flags": []}
MULTIPATH = {
    "dst": "10.9.0.0/16",
    "flags": [],
    "nexthops": [{"gateway": "10.1.2.2", "dev": "e1", "weight": 1}, {"dev": "e0", "weight": 1}],
}
BY_OBJECT = {"dst": "fd01::/64", "nhid": 6, "gateway": "fd00::3", "dev": "e0", "flags": []}
OBJECTS = [{"id": 5, "dev": "e0"}, {"id": 6, "dev": "e1"}, {"id": 7, "group": [{"id": 5}, {"id": 6}]}]


def ip_that_says(routes: dict[str, list[dict[str, Any]]], objects: list[dict[str, Any]] | None) -> Any:
    """Return a stand-in for `ip`; objects: None for one that is too old to know nexthop objects."""

    def ip(*arguments: str) -> bytes:
        if "nexthop" not in arguments:
            assert "dev" not in arguments, "it would leave out multipath routes"
            return json.dumps(routes.get(arguments[0], [])).encode()
        if objects is None:
            raise RuntimeError('Object "nexthop" is unknown, try "ip help".')
        return json.dumps(objects).encode()

    return ip


@pytest.mark.parametrize(
    ("routes", "objects", "lost"),
    [
        ({"-4": [SINGLE]}, None, []),
        ({"-4": [SINGLE, MULTIPATH]}, None, ["multipath route 10.9.0.0/16"]),
        ({"-6": [BY_OBJECT]}, [], ["route fd01::/64 by nexthop object 6"]),
        ({}, OBJECTS, ["nexthop object 5"]),
        ({"-4": [{**BY_OBJECT, "dev": "e2"}, {"dst": "default", "type": "blackhole"}]}, [], []),
    ],
)
def test_routes_that_cannot_be_given_back_are_found(
    monkeypatch: pytest.MonkeyPatch, routes: Any, objects: Any, lost: list[str]
) -> None:
    monkeypatch.setattr(remote_box, "ip", ip_that_says(routes, objects))
    assert remote_box.cannot_return("e0") == lost


def test_a_port_that_would_lose_routes_is_refused_to_its_owner_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long list is cut."""
    many = [{**MULTIPATH, "dst": f"10.{n}.0.0/16"} for n in range(9)]
    monkeypatch.setattr(remote_box, "ip", ip_that_says({"-4": many}, None))
    why = remote_box.problem_with(port("e0"))
    assert why == (
        "expected a port without multipath routes and nexthop objects, which cannot be given back, it has multipath "
        "route 10.0.0.0/16, multipath route 10.1.0.0/16, multipath route 10.2.0.0/16 and 6 more; remove that first, "
        "or use another port"
    )


def test_a_box_without_ipv6_is_refused_before_it_is_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each gateway is a router for IPv6 too."""
    monkeypatch.setattr(remote_box, "IPV6", tmp_path / "ipv6")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: f"/sbin/{name}")
    with pytest.raises(SystemExit):
        remote_box.examine({"lan": "no-port", "wan": "no-port", "mine": True})
    assert (
        "expected IPv6 in the box's kernel, got none; boot it without ipv6.disable=1"
        in capsys.readouterr().err
    )


# -- given back ------------------------------------------------------------------------------------


def port(name: str, *neighbours: str) -> Port:
    link = {"flags": ["UP"], "mtu": 1500, "address": "02:00:00:00:00:01", "addr_info": []}
    entries = [{"dst": dst, "lladdr": "02:00:00:00:00:99", "state": ["PERMANENT"]} for dst in neighbours]
    return Port(name, link, [], entries, {}, [])


def test_a_lost_permanent_neighbour_is_a_difference() -> None:
    changes = remote_box.differences(port("e0", "10.1.2.9").shown(), port("e0").shown())
    assert [*map(str, changes)] == ["permanent neighbours: lost 10.1.2.9 02:00:00:00:00:99"]


OWN, NEW = 10, 11


class Box:
    """A box with two ports, one of which may refuse to move; `restored` lists those that were restored."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stuck: str = "") -> None:
        self.ports = [port("e0"), port("e1")]
        self.place = {"e0": OWN, "e1": OWN}
        self.restored: list[str] = []
        self._stuck = stuck
        substitutes: dict[str, Callable[..., Any]] = {
            "namespaces": lambda: (OWN, NEW),
            "hold": lambda handler: None,
            "move": self.move,
            "holds": lambda netns, name: self.place[name] == netns,
        }
        for name, substitute in substitutes.items():
            monkeypatch.setattr(remote_box, name, substitute)
        monkeypatch.setattr(Port, "look", staticmethod(port))
        monkeypatch.setattr(Port, "restore", lambda moved: self.restored.append(moved.name))

    def move(self, name: str, source: int | None, target: int) -> None:
        if name == self._stuck:
            raise RuntimeError(f"ip link set dev {name} netns: RTNETLINK answers: File exists")
        self.place[name] = target

    def serve(self) -> int:
        return remote_box.serve({}, self.ports, [port.shown() for port in self.ports])


def test_a_port_that_did_not_leave_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The box is as it was, and the exit status says so: 1 would say that it is not."""
    monkeypatch.setattr(remote_box, "STATE_PLACES", (str(tmp_path),))
    box = Box(monkeypatch, stuck="e1")
    assert box.serve() == 3
    assert box.place == {"e0": OWN, "e1": OWN}
    assert box.restored == ["e0"]
    assert capsys.readouterr().err == "espbench: ip link set dev e1 netns: RTNETLINK answers: File exists\n"
    assert not list(tmp_path.iterdir())


def test_a_state_that_cannot_be_saved_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An incomplete file does not stay."""
    monkeypatch.setattr(remote_box, "STATE_PLACES", (str(tmp_path),))

    def full(file: Path, text: str) -> NoReturn:
        raise OSError(28, "No space left on device", str(file))

    monkeypatch.setattr(Path, "write_text", full)
    box = Box(monkeypatch)
    assert box.serve() == 3
    assert box.restored == []
    assert "No space left on device" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# -- CPU -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hz", "error"), [(100, 0.0635), (250, 0.0402), (1000, 0.0201)])
def test_the_error_of_a_short_trial(hz: int, error: float) -> None:
    assert sampling_error(0.3, 2, hz) == pytest.approx(error, abs=1e-4)


def test_19_of_20_figures_are_within_the_error() -> None:
    """Each of 200 ticks finds the CPU busy with a probability of 30 %."""
    chance = random.Random(1)
    figures = [sum(chance.random() < 0.3 for _ in range(200)) / 200 for _ in range(2000)]
    within = sum(abs(figure - 0.3) <= sampling_error(0.3, 2, 100) for figure in figures)
    assert 0.93 < within / len(figures) < 0.97


@pytest.mark.parametrize(
    ("config", "tick", "error"),
    [
        ("CONFIG_HZ=250\n", "250 Hz", "4 %"),
        ("CONFIG_HZ=1000\n", "1000 Hz", "2 %"),
        ("", "100 Hz assumed", "6 %"),
    ],
)
def test_the_note_computes_it_from_the_tick_of_the_box(config: str, tick: str, error: str) -> None:
    assert accuracy(config) == (
        f"its kernel samples it at a tick ({tick}): in a trial of 2 s, the figure of a CPU that is busy for 30 % is "
        f"accurate to ±{error} of this CPU"
    )


def test_each_result_has_the_note() -> None:
    class Quiet:
        def cpu_times(self) -> CpuTimes:
            return CpuTimes(4, 0, 0)

        def run(self, argv: list[str]) -> CommandResult:
            return CommandResult(0, "CONFIG_HZ=250\n", "")

    (note,) = remote_platform._warnings({"home": cast(Any, Quiet())})
    assert note.startswith(
        "CPU of home is that of its whole box (4 CPUs, 100 % is one of them); its kernel samples"
    )
    assert note.endswith("±4 % of this CPU")
