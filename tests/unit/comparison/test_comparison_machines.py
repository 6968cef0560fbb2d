# SPDX-License-Identifier: Apache-2.0
"""Figures of different machines are never held against each other, unless the user asks for that."""

from __future__ import annotations

import pytest

from espbench.comparison.build import of
from espbench.comparison.sorting.samples import Run
from espbench.errors import UsageError
from espbench.terms import Outcome
from support.simulated import comparisons as sim

FPS = (2.97e4, 3e4, 3.03e4)


def outcomes(
    stack: str, *, sizes: tuple[int, ...] = (64,), dut: str = "dut", factor: float = 1.0
) -> list[Outcome]:
    """Three repeats at each size."""
    return [
        sim.made(stack, size, r + 1, FPS[r] * factor, case=f"{stack}-{dut}-{size}-r{r + 1}", dut=dut)
        for size in sizes
        for r in range(3)
    ]


def run(name: str, measured: list[Outcome], machines: dict[str, str], by: str = "", host: str = "") -> Run:
    """A run with the machine of each case; host: that of all cases, of a run on one machine."""
    made = sim.run_of(measured, {"by": by, "seed": 5} if by else None, name)
    update = {"machine_of_case": machines, "machines": {name: {} for name in machines.values()}}
    manifest = made.manifest.model_copy(update={"host": {"machine": host}} if host else update)
    return Run(name, manifest, measured)


def test_two_runs_on_different_machines_are_refused_and_can_be_allowed() -> None:
    """The machine is a condition, as the kernel is."""
    runs = [run("one", outcomes("xfrm"), {}, host="aa"), run("two", outcomes("xfrm"), {}, host="bb")]
    with pytest.raises(UsageError, match="host: machine: one: aa; two: bb"):
        of(runs, by="run")
    allowed = of(runs, by="run", allow_different=True)
    assert [d.what for d in allowed.differences] == ["host: machine"]
    assert allowed.panels[0].pairs[0].points


def test_devices_of_one_run_on_different_machines_are_not_compared() -> None:
    measured = [o for dut in ("x", "y") for o in outcomes("xfrm", dut=dut)]
    machines = {o.case: "aa" if o.dut == "x" else "bb" for o in measured}
    with pytest.raises(UsageError, match=r"different machines\n.*\n  got:\n    x: on aa\n    y: on bb\n"):
        of([run("one", measured, machines)], by="dut")
    together = of([run("one", measured, dict.fromkeys(machines, "aa"))], by="dut")
    assert len(together.panels[0].pairs[0].points) == 1


def test_points_of_different_machines_are_left_out_and_told() -> None:
    """At 512 B the second run was measured on another machine; at 64 B on the same."""
    first, second = (outcomes("xfrm", sizes=(64, 512)) for _ in range(2))
    on = {o.case: "aa" if o.frame_size == 64 else "bb" for o in first}
    swapped = {o.case: "aa" if o.frame_size == 64 or o.repeat == 2 else "bb" for o in second}
    comparison = of([run("one", first, on), run("two", second, swapped)], by="run")
    assert [point.x for point in comparison.panels[0].pairs[0].points] == [64]
    assert any(
        text.startswith("Not compared: 512 B, measured on different machines") for text in comparison.warnings
    )


def test_repeats_on_several_machines_are_compared_where_each_arm_was_on_each() -> None:
    """A repeat is of one machine, so that its pair is."""
    measured = outcomes("a") + outcomes("b", factor=1.3)
    machines = {o.case: f"m{o.repeat}" for o in measured}
    comparison = of([run("one", measured, machines, by="stack")], by="stack")
    (point,) = comparison.panels[0].pairs[0].points
    assert point.word == "B faster"
    assert comparison.panels[0].pairs[0].paired


def test_an_interrupted_run_lacks_repeats_and_is_compared_all_the_same() -> None:
    measured = outcomes("a") + outcomes("b")[:2]
    comparison = of([run("one", measured, dict.fromkeys((o.case for o in measured), "aa"))], by="stack")
    assert len(comparison.panels[0].pairs[0].points) == 1
