# SPDX-License-Identifier: Apache-2.0
"""`baseline.json`: what it says, that it merges, and that nothing but what was written is believed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.gate import baseline_file
from espbench.gate.base import Base, BaseCase, Point, Sample
from espbench.gate.from_run import base_of
from espbench.results import RunDirectory
from support.synthetic.gate import LOAD_FPS, World


def written(tmp_path: Path, world: World = World(), name: str = "baseline.json") -> Path:  # noqa: B008
    path = tmp_path / name
    path.write_text(baseline_file.text_of(base_of(world.run(tmp_path / "runs"))), encoding="utf-8")
    return path


def test_it_holds_each_case_with_its_load_and_instructions(tmp_path: Path) -> None:
    base = baseline_file.read(written(tmp_path))
    assert [str(point) for point in base.cases] == [
        "board plain 64 B one-way",
        "board plain 1456 B one-way",
        "board xfrm aes128gcm16 64 B one-way",
        "board xfrm aes128gcm16 1456 B one-way",
    ]
    (sample,) = base.cases[Point("board", "xfrm", "aes128gcm16", 4, 64, "one-way", "throughput")].samples
    assert sample == Sample(1, 0.0, LOAD_FPS, 0.1, {"home": 12000.0, "office": 12000.0}, met=True)


def test_a_band_of_several_repeats_is_in_it(tmp_path: Path) -> None:
    world = World(repeats=5, cost=lambda entry: 5000.0 + entry.repeat)
    base = baseline_file.read(written(tmp_path, world))
    assert base.repeats == 5
    case = next(iter(base.cases.values()))
    assert [s.instructions["home"] for s in case.samples] == [5001.0, 5002.0, 5003.0, 5004.0, 5005.0]


def test_it_is_small_and_has_a_line_a_case(tmp_path: Path) -> None:
    lines = written(tmp_path).read_text().splitlines()
    assert sum('"seal"' in line for line in lines) == 4
    assert max(map(len, lines)) < 500


numbers = st.floats(min_value=0.001, max_value=1e7, allow_nan=False).map(lambda x: round(x, 3))


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b: c", "ü"]), st.integers(64, 1518), st.integers(1, 5), numbers, numbers
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda item: (item[0], item[1]),
    )
)
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, items: list[tuple[str, int, int, float, float]]
) -> None:
    """Sorted, whatever the order, and equal."""
    cases = {}
    for stack, size, repeats, load, cost in items:
        point = Point("dut", stack, "suite", 4, size, "one-way", "throughput")
        samples = [Sample(r + 1, 0.0, load, 0.1, {"home": cost + r}, met=True) for r in range(repeats)]
        cases[point] = BaseCase(point, samples, "run", "2026", {})
    base = Base("", {"espbench": "1", "a: options": "x", "dut: kernel": "6"}, cases)
    path = tmp_path_factory.mktemp("base") / "baseline.json"
    text = baseline_file.text_of(base)
    path.write_text(text, encoding="utf-8")
    read_back = baseline_file.read(path)
    assert read_back.cases == base.cases
    backwards = replace(base, cases=dict(reversed(list(cases.items()))))
    assert baseline_file.text_of(backwards) == text


def update(path: Path, run: RunDirectory) -> None:
    """Update the file as `espbench baseline` does where one is there already."""
    base = baseline_file.keeping(base_of(run), baseline_file.read(path))
    path.write_text(baseline_file.text_of(base), encoding="utf-8")


def test_two_branches_that_add_cases_merge(tmp_path: Path) -> None:
    """Git's three-way merge joins the lines: one branch adds a stack in front, one behind."""
    common = written(tmp_path)
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    for path, stacks in ((ours, ("null", "plain", "xfrm")), (theirs, ("plain", "xfrm", "zero"))):
        path.write_text(common.read_text())
        update(path, World(stacks=stacks).run(tmp_path / "runs"))
    done = subprocess.run(
        ["git", "merge-file", str(ours), str(common), str(theirs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, ours.read_text()
    assert {point.stack for point in baseline_file.read(ours).cases} == {"null", "plain", "xfrm", "zero"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("12000.0", "13000.0", 1), "was edited"),
        (lambda text: text.replace("0123456789abcdef", "fedcba9876543210"), "was edited"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "newer espbench"),
        (lambda text: text[: len(text) // 2], "not a base"),
        (lambda text: text.replace("12000.0", "NaN", 1), "NaN is no number"),
        (lambda text: text.replace('"met": true', '"met": 1'), "met"),
        (lambda text: "<<<<<<< ours\n" + text, "merge that is not resolved"),
        (lambda text: "[]", "not a base"),
        (lambda text: "", "not a base"),
        (lambda text: "\n".join(line for line in text.splitlines() if '"seal"' not in line), "at least one case"),
        (lambda text: text.replace('"cases": [\n', '"cases": [\n' + first_case(text)), "twice"),
    ],
)  # fmt: skip
def test_what_was_not_written_so_is_refused(tmp_path: Path, change: Callable[[str], str], said: str) -> None:
    path = written(tmp_path)
    path.write_text(change(path.read_text()))
    with pytest.raises(UsageError, match=said):
        baseline_file.read(path)


def test_a_case_that_costs_otherwise_has_a_new_line(tmp_path: Path) -> None:
    """No other line changes, so that the diff shows only the changed case."""
    path = written(tmp_path)
    before = path.read_text().splitlines()
    dearer = World(
        cost=lambda entry: 5000.0 if entry.stack == "plain" else 12000.0 + (entry.frame_size == 64)
    )
    update(path, dearer.run(tmp_path / "runs"))
    (changed,) = [line for line in path.read_text().splitlines() if line not in before]
    assert '"home": 12001.0' in changed


def first_case(text: str) -> str:
    return next(line for line in text.splitlines() if '"seal"' in line) + "\n"


def test_a_case_merged_from_a_base_of_other_conditions_is_refused(tmp_path: Path) -> None:
    ours = written(tmp_path)
    theirs = written(tmp_path, World(stacks=("null",), qemu="qemu sha256 ffff"), "theirs.json")
    merged = ours.read_text().replace('"cases": [\n', '"cases": [\n' + first_case(theirs.read_text()))
    ours.write_text(merged)
    with pytest.raises(UsageError, match=r"null .* was edited, or merged from a base of other conditions"):
        baseline_file.read(ours)


def test_it_is_json(tmp_path: Path) -> None:
    document = json.loads(written(tmp_path).read_text())
    assert document["format"] == baseline_file.FORMAT
    assert document["cases"][-1] is None
