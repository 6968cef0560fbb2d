# SPDX-License-Identifier: Apache-2.0
"""Tests of the program that is a link that errs: which frames it takes, what it says of them, and how it is started."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.generators import native
from espbench.platforms.chance import Chance
from espbench.platforms.link_errors import Errors, LinkErrors
from espbench.platforms.uml.link_wire import ErringLinks, Wire, link_number
from espbench.this_machine.registry import Registry

pytestmark = pytest.mark.needs("generator")

ALL = 2**64
FRAMES, BYTES = 500, 508
LOSE, FLIP, LATE = 0.25, 2.0**-13, 0.25
ERRS = ["--lose", repr(LOSE), "--flip", repr(FLIP), "--late", repr(LATE), "--late-ns", "5000"]


def drawn(state: int, count: int) -> Iterator[int]:
    """Yield splitmix64's numbers, as LINK.md says."""
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) % ALL
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % ALL
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % ALL
        yield mixed ^ mixed >> 31


def fates(seed: int, link: int, end: int) -> list[str]:
    """Return what becomes of each frame: `lost`, or nothing, `damaged`, `late` or both."""
    mixed = (seed ^ link * 0xD6E8FEB86659FD93 % ALL) * 0xFF51AFD7ED558CCD % ALL
    numbers = drawn(((mixed ^ mixed >> 32) | 1) + end, 3 * FRAMES)
    intact = (1 - FLIP) ** (8 * (BYTES + 4))
    return [
        "lost"
        if lose < LOSE * ALL
        else ("damaged" if damage > intact * ALL else "") + ("late" if late >> 32 < LATE * 2**32 else "")
        for lose, damage, late in zip(numbers, numbers, numbers, strict=True)
    ]


class Joined:
    """Two sockets that a wire joins."""

    def __init__(self, a: socket.socket, b: socket.socket, process: subprocess.Popen[str]) -> None:
        self.ends = [a, b]
        self.process = process

    def ask(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def begin(self, seed: int) -> dict[str, int]:
        answer = self.ask(json.dumps({"seed": seed}))
        assert answer.pop("event") == "erred"
        return answer

    def crossed(self, end: int, count: int = FRAMES) -> list[int]:
        """Send numbered frames from one end; return those that came out at the other meanwhile, in their order."""
        came = []
        self.ends[1 - end].settimeout(None)
        for number in range(count):
            self.ends[end].send(number.to_bytes(4) + bytes(BYTES - 4))
            with suppress(BlockingIOError):
                while True:
                    came.append(int.from_bytes(self.ends[1 - end].recv(2000, socket.MSG_DONTWAIT)[:4]))
        return came

    def rest(self, end: int, counted: int, came: list[int]) -> list[int]:
        """Return also those that are still on their way, of so many in all."""
        self.ends[1 - end].settimeout(120)
        while len(came) < counted:
            came.append(int.from_bytes(self.ends[1 - end].recv(2000)[:4]))
        return came


@contextmanager
def wire(*arguments: str) -> Iterator[Joined]:
    """Start a wire between two sockets; it ends with its input, as espbench ends it."""
    near, a = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    b, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ends = ["--a", f"fd:{a.fileno()}", "--b", f"fd:{b.fileno()}"]
    with (
        near, far, a, b,
        subprocess.Popen(
            [native.binary(), "wire", *ends, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, pass_fds=[a.fileno(), b.fileno()],
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        assert process.stdin is not None
        assert json.loads(process.stdout.readline()) == {"event": "wired"}
        yield Joined(near, far, process)
        process.stdin.close()
        assert process.wait(timeout=120) == 0


@pytest.mark.parametrize(("link", "end"), [(1, 0), (1, 1), (3, 0)])
def test_a_seed_means_the_fates_that_it_has_in_virtual_time(link: int, end: int) -> None:
    """Each frame of the expected fate, also when the same seed begins again; and what is said of them."""
    expected = fates(77, link, end)
    # The last frame must come: when it came, the wire has counted all before it.
    while expected[-1] != "":
        expected.pop()
    comes = {number for number, fate in enumerate(expected) if fate in ("", "late")}
    assert 0 < len(comes) < len(expected)
    with wire(*ERRS, "--link", str(link)) as joined:
        for _ in range(2):
            assert joined.begin(77) == {"lost": 0, "damaged": 0, "late": 0}
            came = joined.rest(end, len(comes), joined.crossed(end, len(expected)))
            assert set(came) == comes
            assert joined.begin(0) == {
                "lost": expected.count("lost"),
                "damaged": sum("damaged" in fate for fate in expected),
                "late": sum("late" in fate for fate in expected),
            }


def test_late_frames_come_behind_others_and_each_kind_in_order() -> None:
    with wire("--late", repr(LATE), "--late-ns", "50000000", "--link", "1") as joined:
        joined.begin(5)
        came = joined.rest(0, FRAMES, joined.crossed(0))
    assert sorted(came) == list(range(FRAMES))
    is_late = _late_of(5)
    lates = [number for number in came if is_late[number]]
    others = [number for number in came if not is_late[number]]
    assert lates == sorted(lates)
    assert others == sorted(others)
    assert came != sorted(came)


def _late_of(seed: int) -> list[bool]:
    """Return which frames are late on a link that neither loses nor damages any."""
    mixed = (seed ^ 0xD6E8FEB86659FD93) * 0xFF51AFD7ED558CCD % ALL
    numbers = list(drawn((mixed ^ mixed >> 32) | 1, 3 * FRAMES))
    return [number >> 32 < LATE * 2**32 for number in numbers[2::3]]


@pytest.mark.parametrize("arguments", [("--delay-ns", "1000000"), ("--lose", "0.9", "--late", "0.5"), ()])
def test_nothing_goes_wrong_before_a_seed(arguments: tuple[str, ...]) -> None:
    """A link that only delays, one that would lose most frames, and a wire in place of a DUT bring all in order."""
    with wire(*arguments) as joined:
        for end in (0, 1):
            assert joined.rest(end, 50, joined.crossed(end, 50)) == list(range(50))


def test_a_wire_without_errors_begins_none_and_says_what_it_expects() -> None:
    with wire() as joined:
        assert joined.ask('{"seed": 1}')["message"] == "this wire makes no errors"
        assert "expected a line such as" in joined.ask("seed 1")["hint"]


def test_links_are_numbered_as_the_generator_does() -> None:
    """LINK.md: links between guests come first."""
    assert [link_number(link, single=False) for link in ("middle", "west", "east")] == [1, 2, 3]
    assert [link_number(link, single=True) for link in ("west", "east")] == [1, 2]


def test_a_wire_that_does_not_start_says_why() -> None:
    command, ends = [str(native.binary()), "wire"], ("no-such-tap-at-all", "b")
    with Registry("t-wire") as registry, pytest.raises(EspbenchError, match=r"east link: .*not an interface"):
        Wire.start(registry, "east link", command, ends, "/proc/self/ns/net", [])


def test_a_trial_has_the_errors_of_its_seed_and_they_end_with_it() -> None:
    """The same seeds as in virtual time, and none after the trial."""

    class Heard:
        def __init__(self) -> None:
            self.seeds: list[int] = []

        def begin(self, seed: int) -> dict[str, int]:
            self.seeds.append(seed)
            return {"lost": len(self.seeds), "damaged": 0, "late": 0}

    heard = Heard()
    errors = Errors({"middle": LinkErrors(loss=0.5)}, 3)
    links = ErringLinks(errors, {"middle": heard})  # type: ignore[dict-item]
    links.begin(Chance(1, 2), "1000.0 2.0 0")
    assert links.counts == {}
    links.end()
    assert heard.seeds == [errors.seed_for(Chance(1, 2), "1000.0 2.0 0"), 0]
    assert links.counts == {"middle": {"lost": 2, "damaged": 0, "late": 0}}
