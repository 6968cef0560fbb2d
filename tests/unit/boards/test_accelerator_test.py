# SPDX-License-Identifier: Apache-2.0
"""The driver-level accelerator test: how a plan asks for it, what is asked of the guest, what is kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import EspbenchError, UsageError
from espbench.generators.base import Generator
from espbench.measure.validity import host
from espbench.plan import ResolvedPlan, cases, resolve
from espbench.plan.reading.reader import read_text
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import Testbed
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.platforms.uml import crypto_api
from espbench.procedures.boards.accelerator import measure
from espbench.procedures.boards.crypto_api import UmlGuest
from espbench.results import accelerator
from espbench.results.accelerator import AcceleratorResult, Variant
from espbench.results.durable import to_json
from support.plans import plan_text
from support.synthetic import powerquicc as made

PLAN = plan_text(
    name="mine",
    dut="mpc8548e",
    stacks="[xfrm]",
    suites="[3des-sha1]",
    tests="\n  - throughput: {}\n  - accelerator: {sizes: [64, 1024], suites: [aes128-sha1]}",
)


def plan(text: str = PLAN) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"), None)


def refused(text: str) -> str:
    with pytest.raises(UsageError) as error:
        plan(text)
    return str(error.value).removeprefix("plan.yaml:")


def test_it_is_no_case_of_its_own() -> None:
    """Throughput's cases are what they are without it."""
    asked = plan()
    assert asked.plan.accelerator is not None
    assert (asked.plan.accelerator.operations, asked.plan.accelerator.sizes) == (50_000, [64, 1024])
    without = plan(PLAN.replace(PLAN.splitlines()[-1], ""))
    assert without.plan.accelerator is None
    assert [c.id for c in cases(asked)] == [c.id for c in cases(without)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dut: mpc8548e", "dut: virt-x86", "9:5: tests[1]: expected an emulated board (platform: qemu_e500)"),
        ("dut: mpc8548e", "dut: uml", "tests[1].accelerator.crypto: expected crypto: [software] with uml"),
        ("  - throughput: {}", "  - accelerator: {}", "9:5: tests[1]: expected one accelerator test"),
        ("[64, 1024]", "[64, 100]", "tests[1].accelerator.sizes[1]"),
        ("[aes128-sha1]", "[aes128-gcm]", "tests[1].accelerator.suites[0]"),
        ("[aes128-sha1]}", "[aes128-sha1], crypto: [fast]}", "tests[1].accelerator.crypto[0]"),
        ("  - throughput: {}\n  - accel", "  - throughput: {}\n    accel", "expected one test in an entry"),
    ],
)
def test_mistakes_have_a_place_and_a_remedy(old: str, new: str, message: str) -> None:
    assert message in refused(PLAN.replace(old, new))


def test_a_driver_without_dual_pass_is_not_asked_for_it() -> None:
    """Linux has no driver for the hash of the MPC8555E's SEC 2.0."""
    dual_pass = PLAN.replace("[aes128-sha1]}", "[aes128-sha1], crypto: [async, dual-pass]}")
    assert plan(dual_pass).plan.accelerator
    words = refused(dual_pass.replace("dut: mpc8548e", "dut: mpc8555e"))
    assert "tests[1].accelerator.crypto: expected no dual-pass with mpc8555e" in words
    assert plan(PLAN.replace("dut: mpc8548e", "dut: mpc8555e")).plan.accelerator


class Bed:
    """A test bed whose guest answers at once."""

    def __init__(self, log: list[str], answer: dict[str, Any] | Exception) -> None:
        gateway = E500Gateway.__new__(E500Gateway)
        self.gateways = {"home": gateway}
        self.ports: dict[str, Any] = {}
        self.log = log

        def request(text: str, timeout_s: float = 0) -> dict[str, Any]:
            log.append(text)
            if isinstance(answer, Exception):
                raise answer
            return answer

        gateway.request = request  # type: ignore[method-assign]

    def attached(self, generator: object) -> None:
        self.log.append("booted")

    def begin_trial(self, chance: str = "") -> None:
        self.log.append("fresh")

    def close(self) -> None:
        self.log.append("closed")


class Beds:
    def __init__(self, log: list[str], answer: dict[str, Any] | Exception) -> None:
        self.log, self.answer = log, answer

    def build(self, case: Case) -> Testbed:
        self.log.append(f"{case.dut} {case.stack.kind} {case.stack.crypto}")
        return cast(Testbed, Bed(self.log, self.answer))


class Tester:
    def open(self, ports: list[Any], watch_cpus: list[int]) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        pass


ANSWER = {
    "id": 7, "ok": True, "driver": "authenc-talitos", "after_ns": 400, "at_once_ns": 100, "full": 2,
    "after_idle_ns": 10, "at_once_idle_ns": 5,
}  # fmt: skip


def test_each_figure_begins_in_the_same_state_and_is_kept(tmp_path: Path) -> None:
    run = made.build(tmp_path, made.Shape())
    log: list[str] = []
    asked = plan().plan.accelerator
    assert asked is not None
    new = cast(Any, lambda: cast(Generator, Tester()))
    results = measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append)
    assert [line for line in log if not line.startswith("accelerator test")] == [
        "mpc8548e xfrm async", "booted", "fresh", "accel aes128-sha1 64 50000",
        "fresh", "accel aes128-sha1 1024 50000", "closed",
    ]  # fmt: skip
    assert accelerator.read(run.path) == results
    assert [(r.size, r.gain, r.after_idle_ns) for r in results] == [(64, 4.0, 10), (1024, 4.0, 10)]
    log.clear()
    assert measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append) == results
    assert log == [], "a resumed run measures what is missing, which is nothing"


def test_a_changed_figure_is_measured_again(tmp_path: Path) -> None:
    """A digit more turned a gain of 4 into 40, and the resumed run and its report believed it."""
    run = made.build(tmp_path, made.Shape())
    asked = plan().plan.accelerator
    assert asked is not None
    new = cast(Any, lambda: cast(Generator, Tester()))
    log: list[str] = []
    figures = measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append)
    file = run.path / accelerator.FILE
    file.write_text(file.read_text().replace('"after_ns":400', '"after_ns":4000', 1))
    with pytest.raises(EspbenchError, match="espbench run --resume"):
        accelerator.read(run.path)
    log.clear()
    assert measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append) == figures
    assert log[0] == "accelerator.jsonl: line 1 is not as written; measured again"
    assert [line for line in log if line.startswith("accel ")] == ["accel aes128-sha1 64 50000"]
    assert accelerator.read(run.path) == figures


def test_each_use_of_the_engine_has_a_board_of_its_own(tmp_path: Path) -> None:
    """Its kernel is started with it; a resumed run makes only the figures that are missing."""
    run = made.build(tmp_path, made.Shape())
    asked = plan(PLAN.replace("[aes128-sha1]}", "[aes128-sha1], crypto: [software, async]}")).plan.accelerator
    assert asked is not None
    log: list[str] = []
    new = cast(Any, lambda: cast(Generator, Tester()))
    figures = measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append)
    assert [line for line in log if line.startswith("mpc8548e")] == [
        "mpc8548e xfrm software",
        "mpc8548e xfrm async",
    ]
    assert [(r.crypto, r.size) for r in figures] == [
        ("software", 64), ("software", 1024), ("async", 64), ("async", 1024),
    ]  # fmt: skip
    accelerator.save(run.path, [r for r in figures if (r.crypto, r.size) != ("software", 1024)])
    log.clear()
    assert measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append) == figures
    assert [line for line in log if line.startswith(("mpc", "accel "))] == [
        "mpc8548e xfrm software", "accel aes128-sha1 1024 50000",
    ]  # fmt: skip


def test_each_variant_is_asked_of_the_guest_and_kept_apart(tmp_path: Path) -> None:
    run = made.build(tmp_path, made.Shape())
    variants = "{}, {operation: decrypt, check: after}, {descriptors: prebuilt}, {data: cached, keys: 16}"
    text = PLAN.replace("[64, 1024]", "[64]").replace(
        "[aes128-sha1]}", f"[aes128-sha1], variants: [{variants}]}}"
    )
    asked = plan(text).plan.accelerator
    assert asked is not None
    log: list[str] = []
    new = cast(Any, lambda: cast(Generator, Tester()))
    figures = measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append)
    assert [line.removeprefix("accel aes128-sha1 64 50000") for line in log if line.startswith("accel ")] == [
        "", " decrypt check=after", " prebuilt", " cached keys=16",
    ]  # fmt: skip
    assert accelerator.read(run.path) == figures
    assert len({accelerator.name_of(accelerator.key(figure)) for figure in figures}) == 4
    accelerator.save(run.path, figures[:3])
    log.clear()
    assert measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append) == figures
    assert [line for line in log if line.startswith("accel ")] == [
        "accel aes128-sha1 64 50000 cached keys=16"
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("variants: [{}, {}]", "tests[1].accelerator.variants[1]: expected variants that differ"),
        ("variants: [{operation: decrypt, data: cached}]", "variants[0].data: expected unique data"),
        ("crypto: [polling, software], variants: [{descriptors: prebuilt}]", "with crypto: software"),
        ("variants: [{keys: 257}]", "tests[1].accelerator.variants[0].keys"),
        ("variants: [{check: never}]", "tests[1].accelerator.variants[0].check"),
        ("variants: []", "tests[1].accelerator.variants"),
    ],
)
def test_variants_that_no_guest_can_make(keys: str, message: str) -> None:
    assert message in refused(PLAN.replace("[aes128-sha1]}", f"[aes128-sha1], {keys}}}"))


def test_a_uml_guest_computes_in_software() -> None:
    """Its kernel has no engine, so it has no descriptors to be built before."""
    text = PLAN.replace("dut: mpc8548e", "dut: uml").replace(
        "[aes128-sha1]}", "[aes128-sha1], crypto: [software]}"
    )
    asked = plan(text).plan.accelerator
    assert asked is not None
    assert asked.crypto == ["software"]
    words = refused(text.replace("[software]}", "[software], variants: [{descriptors: prebuilt}]}"))
    assert "expected no prebuilt descriptors with crypto: software" in words


class Guest:
    """A UML guest whose others take this share of its time, %, in each attempt."""

    def __init__(self, *taken_pct: float) -> None:
        self._taken_pct = iter(taken_pct)
        self.asked = 0
        self.side = "home"
        self.waited = 0

    def measured(self, *_: object) -> dict[str, int]:
        self.asked += 1
        self.waited += int(1e7 * next(self._taken_pct))
        return {"after_ns": 2, "at_once_ns": 1, "full": 0}


@pytest.mark.parametrize(
    ("taken_pct", "attempts", "disturbed_pct"),
    [((1,), 1, None), ((20, 3), 2, None), ((20, 30, 40, 50, 60), 5, 60)],
)
def test_a_figure_that_the_host_disturbed_is_made_again_or_invalid(
    monkeypatch: pytest.MonkeyPatch, taken_pct: tuple[float, ...], attempts: int, disturbed_pct: float | None
) -> None:
    """An attempt takes a second; so much of it others kept the guest from its CPU."""
    guest = Guest(*taken_pct)

    def look() -> host.HostSnapshot:
        return host.HostSnapshot(guest.asked * 1_000_000_000, 0, {0: host.CpuTimes(0, 0, 0)})

    monkeypatch.setattr(host, "look", look)
    monkeypatch.setattr(crypto_api, "measure", guest.measured)
    asker = UmlGuest.__new__(UmlGuest)
    gateway = SimpleNamespace(
        cpu_ns=lambda: 0, waited_ns=lambda: guest.waited, read=lambda paths: {paths[0]: ""}
    )
    asker._gateway = cast(Any, gateway)
    placed = SimpleNamespace(cpus={"home": [0]})
    asker._bed = cast(Any, SimpleNamespace(kept_waiting_ns=lambda: guest.waited, placement=placed))
    asker._program = Path("made-up")
    said = asker.ask("aes128-sha1", 64, 1000, Variant())
    assert (guest.asked, said["disturbed_pct"]) == (attempts, disturbed_pct)


def test_a_figure_that_the_host_disturbed_is_told_and_measured_again_by_a_resumed_run(tmp_path: Path) -> None:
    """The other figures are kept."""
    run = made.build(tmp_path, made.Shape())
    asked = plan().plan.accelerator
    assert asked is not None
    new = cast(Any, lambda: cast(Generator, Tester()))
    log: list[str] = []
    beds = Beds(log, ANSWER | {"disturbed_pct": 60.4})
    sound, disturbed = measure(asked, ["mpc8548e"], beds, new, run, log.append)
    assert log[-2] == (
        "accelerator test: mpc8548e, async, aes128-sha1, 1024 B: INVALID: in each attempt the host took too much of "
        "the guest's time, in the last 60 %"
    )
    accelerator.save(run.path, [sound.model_copy(update={"disturbed_pct": None}), disturbed])
    log.clear()
    figures = measure(asked, ["mpc8548e"], Beds(log, ANSWER), new, run, log.append)
    assert [line for line in log if line.startswith("accel ")] == ["accel aes128-sha1 1024 50000"]
    assert [figure.is_valid for figure in figures] == [True, True]
    assert accelerator.read(run.path) == figures


def test_figures_of_before_there_were_several_uses_are_of_the_only_one(tmp_path: Path) -> None:
    """They are those that a resumed run does not make again."""
    run = made.build(tmp_path, made.Shape())
    asked = plan().plan.accelerator
    assert asked is not None
    new = cast(Any, lambda: cast(Generator, Tester()))
    figures = measure(asked, ["mpc8548e"], Beds([], ANSWER), new, run, print)
    file = run.path / accelerator.FILE
    file.write_text("".join(f"{to_json(figure)}\n" for figure in figures).replace('"crypto":"async",', ""))
    assert "crypto" not in file.read_text()
    assert accelerator.read(run.path) == figures


def test_a_guest_that_cannot_is_ended_and_the_figures_before_are_kept(tmp_path: Path) -> None:
    run = made.build(tmp_path, made.Shape())
    asked = plan().plan.accelerator
    assert asked is not None
    log: list[str] = []
    beds = Beds(log, EspbenchError("gateway home: accel: Bad message"))
    with pytest.raises(EspbenchError, match="Bad message"):
        measure(asked, ["mpc8548e"], beds, cast(Any, lambda: cast(Generator, Tester())), run, log.append)
    assert log[-1] == "closed"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / accelerator.FILE).write_text("{}\n")
    with pytest.raises(EspbenchError, match=r"accelerator\.jsonl:1: damaged"):
        accelerator.read(tmp_path)


def test_rates_are_of_data() -> None:
    result = AcceleratorResult(
        dut="d", suite="s", size=1000, operations=10, driver="x", after_ns=80_000, at_once_ns=40_000, full=0
    )
    assert (result.after_mbps, result.at_once_mbps, result.gain) == (1000, 2000, 2)
