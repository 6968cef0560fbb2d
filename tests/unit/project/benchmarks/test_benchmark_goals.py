# SPDX-License-Identifier: Apache-2.0
"""Benchmarks with a documented goal say when they miss it, and then end with exit code 1; all benchmarks are listed."""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import ab_comparison
import comparison
import demo_under_load
import generator
import load_effect
import numpy as np
import pandas as pd
import pytest

from espbench.comparison.sorting.model import Estimate
from espbench.measure import trial
from espbench.measure.inputs.setup import Request
from espbench.plan import load_plan

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "benchmarks"
LIST = (FOLDER / "README.md").read_text(encoding="utf-8")
# Each row of a folder's tables, by the file's path.
ROWS = {f"{section.splitlines()[0]}/{row[0]}": row for section in LIST.split("\n## ")[1:] for row in (
    [cell.strip(" `") for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| `")
)}  # fmt: skip
MOST_FILES = 15  # of a folder
QUIET_FPS = 10_000.0


def _run(*figures: tuple[str, float | None]) -> pd.DataFrame:
    """Return the results of a run of the demo, one for each status and throughput."""
    index = pd.Index([f"result {n}" for n in range(len(figures))], name=demo_under_load.RESULT)
    rows = {"status": [s for s, _ in figures], "throughput_fps": [fps for _, fps in figures]}
    return pd.DataFrame(rows, index=index).astype({"throughput_fps": float})


GOOD = ("OK", QUIET_FPS)
HIGH = ("OK", 1.5 * QUIET_FPS)
NONE = ("INVALID", None)


@pytest.mark.parametrize(
    ("quiet", "loaded", "wanted"),
    [
        ([_run(GOOD, GOOD)], [_run(GOOD, GOOD)], True),
        ([_run(GOOD, GOOD)], [], True),
        ([_run(GOOD, GOOD)], [_run(GOOD, ("LOWER_BOUND", 8_000.0))], True),
        ([_run(GOOD, GOOD)], [_run(GOOD, HIGH)], False),
        ([_run(GOOD, GOOD), _run(GOOD, HIGH)], [_run(GOOD, HIGH)], True),
        ([_run(GOOD, GOOD)], [_run(GOOD, NONE)], False),
        ([_run(GOOD, GOOD)], [_run(GOOD)], False),
        ([_run(GOOD)], [_run(GOOD)], False),
        ([_run(GOOD, GOOD)], [_run(GOOD, GOOD, GOOD)], False),
        ([_run(GOOD, NONE)], [_run(GOOD, GOOD)], False),
        ([_run(GOOD)], [_run(GOOD, HIGH)], False),
        ([], [_run(GOOD, HIGH)], False),
        ([], [], False),
    ],
)
def test_the_demo_under_load_needs_a_quiet_figure_for_each(
    quiet: list[pd.DataFrame], loaded: list[pd.DataFrame], wanted: bool
) -> None:
    """Without one nobody knows whether a figure is too high."""
    assert demo_under_load.report({"quiet": quiet, "bursts": loaded}, 0.01, results=2) == wanted


@pytest.mark.parametrize(("results", "wanted"), [(18, True), (17, False)])
def test_a_run_must_have_all_results_of_the_plan(results: int, wanted: bool) -> None:
    """16 figures of 18 are enough, but not if a result is missing: an interrupted run may have lost it."""
    quiet, loaded = (_run(*[GOOD] * count) for count in (18, results))
    assert demo_under_load.report({"quiet": [quiet], "bursts": [loaded]}, 0.01, results=18) == wanted


# Six runs of the demo that differ as quiet runs of one machine do: by 3 % as a whole, and by 5 % in each figure.
NOISE = np.random.default_rng(2544).normal(0, 0.05, (6, 9)) + np.random.default_rng(2285).normal(
    0, 0.03, (6, 1)
)


def _noisy(runs: slice, raised: float = 1.0, results: int = 9) -> list[pd.DataFrame]:
    """Return runs of the demo with noise, of which the first results are raised by a factor."""
    factors = [raised if n < results else 1.0 for n in range(9)]
    return [
        _run(*[("OK", QUIET_FPS * factor * math.exp(x)) for factor, x in zip(factors, row, strict=True)])
        for row in NOISE[runs]
    ]


@pytest.mark.parametrize(
    ("raised", "results", "wanted"),
    [(1.0, 9, True), (1.04, 9, True), (1.25, 9, False), (1.6, 1, False), (0.8, 9, True)],
)
def test_several_runs_show_whether_a_load_raises_figures(raised: float, results: int, wanted: bool) -> None:
    """Single figures exceed the highest quiet one by chance; the means of three runs do not, unless they are raised."""
    quiet, loaded = _noisy(slice(3, 6)), _noisy(slice(0, 3), raised, results)
    assert demo_under_load.report({"quiet": quiet, "bursts": loaded}, 0.05, results=9) == wanted


def test_the_mean_effect_of_a_load_has_the_truth_in_its_interval() -> None:
    effect = load_effect.mean_effect(_noisy(slice(0, 3)), _noisy(slice(3, 6), 1.10))
    assert effect is not None
    assert effect.low < 1.10 < effect.high
    assert effect.high / effect.low < 1.30


def test_a_bound_above_the_quiet_figures_is_too_high_however_many_runs_there_are() -> None:
    """The means leave bounds out, since they are below the throughput."""
    loaded = [_run(*[GOOD] * 8, ("LOWER_BOUND", 1.5 * QUIET_FPS)) for _ in range(3)]
    quiet = [_run(*[GOOD] * 9) for _ in range(3)]
    assert not demo_under_load.report({"quiet": quiet, "bursts": loaded}, 0.05, results=9)


def test_two_runs_have_no_mean_effect() -> None:
    assert load_effect.mean_effect(_noisy(slice(0, 2)), _noisy(slice(3, 6))) is None
    assert load_effect.effects(_noisy(slice(0, 3)), _noisy(slice(3, 5))) == {}


def _comparison(
    half: float = 0.02,
    word: str = "alike",
    cpu_word: str = "alike",
    cpu: bool = True,
    seconds: float = 90.0,
    size: int = 512,
) -> ab_comparison.Made:
    """Return a comparison of one point, as the benchmark keeps it."""
    interval = Estimate(1.0, 1 / (1 + half), 1 + half, 12)
    point = ab_comparison.Point(size, interval if cpu else None, cpu_word, interval, word)
    return ab_comparison.Made(1, [point], seconds, void=0.0)


def _with_64(throughput: Estimate | None) -> ab_comparison.Made:
    """Return a comparison of 64, 512 and 1424 B that is narrow, except in its throughput at 64 B."""
    made = [_comparison(size=size).points[0] for size in (64, 512, 1424)]
    return ab_comparison.Made(1, [replace(made[0], throughput=throughput), *made[1:]], 90.0, void=0.0)


WIDE_AT_64 = _with_64(Estimate(1.0, 1 / 1.16, 1.16, 12))
NONE_AT_64 = _with_64(None)
FINDS = _comparison(cpu_word="B costs more")


@pytest.mark.parametrize(
    ("planted", "made", "goal"),
    [
        (False, [_comparison()] * 40, None),
        (False, [_comparison()] * 38 + [FINDS] * 2, None),
        (False, [_comparison()] * 30 + [FINDS] * 10, "10 of 40 comparisons claim"),
        (False, [_comparison()] * 30 + [_comparison(word="A faster")] * 10, "10 of 40 comparisons claim"),
        (False, [_comparison(half=0.035)] * 3, "512 B: the half width of CPU per frame is 3.5%"),
        (False, [_comparison(half=0.12)] * 3, "512 B: the half width of throughput is 12.0%"),
        (False, [WIDE_AT_64], "64 B: the half width of throughput is 16.0%"),
        (False, [WIDE_AT_64] * 5 + [_comparison(size=64)] * 6, None),
        (False, [NONE_AT_64, _comparison()], "64 B: no verdict on throughput"),
        (False, [_comparison(), _comparison(cpu=False)], "1 points have no verdict"),
        (False, [_comparison(seconds=700.0)], "takes 700 s"),
        (False, [], "no comparison"),
        (True, [FINDS] * 19 + [_comparison()], None),
        (True, [FINDS] * 18 + [_comparison()] * 2, "18 of 20 points"),
        (True, [], "no comparison"),
    ],
)
def test_real_comparisons_miss_their_goals(
    planted: bool, made: list[ab_comparison.Made], goal: str | None
) -> None:
    """Two of 40 that claim a difference are chance, ten are not; a narrow size does not make up for a wide one."""
    missed = "; ".join(ab_comparison.missed_goals(made, planted=planted))
    assert missed == "" if goal is None else goal in missed


def test_real_comparisons_are_kept_as_lines(tmp_path: Path) -> None:
    """A comparison without a verdict on CPU is kept, too."""
    made = replace(_comparison(cpu=False), number=7, when="2026-11-25T23:00", rules=60)
    (tmp_path / "kept.jsonl").write_text(json.dumps(asdict(made)) + "\n")
    assert ab_comparison.read_records(tmp_path / "kept.jsonl") == {7: made}
    assert ab_comparison.read_records(tmp_path / "none.jsonl") == {}


@pytest.mark.parametrize(
    ("host", "together", "cost", "claimed", "shown", "half", "is_missed"),
    [
        ("quiet", True, 1.0, 7, 0, 0.005, False),
        ("quiet", True, 1.0, 20, 0, 0.005, True),
        ("busy", False, 1.0, 20, 0, 0.066, True),
        ("busy", False, 1.0, 5, 0, 0.066, False),
        ("shared", True, 1.0, 1, 0, 0.031, True),
        ("shared", True, 1.05, 0, 291, 0.022, False),
        ("shared", True, 1.05, 0, 270, 0.022, True),
        ("shared", False, 1.05, 0, 270, 0.022, False),
        ("busy", True, 1.05, 0, 135, 0.055, False),
    ],
)
def test_simulated_comparisons_miss_their_goals(
    host: str, together: bool, cost: float, claimed: int, shown: int, half: float, is_missed: bool
) -> None:
    """100 comparisons have 300 points; a busy host need find nothing, but may claim nothing false."""
    result = comparison.FixedLoads(host, together, cost, 100, claimed, 300, shown, half)
    assert bool(result.missed(6)) == is_missed


@pytest.mark.parametrize(
    ("right", "lowest", "is_missed"), [(950, 93, False), (900, 85, True), (960, 80, True)]
)
def test_searches_that_claim_too_often_miss_the_goal(right: int, lowest: int, is_missed: bool) -> None:
    """Too few are right in all 1,000 comparisons together, or in the worst of ten cells."""
    assert bool(comparison.missed_by_searches(right, 1_000, lowest, 100)) == is_missed


@pytest.mark.parametrize(
    ("unsent", "paused_s", "fastest", "is_missed"),
    [
        (0, 0.4, 1.1, False),
        (0, 0.4, 1.125, False),
        (0, 0.4, 1.3, True),
        (1, 0.4, 1.1, True),
        (500, 1.6, 1.1, False),
    ],
)
def test_a_disturbed_sender_sends_everything_and_no_bursts(
    unsent: int, paused_s: float, fastest: float, is_missed: bool
) -> None:
    """2 s may take 3.5 s: a sender that pauses longer than these 1.5 s is overloaded."""
    missed = generator.missed_disturbed("xdp", unsent, paused_s, fastest, rate=4_000.0, seconds=2.0)
    assert bool(missed) == is_missed


def test_a_sender_is_disturbed_without_a_leeway_and_with_that_of_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search is that of the demo; what a trial misses is missed by the benchmark."""
    made: list[tuple[str, float]] = []

    def disturbed(
        path: str, rate: float, seconds: float, stall_ms: float, slack_ms: float, leeway: float
    ) -> tuple[str, list[str]]:
        made.append((path, leeway))
        return "a row", ["a goal"] if leeway and path == "xdp" else []

    monkeypatch.setattr(generator, "disturbed", disturbed)
    monkeypatch.setattr(sys, "argv", ["generator.py", "--only-stalls", "--stalls", "5", "--slacks", "0"])
    assert generator.main() == 1
    (test,) = load_plan(ROOT / "plans" / "quick.yaml").plan.tests
    assert test.throughput is not None
    asked = trial.leeway(Request(1000.0, 1.0, "search"), test.throughput.resolution)
    assert made == [(path, leeway) for leeway in (0.0, asked) for path in ("af-packet", "xdp")]
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--leeways", "0"])
    assert generator.main() == 0


@pytest.mark.parametrize(
    ("rate", "unsent", "is_missed"), [(500_000, 0, False), (500_000, 1, True), (1_900_000, 1, False)]
)
def test_a_paced_sender_sends_everything_that_the_way_carries(
    rate: float, unsent: int, is_missed: bool
) -> None:
    """The way floods with 2 million frames/s."""
    assert bool(generator.missed_pacing("xdp", rate, unsent, 2e6)) == is_missed


def test_every_file_of_benchmarks_is_listed_once() -> None:
    """Each stands under the heading of its folder; none stands at the top."""
    files = [path.relative_to(FOLDER) for path in FOLDER.glob("**/*") if path.suffix in (".py", ".frag")]
    files = [path for path in files if path.parts[0] != "campaign"]
    assert ROWS.keys() == {path.as_posix() for path in files}
    assert all(len(path.parts) == 2 for path in files)
    assert max(Counter(path.parent for path in files).values()) <= MOST_FILES
    assert sum(line.startswith("| `") for line in LIST.splitlines()) == len(files)
    assert all(cell for row in ROWS.values() for cell in row)
    assert "`campaign/`" in LIST


def test_what_can_be_run_is_no_part_of_another() -> None:
    """A benchmark has a column for how long it takes."""
    parts = {name for name, row in ROWS.items() if len(row) == 3}
    assert parts == {
        "emulated_duts/host_profile.py", "emulated_duts/powerquicc_calibration.py", "gate/busy.py",
        "gate/kept_folder.py", "gate/planted_daemon.py", "gate/planted_kernel.py", "judgement/shares.py",
        "machines/irq_time.frag", "machines/load_effect.py", "tester/asked_number.py", "tester/dask_workers.py",
    }  # fmt: skip
    for name in parts:
        user = re.match(r"\w+\.py", ROWS[name][2])
        assert user is not None
        file = FOLDER / name
        assert file.name.removesuffix(".py") in file.with_name(user[0]).read_text(encoding="utf-8")


def test_make_bench_runs_those_of_which_the_list_says_so() -> None:
    recipe = re.search(r"^bench:\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    run = set(re.findall(r"benchmarks/(\w+/\w+\.py)", recipe[1]))
    assert {name for name, row in ROWS.items() if row[-1].startswith("make bench")} == run
    assert all(row[3].startswith(("make bench", "by hand")) for row in ROWS.values() if len(row) == 4)


# The functions of parts that make an argparse parser for a benchmark.
PARSERS = {"gate/kept_folder.py": "parser_with_keep", "tester/asked_number.py": "asked_number"}


def _called(tree: ast.AST) -> set[str]:
    """Return the names of the functions and methods that are called."""
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        function.attr if isinstance(function, ast.Attribute) else function.id
        for function in functions
        if isinstance(function, ast.Attribute | ast.Name)
    }


@pytest.mark.parametrize(
    "file",
    [FOLDER / name for name, row in ROWS.items() if len(row) == 4],
    ids=lambda path: path.name,
)
def test_every_benchmark_answers_help(file: Path) -> None:
    """Its words are read by argparse alone. Read from the source: thirty starts of Python would take half a minute."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    called = _called(tree)
    for part, function in PARSERS.items():
        if function in called:
            called |= _called(ast.parse((FOLDER / part).read_text(encoding="utf-8")))
    assert {"ArgumentParser", "parse_args"} <= called
    assert not [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) == "sys.argv"
        and isinstance(node.ctx, ast.Load)
    ]


@pytest.mark.parametrize(
    "document",
    [path for pattern in ("*.md", "Makefile", "docs/**/*.md", "benchmarks/**/*.py") for path in ROOT.glob(pattern)],
    ids=lambda path: str(path.relative_to(ROOT)),
)  # fmt: skip
def test_every_benchmark_that_is_named_is_there(document: Path) -> None:
    """A command names its path from the project's root."""
    named = re.findall(r"(?<![\w/])benchmarks/[\w/]+\.(?:py|frag)\b", document.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []
