# SPDX-License-Identifier: Apache-2.0
"""Plans of cipher kernels: what they list, and every mistake with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from espbench.errors import UsageError
from espbench.plan import ResolvedPlan, cases, load_plan, load_profile, notes, resolve
from espbench.plan.reading.reader import read_text
from espbench.platforms.virtual.parts.kits import E500_KIT
from espbench.procedures.boards.cipher_kernels import configurations, listed
from espbench.runs.beds import choose
from espbench.runs.platform_kinds.shared.platform import kits_of
from support.plans import kernels_text, plan_text

PLAN = kernels_text(
    dut="[ixp1200, ixp2800]",
    tests="""
  - cipher_kernels: {kernels: [des, rc4], levels: [0, 2]}
  - cipher_kernels: {duts: [ixp2800], kernels: [des], levels: [2], engines: [1, 8], threads: [8]}""",
)
ROOT = Path(__file__).parents[3]


def plan(text: str = PLAN) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"), None)


def refused(text: str) -> str:
    with pytest.raises(UsageError) as error:
        plan(text)
    return str(error.value).removeprefix("plan.yaml:")


def test_every_combination_is_measured_once() -> None:
    """One that two tests list is so too; there are no cases of gateways, and no note of a baseline."""
    asked = plan()
    configured = [c for c, _ in configurations(asked)]
    assert len(configured) == len(set(configured)) == 2 * 2 * 2 + 2
    assert [c.shown for c in configured][-1] == "ixp2800, des, level 2, gcc -O2, 8 × 8"
    assert listed(asked) == ["cipher_kernels: 8 configurations", "cipher_kernels: 2 configurations"]
    assert (cases(asked), notes(asked)) == ([], [])
    twice = PLAN + "  - cipher_kernels: {kernels: [des], levels: [0]}\n"
    assert [c for c, _ in configurations(plan(twice))] == configured


def test_the_plan_that_comes_with_espbench_has_all_of_the_papers_experiments() -> None:
    configured = [c for c, _ in configurations(load_plan(ROOT / "plans" / "npcryptbench.yaml"))]
    assert len(configured) == 340
    assert (
        len({(c.dut, c.kernel, c.compilation.level) for c in configured if (c.engines, c.threads) == (1, 1)})
        == 120
    )
    assert len({(c.compilation.compiler, c.compilation.option) for c in configured}) == 6
    assert len({(c.engines, c.threads) for c in configured}) == 16
    assert {(c.faster_dram, c.faster_sram) for c in configured} == {(0.0, 0.0), (0.165, 0.335)}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("no-network", "gateway-to-gateway", "expected a gateway with topology: gateway-to-gateway"),
        (
            "[ixp1200, ixp2800]",
            "netns",
            "expected a network processor (platform: ixp) or a board (qemu_e500)",
        ),
        ("tests:", "stacks: [xfrm]\ntests:", "expected no stacks with topology: no-network"),
        ("tests:", "capture: true\ntests:", "expected no capture with topology: no-network"),
        ("tests:", "repeat: 2\ntests:", "nothing is drawn by chance"),
        ("tests:", "seed: 2\ntests:", "nothing is drawn by chance"),
        ("- cipher_kernels: {duts", "- throughput: {}\n  - cipher_kernels: {duts", "expected cipher_kernels"),
        (
            "duts: [ixp2800]",
            "duts: [ixp2400]",
            "tests[1].cipher_kernels.duts[0]: expected one of the plan's DUTs",
        ),
        ("[des, rc4]", "[des, rot13]", "tests[0].cipher_kernels.kernels[1]"),
        ("levels: [0, 2]", "levels: [0, 4]", "tests[0].cipher_kernels.levels[1]"),
        ("levels: [0, 2]", "levels: []", "tests[0].cipher_kernels.levels"),
        ("levels: [0, 2]", "data: 100", "tests[0].cipher_kernels.data"),
        ("levels: [0, 2]", "faster: {dram: -1%}", "expected an increase from 0 to 1000%"),
        ("engines: [1, 8]", "engines: [1, 17]", "expected at most 16 engines with ixp2800, got 17"),
        ("duts: [ixp2800], ", "", "expected at most 6 engines with ixp1200, got 8"),
        (
            "levels: [0, 2]",
            "threads: [1, 2]",
            "expected no level 0 of rc4 with more than one flow in a memory",
        ),
        (
            "levels: [0, 2]",
            "levels: [2], threads: [4], engines: [3]",
            "expected no rc4 with more than 8 threads",
        ),
    ],
)
def test_mistakes_are_told_with_their_place(old: str, new: str, message: str) -> None:
    assert old in PLAN
    assert message in refused(PLAN.replace(old, new, 1))


BOARD = kernels_text(dut="mpc8548e", tests="[cipher_kernels: {levels: [0, 1], options: [O0, O2]}]")


def test_a_board_runs_kernels_too() -> None:
    """Each kernel, level and option on its one core; it is no gateway there, so no platform asks for addresses."""
    asked = plan(BOARD)
    assert len(configurations(asked)) == 10 * 2 * 2
    (choice,) = choose(asked)
    assert (choice.platform.name, choice.platform.virtual_time) == ("qemu_e500", True)
    assert kits_of([choice.platform]) == [E500_KIT]


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("levels: [0, 2]", "tests[0].cipher_kernels.levels: expected 0 and 1 with mpc8548e, got 2"),
        ("levels: [0], compilers: [clang-19]", "expected gcc with mpc8548e, got clang-19"),
        ("levels: [0], engines: [1, 2]", "expected 1 with mpc8548e, got 2"),
        ("levels: [0], threads: [4]", "expected 1 with mpc8548e, got 4"),
        ("levels: [0], faster: {dram: 1%}", "expected no faster with mpc8548e"),
        ("levels: [0], compilers: [clang19]", "expected gcc, clang or a version of it such as clang-19"),
    ],
)
def test_what_only_engines_have_is_refused_of_a_board(new: str, message: str) -> None:
    assert message in refused(BOARD.replace("levels: [0, 1], options: [O0, O2]", new))


def test_gateways_have_no_kernels() -> None:
    text = plan_text(tests="[cipher_kernels: {}]")
    assert "cipher_kernels needs topology: no-network" in refused(text)


def profile(tmp_path: Path, old: str, new: str) -> str:
    text = (ROOT / "dut-profiles" / "ixp2800.yaml").read_text()
    assert old in text
    (tmp_path / "mine.yaml").write_text(text.replace(old, new, 1))
    of_mine = PLAN.replace("[ixp1200, ixp2800]", "./mine.yaml").replace("duts: [ixp2800], ", "")
    (tmp_path / "plan.yaml").write_text(of_mine)
    with pytest.raises(UsageError) as error:
        load_plan(tmp_path / "plan.yaml")
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("platform: ixp\n", "platform: netns\n", "no such key with platform: netns"),
        ("interleave: 128 ", "interleave: 100 ", "a multiple of dram's transfer"),
        ("clock: 1400MHz", "clock: fast", "processor.stated.clock"),
        ("rv32im_zbb", "rv64gc", "processor.assumed.instructions"),
        ("    swap: 3 ", "    swop: 3 ", "processor.assumed"),
    ],
)
def test_mistakes_in_a_profile_are_told(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert message in profile(tmp_path, old, new)


def test_a_profile_without_its_processor_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\ndescription: none\nplatform: ixp\n")
    (tmp_path / "plan.yaml").write_text(PLAN.replace("[ixp1200, ixp2800]", "./mine.yaml"))
    with pytest.raises(UsageError, match="expected processor: with platform: ixp, got none"):
        load_plan(tmp_path / "plan.yaml")


def test_the_document_has_the_assumptions_of_the_profiles() -> None:
    """The table has a row for each thing that the machine needs and the paper does not state."""
    text = (ROOT / "docs/npcryptbench.md").read_text(encoding="utf-8")
    rows = {}
    for line in text.partition("| assumption | IXP1200")[2].partition("\n\n")[0].splitlines()[2:]:
        title, *values = [cell.strip() for cell in line.strip("| ").split(" | ")]
        rows[re.split("[:;]", title)[0] if title.startswith("`") else title] = values
    processors = [load_profile(name).processor for name in ("ixp1200", "ixp2400", "ixp2800")]
    assumed = [p.assumed for p in processors if p is not None]
    assert [a.dram.interleave for a in assumed] == [0, 0, 128]
    assert [a.dram.channels for a in assumed] == [1, 1, 3]
    assert rows["DRAM: `interleave`, bytes after which the next channel begins"] == ["one channel"] * 2 + [
        "128"
    ]
    assert {a.sram.interleave for a in assumed} == {0}  # so the first channel serves all
    in_use = next(values for title, values in rows.items() if title.startswith("SRAM: channels in use"))
    assert in_use == ["1"] * 3
    assert rows["`stack`"] == [f"{a.stack:,}; 1" for a in assumed]
    assert rows["local memory: cycles of an access of 1, 2 or 4 B"] == ["none", "1", "1"]
