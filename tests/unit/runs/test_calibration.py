# SPDX-License-Identifier: Apache-2.0
"""A run takes the same way to the wire as the run before, unless another is clearly faster."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from espbench.cli import calibrate
from espbench.errors import EspbenchError, GeneratorFailed
from espbench.generators.base import FrameShare, Generator, Offered, Stream, WirePath
from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.traffic import Traffic
from espbench.platforms.base import Placement, Port, Testbed
from espbench.runs import session
from espbench.runs.generator_ceiling import choose_path, flooded
from espbench.runs.session import Session
from espbench.runs.side_by_side import Candidate, Examined, examine
from espbench.terms import Latency
from support.generators.streams import counts, stream


class Flooding:
    """A generator whose ways flood at the rates given, one after the other; none: a way that cannot be used.

    A rate of 0: it was kept from its CPU, and its flood took no time.
    """

    def __init__(self, **rates: list[float]) -> None:
        self.rates: dict[str, Iterator[float]] = {
            way: cycle(counts) for way, counts in rates.items() if counts
        }
        self.all = list(rates)
        self.taken: list[WirePath] = []

    def paths(self) -> list[str]:
        return self.all

    def take(self, path: WirePath) -> None:
        self.taken.append(path)

    def offer(self, *_: Any, **__: Any) -> Offered:
        way = self.taken[-1].name
        if way not in self.rates:
            raise EspbenchError(f"no {way} here")
        frames = round(next(self.rates[way]) * 1000)
        one = counts(frames, frames, intended_frames=None, latency_us=None)
        return Offered(
            stalls_watched=True,
            start_ns=0, last_tx_ns=1, duration_s=1.0 if frames else 0.0, intended_duration_s=1.0, streams=[one],
            ports=[],
        )  # fmt: skip


class Anything:
    frames: tuple[tuple[int, int], ...] = ((64, 1),)

    def streams(self, *_: Any) -> list[Any]:
        return []


def chosen(generator: Flooding, *, returns: bool = True) -> tuple[str, list[str]]:
    """The way as the manifest has it, and what was said."""
    notes: list[str] = []
    way = choose_path(
        cast(Generator, generator),
        lambda: (cast(Testbed, None), {}),
        [cast(Traffic, Anything())],
        returns=returns,
        on_note=notes.append,
    )
    assert WirePath.of_record(str(way or "")) == way
    return str(way or ""), notes


def test_the_first_way_stays_unless_another_is_clearly_faster() -> None:
    """Two runs on one machine have seen 717 and 879 kfps, which is no reason to take another way."""
    assert chosen(Flooding(auto=[717], af_xdp=[879], af_packet=[300]))[0] == "auto"
    assert chosen(Flooding(auto=[300], af_xdp=[879], af_packet=[300]))[0] == "af_xdp"
    assert chosen(Flooding(auto=[300], af_xdp=[500], af_packet=[700]))[0] == "af_xdp"


def test_one_slow_probe_decides_nothing() -> None:
    """Each way floods three times in turns when in doubt, and the medians count."""
    generator = Flooding(auto=[100, 800, 800], af_xdp=[700, 700, 700], af_packet=[300])
    assert chosen(generator)[0] == "auto"
    assert [*map(str, generator.taken)] == ["auto", "af_xdp", "af_packet"] * 3 + ["auto"]


def test_a_probe_that_had_no_cpu_says_nothing_of_its_way() -> None:
    """It counts as slow, and so leaves doubt."""
    assert chosen(Flooding(auto=[0, 800, 800], af_xdp=[700]))[0] == "auto"


def test_a_ceiling_is_never_that_of_a_flood_that_took_no_time() -> None:
    """It floods again; in the end it says what is wrong."""
    generator = Flooding(auto=[0, 0, 800])
    generator.take(WirePath("auto"))
    assert flooded(cast(Generator, generator), [], 0.5).streams[0].tx_frames == 800_000
    generator = Flooding(auto=[0])
    generator.take(WirePath("auto"))
    with pytest.raises(GeneratorFailed, match="other programs keep it from its CPU"):
        flooded(cast(Generator, generator), [], 0.5)


class Starving(Flooding):
    """A generator whose second stream gets no time to send in its first floods, as many as `starved`."""

    def __init__(self, starved: int) -> None:
        super().__init__(auto=[800])
        self.starved = starved
        self.taken = [WirePath("auto")]

    def offer(self, *_: Any, **__: Any) -> Offered:
        offered = super().offer()
        self.starved -= 1
        frames = 0 if self.starved >= 0 else 400_000
        other = counts(frames, frames, source="east", intended_frames=None, latency_us=None)
        return offered.model_copy(update={"streams": [*offered.streams, other]})


def test_a_ceiling_of_both_directions_is_never_that_of_one() -> None:
    """It floods again if a stream sent nothing; in the end it says which one."""
    both = [stream(), stream(id=1, from_="east", to="west")]
    offered = flooded(cast(Generator, Starving(2)), both, 0.5)
    assert [s.tx_frames for s in offered.streams] == [800_000, 400_000]
    with pytest.raises(GeneratorFailed, match="2 streams at once, none left from east to west"):
        flooded(cast(Generator, Starving(3)), both, 0.5)


class Late(Flooding):
    """A generator that sends all its frames, and takes a quarter longer than it should; its first flood has no CPU."""

    def offer(self, *_: Any, **__: Any) -> Offered:
        return super().offer().model_copy(update={"duration_s": 1.25}) if self.taken else self._nothing()

    def _nothing(self) -> Offered:
        self.taken.append(WirePath("auto"))
        return super().offer().model_copy(update={"duration_s": 0.0})

    def close(self) -> None:
        """Close nothing: nothing is open."""


def measured_alone(name: str, generator: object) -> Examined:
    """Return what `espbench calibrate` finds out about a generator in trials of 1 s, paced at 800,000 frames/s."""
    (one,) = examine(
        Candidate(name, lambda: cast(Generator, generator)),
        lambda generator: (cast(Testbed, None), {}, ("this", "that")),
        {64: cast(Traffic, Anything())},
        seconds=1.0,
        rate_fps=800_000.0,
        on_note=lambda text: None,
    )
    return one


def test_the_accuracy_of_a_rate_is_that_of_what_was_offered() -> None:
    """All frames left, in 1.25 s for 1 s: 20 % less than the rate that was asked for, not exactly it."""
    accuracy = measured_alone("late", Late(auto=[800]))
    assert accuracy.accuracy_pct == pytest.approx(-20.0)
    assert accuracy.offered_fps == pytest.approx(640_000.0)


class Unheard(Late):
    """A generator whose frames arrive nowhere."""

    def offer(self, *_: Any, **__: Any) -> Offered:
        self.taken = [WirePath("auto")]
        offered = super().offer()
        none = offered.streams[0].model_copy(update={"rx_frames": 0, "lost": offered.streams[0].tx_frames})
        return offered.model_copy(update={"streams": [none]})


def test_ports_that_are_not_joined_show_what_is_sent_only() -> None:
    """The receiving columns are empty, and it is said why."""
    examined = examine(
        Candidate("unheard", lambda: cast(Generator, Unheard(auto=[800]))),
        lambda generator: (cast(Testbed, None), {}, ("this", "that")),
        {64: cast(Traffic, Anything())},
        seconds=1.0,
        rate_fps=None,
        on_note=lambda text: None,
    )
    console = Console(file=io.StringIO(), width=80)
    placed = Placement({"tester tx": [0], "tester rx": [1]}, "SCHED_OTHER")
    calibrate._print(console, examined, placed, own=True)
    shown = cast(io.StringIO, console.file).getvalue()
    (row,) = (line.split() for line in shown.splitlines() if line.startswith("unheard  "))
    assert (row[1], row[2], row[5], row[8:]) == ("640k", "–", "–", ["–", "–"])
    assert "nothing sent at west arrived at east" in shown


class Timing(Late):
    """A generator that measures the delay of each frame."""

    def offer(self, *_: Any, **__: Any) -> Offered:
        self.taken = [WirePath("auto")]
        offered = super().offer()
        delay = Latency(min=20.0, mean=60.0, p50=41.5, p999=320.0, max=9000.0)
        timed = offered.streams[0].model_copy(
            update={"latency_us": delay, "lateness_us": {"p50": 12.3, "p999": 1230.0}}
        )
        return offered.model_copy(update={"streams": [timed]})


def test_the_testers_own_delay_is_told() -> None:
    """A reader of a DUT's latency subtracts it. The table fits into a terminal of 80 columns."""
    one = measured_alone("native af_packet", Timing(auto=[800]))
    assert (one.delay_us, one.pdv_us) == (41.5, 300.0)
    console = Console(file=io.StringIO(), width=80)
    placed = Placement({"tester tx": [0], "tester rx": [1]}, "SCHED_OTHER")
    calibrate._print(console, [replace(one, lost=98_765)], placed, own=False)
    head, row = (
        line
        for line in cast(io.StringIO, console.file).getvalue().splitlines()
        if line.startswith(("generator  ", "native af_packet "))
    )
    assert (head.split()[-2:], row.split()[-2:]) == (["jitter", "delay"], ["300µs", "41.5µs"])
    assert row.split()[6] == "98,765"
    assert "…" not in head + row


def test_without_doubt_each_way_is_tried_once() -> None:
    """A run is not to wait longer than it must."""
    generator = Flooding(auto=[800], af_xdp=[700], af_packet=[300])
    way, notes = chosen(generator)
    assert (way, [*map(str, generator.taken)]) == ("auto", ["auto", "af_xdp", "af_packet", "auto"])
    assert notes == [
        "generator: auto, of auto 800 kfps, af_xdp 700 kfps, af_packet 300 kfps; to keep it, write tx and rx under "
        "generator: native: in the plan"
    ]


def test_a_way_that_cannot_be_used_is_named_and_left_out() -> None:
    """The first way is no exception."""
    way, notes = chosen(Flooding(auto=[], af_xdp=[700], af_packet=[300]))
    assert way == "af_xdp"
    assert notes[0] == "the generator cannot use auto here: no auto here"
    assert chosen(Flooding(auto=[], af_xdp=[]))[0] == ""


class Frames(Anything):
    """A traffic of these frames: (size, weight)."""

    def __init__(self, *frames: tuple[int, int]) -> None:
        self.frames = frames

    def streams(self, *_: Any) -> list[Stream]:
        return [stream(frames=[FrameShare(size=size, weight=weight) for size, weight in self.frames])]


class Refusing(Flooding):
    """A generator whose way `auto` sends frames of at most 3,460 B and mixes of at most 64 sizes, as XDP does."""

    def offer(self, *asked: Any, **settings: Any) -> Offered:
        [one] = asked[0]
        sizes = {share.size for share in one.frames}
        if self.taken[-1].name == "auto" and (max(sizes) > 3460 or len(sizes) > 64):
            raise EspbenchError("XDP cannot send this")
        return super().offer(*asked, **settings)


MANY = Frames(*((size, 1) for size in range(64, 164)))


@pytest.mark.parametrize(
    ("wanted", "way"),
    [
        ({64: [Frames((64, 1))], 9000: [Frames((9000, 1))]}, "af_packet"),
        ({9000: [Frames((9000, 1))], 64: [Frames((64, 1))]}, "af_packet"),
        ({64: [Frames((64, 1))], "mix": [MANY], 1518: [Frames((1518, 1))]}, "af_packet"),
        ({64: [Frames((64, 1)), Frames((1518, 1))]}, "auto"),
    ],
)
def test_a_way_that_refuses_any_traffic_of_the_run_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, wanted: dict[int | str, list[Traffic]], way: str
) -> None:
    """Otherwise the run would end at the first frame size that the way cannot send."""
    notes: list[str] = []
    generator = Refusing(auto=[800], af_packet=[300])
    made = object.__new__(Session)
    made.__dict__ |= {
        "_observer": SimpleNamespace(note=notes.append),
        "_setups": SimpleNamespace(
            generator=generator, attach=lambda *_, **__: SimpleNamespace(next_hops={}), path=None
        ),
    }
    monkeypatch.setattr(session, "calibrate", lambda *_, **__: [])
    made._calibrated(cast(Testbed, None), wanted, returns=True)
    assert str(made._setups.path) == way
    refused = "the generator cannot use auto here: XDP cannot send this"
    assert (refused in notes) == (way != "auto")


@pytest.mark.parametrize(("returns", "way"), [(True, "af_xdp"), (False, "tx af_xdp")])
def test_how_fast_a_way_sends_does_not_choose_how_to_receive(returns: bool, way: str) -> None:
    """Sending alone was measured where nothing returns."""
    assert chosen(Flooding(auto=[300], af_xdp=[879]), returns=returns)[0] == way


@pytest.mark.parametrize(
    ("way", "esp", "path"),
    [
        (WirePath("auto"), False, {}),
        (WirePath("af_xdp"), False, {"tx": "af_xdp", "rx": "af_xdp"}),
        (WirePath("af_xdp", receives=False), False, {"tx": "af_xdp"}),
        (WirePath("af_xdp", receives=False), True, {"tx": "af_xdp", "rx": "af_packet"}),
    ],
)
def test_a_way_for_sending_only_leaves_receiving_to_the_default(
    monkeypatch: pytest.MonkeyPatch, way: WirePath, esp: bool, path: dict[str, str]
) -> None:
    """ESP is received in user space: there the default is another."""
    generator = NativeGenerator.__new__(NativeGenerator)
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(generator, "_esp", esp, raising=False)

    def ask(request: dict[str, Any], _: object) -> dict[str, Any]:
        asked.append(request)
        return {"ports": []}

    monkeypatch.setattr(generator, "_ask", ask)
    generator.take(way)
    generator.open([Port("west", "a0", "t1", (0,), 0, "", "", {}, {}, 0.0, 1500)], [])
    [port] = asked[0]["ports"]
    assert {key: port[key] for key in ("tx", "rx") if key in port} == path
