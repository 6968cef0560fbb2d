# SPDX-License-Identifier: Apache-2.0
"""The test of the public-key unit: how a plan asks for it, what is asked of which guest, what is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from espbench.errors import EspbenchError, UsageError
from espbench.plan import ResolvedPlan, cases, resolve
from espbench.plan.reading.reader import read_text
from espbench.plan.resolved.cases import Case
from espbench.platforms.base import Testbed
from espbench.platforms.e500.e500_gateway import E500Gateway
from espbench.procedures.boards.public_key_unit import measure, operations
from espbench.results import RunDirectory, accelerator
from espbench.results.accelerator import PublicKeyResult
from support.plans import plan_text
from support.synthetic import powerquicc as made

PLAN = plan_text(
    name="mine",
    dut="mpc8548e",
    stacks="[xfrm]",
    suites="[3des-sha1]",
    tests="\n  - throughput: {}\n  - public_key_unit: {sizes: [512], clocks_mhz: [66, 266], operations: 2}",
)
ANSWER = {"id": 7, "ok": True, "whole_ns": 2_000_000, "idle_ns": 1_500_000, "overhead_ns": 20_000}
OWN_CLOCK = [
    "public_key unit rsa 512 512 2", "public_key unit rsa 512 3 2", "public_key unit rsa-crt 512 0 2",
    "public_key software rsa 512 512 2", "public_key software rsa 512 3 2",
    "public_key software rsa-crt 512 0 2", "public_key software ecdh 256 0 2", "public_key software ecdh 384 0 2",
    "public_key software ecdsa-verify 256 0 2", "public_key software ecdsa-verify 384 0 2",
]  # fmt: skip


def plan(text: str = PLAN) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"), None)


@dataclass
class Boards:
    """Builds beds whose guest answers at once; log has what was built and asked, the two clocks of a bed included."""

    log: list[str] = field(default_factory=list)
    refuses: str = ""

    def build(self, case: Case) -> Testbed:
        self.log.append(f"{case.dut} at {case.engine_mhz}")
        return cast(Testbed, Bed(self))


class Bed:
    def __init__(self, boards: Boards) -> None:
        self.boards = boards
        self.ports: dict[str, Any] = {}
        gateway = E500Gateway.__new__(E500Gateway)
        gateway.request = self.request  # type: ignore[method-assign]
        self.gateways = {"home": gateway}

    def request(self, text: str, timeout_s: float = 0) -> dict[str, Any]:
        self.boards.log.append(text)
        if self.boards.refuses and self.boards.refuses in text:
            raise EspbenchError("gateway home: public_key: Bad message")
        return ANSWER

    def attached(self, generator: object) -> None:
        pass

    def begin_trial(self, chance: str = "") -> None:
        self.boards.log.append("fresh")

    def close(self) -> None:
        self.boards.log.append("closed")


class Tester:
    def open(self, ports: list[Any], watch_cpus: list[int]) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        pass


def measured(run: RunDirectory, boards: Boards) -> list[PublicKeyResult]:
    asked = plan().plan.public_key_unit
    assert asked is not None
    return measure(asked, {"mpc8548e": 266.0}, boards, cast(Any, Tester), run, lambda text: None)


def test_it_is_no_case_and_has_the_published_sizes() -> None:
    asked = plan(PLAN.replace(" {sizes: [512], clocks_mhz: [66, 266], operations: 2}", " {}"))
    unit = asked.plan.public_key_unit
    assert unit is not None
    published = [o for o in operations(unit, 266.0) if o.by == "unit" and o.clock_mhz != 266.0]
    assert len(published) == 48
    assert [c.id for c in cases(asked)] == [c.id for c in cases(plan())]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dut: mpc8548e", "dut: uml", "expected an emulated board (platform: qemu_e500) for the test public_key_unit"),
        ("  - throughput: {}", "  - public_key_unit: {}", "expected one public_key_unit test"),
        ("[512]", "[768]", "tests[1].public_key_unit.sizes[0]"),
        ("[66, 266]", "[0]", "tests[1].public_key_unit.clocks_mhz[0]"),
        ("[66, 266]", "[66, 66]", "tests[1].public_key_unit.clocks_mhz"),
    ],
)  # fmt: skip
def test_mistakes_have_a_place(old: str, new: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        plan(PLAN.replace(old, new))
    assert message in str(error.value)


def test_each_clock_has_a_board_and_each_figure_a_fresh_guest(tmp_path: Path) -> None:
    """The profile's own clock is measured once, with software, though the plan lists it too."""
    run, boards = made.build(tmp_path, made.Shape()), Boards()
    results = measured(run, boards)
    expected = ["mpc8548e at None", *(line for text in OWN_CLOCK for line in ("fresh", text)), "closed"]
    expected += ["mpc8548e at 66", "fresh", OWN_CLOCK[0], "fresh", OWN_CLOCK[1], "closed"]
    assert boards.log == expected
    assert accelerator.read_public_key(run.path) == results
    one = results[0]
    assert (one.ms, one.unit_ms, one.overhead_pct, one.cpu_pct, one.per_s) == (1.0, 0.99, 1.0, 25.0, 1000.0)


def test_a_resumed_run_measures_what_is_missing_or_changed(tmp_path: Path) -> None:
    run = made.build(tmp_path, made.Shape())
    results = measured(run, Boards())
    file = run.path / accelerator.PUBLIC_KEY_FILE
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
    boards = Boards()
    assert measured(run, boards) == results
    assert boards.log == ["mpc8548e at None", "fresh", OWN_CLOCK[0], "closed"]
    file.write_text(file.read_text().replace('"whole_ns":2000000', '"whole_ns":1000000', 1))
    boards = Boards()
    assert measured(run, boards) == results
    assert [line for line in boards.log if line.startswith("public")] == [OWN_CLOCK[0]]


def test_a_wrong_result_ends_the_run_and_keeps_what_is_before(tmp_path: Path) -> None:
    run, boards = made.build(tmp_path, made.Shape()), Boards(refuses="ecdh 256")
    with pytest.raises(EspbenchError, match="Bad message"):
        measured(run, boards)
    assert boards.log[-1] == "closed"
    assert len(accelerator.read_public_key(run.path)) == 6
