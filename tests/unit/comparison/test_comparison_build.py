# SPDX-License-Identifier: Apache-2.0
"""Outcomes become a comparison: arms, panels, baselines, overheads, words, and points without a verdict."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from espbench.comparison import compare, of_run
from espbench.comparison.build import of
from espbench.comparison.sorting.model import Estimate
from espbench.comparison.sorting.samples import Run
from espbench.errors import UsageError
from espbench.reporting.compared.comparison_figures import figures, styles
from espbench.reporting.compared.comparison_wording import rate, repeats_note
from espbench.results import RunDirectory
from espbench.sentences import Code
from espbench.terms import Remark
from support.simulated import comparisons as sim
from support.simulated.comparisons import CAPPED, SPREAD, by_stack, only, repeats
from support.synthetic import run as synthetic_run


def test_a_crossover_is_told_where_the_verdict_turns() -> None:
    sizes = {64: (50e3, 40e3), 256: (40e3, 40e3), 512: (30e3, 40e3), 1424: (20e3, 30e3)}
    arms = [repeats(name, size, both[i]) for size, both in sizes.items() for i, name in enumerate("ab")]
    comparison = by_stack(*arms)
    assert [v.word for v in sim.verdicts_of(comparison)] == [
        "A faster", "no difference shown", "B faster", "B faster",
    ]  # fmt: skip
    words = comparison.panels[0].pairs[0].words
    assert "b passes a from 512 B." in words
    assert "b is faster than a at 512 and 1424 B" in words
    assert "a is faster than b at 64 B" in words
    assert "No difference between b and a is shown at 256 B" in words
    assert words in comparison.words
    ratio = sim.verdicts_of(comparison)[2].ratio
    assert ratio
    assert ratio.low < 4 / 3 < ratio.high


def test_words_never_say_faster_where_no_verdict_does() -> None:
    comparison = by_stack(repeats("a", 64, 40e3), repeats("b", 64, 40.1e3))
    assert only(comparison).word == "no difference shown"
    assert "faster" not in " ".join(comparison.words)


def test_two_repeats_bear_no_verdict_however_far_apart() -> None:
    verdict = only(by_stack(repeats("a", 64, 10e3, n=2), repeats("b", 64, 40e3, n=2)))
    assert verdict.word == "no verdict"
    assert verdict.ratio
    assert (verdict.ratio.low, verdict.ratio.n) == (verdict.ratio.value, 1)
    assert verdict.why == "usable repeats: a 2, b 2; a verdict takes 3"


def test_invalid_repeats_are_left_out_counted_and_said() -> None:
    lost = [sim.made("b", 64, r, None, status="INVALID", upper_fps=None) for r in (4, 5)]
    comparison = by_stack(repeats("a", 64, 30e3), repeats("b", 64, 40e3, n=3) + lost)
    verdict = only(comparison)
    assert verdict.word == "B faster"
    assert "3 pairs" in verdict.why
    assert "2 INVALID of b" in verdict.why
    assert comparison.panels[0].curves["b"][64].statuses == {"OK": 3, "INVALID": 2}


@pytest.mark.parametrize(
    ("a", "b", "capped", "word"),
    [
        (30e3, 40e3, "b", "B faster"),
        (40e3, 30e3, "b", "no difference shown"),
        (30e3, 40e3, "a", "no difference shown"),
        (40e3, 30e3, "a", "A faster"),
        (30e3, 40e3, "ab", "no verdict"),
    ],
)
def test_a_figure_at_the_testers_limit_is_a_lower_bound(a: float, b: float, capped: str, word: str) -> None:
    comparison = by_stack(
        *(repeats(name, 64, fps, **(CAPPED if name in capped else {})) for name, fps in (("a", a), ("b", b)))
    )
    verdict = only(comparison)
    assert verdict.word == word
    assert verdict.ratio is None
    assert (verdict.at_least is not None, verdict.at_most is not None) == (capped == "b", capped == "a")
    assert "limit" in verdict.why
    assert comparison.panels[0].curves["a"][64].at_least == ("a" in capped)


def test_a_figure_that_slow_cpus_lowered_is_a_bound_unless_the_arms_took_turns() -> None:
    """At another time the CPUs of the other arm may have been faster. In turns, both arms have the same CPUs."""
    slow = Remark.of(Code.SLOW_MISS, pct=80.0, fps=31e3)
    arms = repeats("a", 64, 30e3, warnings=[slow]), repeats("b", 64, 40e3)
    assert only(by_stack(*arms)).word == "B faster"
    apart = only(of([sim.run_of([*arms[0], *arms[1]], None)], by="stack", reference="a"))
    assert apart.word == "no verdict"
    assert "slow CPUs may have lowered it" in apart.why


def test_tables_show_as_a_bound_what_the_verdict_takes_as_one() -> None:
    """Between runs made at different times, `≥` stands before the figure, and the cost beside a baseline is a bound."""
    slow = Remark.of(Code.SLOW_MISS, pct=80.0, fps=31e3)
    arms = repeats("a", 64, 30e3, warnings=[slow]), repeats("b", 64, 40e3), repeats("plain", 64, 90e3)
    outcomes = [o for arm in arms for o in arm]
    for is_bound in (False, True):
        run = sim.run_of(outcomes, None if is_bound else {"by": "stack"})
        comparison = of([run], by="stack", reference="a")
        a, b = (comparison.panels[0].curves[name][64] for name in "ab")
        assert (a.at_least, a.slowed, b.at_least) == (is_bound, is_bound, False)
        assert rate(a).startswith("≥") is is_bound
        assert (repeats_note(a) == "slow CPUs may have lowered it") is is_bound
        assert any("slow CPUs may have lowered them" in text for text in comparison.warnings) is is_bound
        cost = next(o for o in comparison.overheads if o.arm == "a")
        assert (cost.slowdown is None, cost.at_most is not None) == (is_bound, is_bound)


def test_a_throughput_with_no_rate_shown_to_miss_is_a_lower_bound_too() -> None:
    assert only(by_stack(repeats("a", 64, 40e3, upper_fps=None), repeats("b", 64, 30e3))).word == "A faster"
    assert only(by_stack(repeats("a", 64, 30e3, upper_fps=None), repeats("b", 64, 40e3))).word != "B faster"


def test_below_the_minimum_throughout_is_slower_than_a_figure() -> None:
    verdict = only(by_stack(repeats("a", 64, None), repeats("b", 64, 30e3)))
    assert (verdict.word, verdict.ratio) == ("B faster", None)
    assert "a missed the goal even at its minimum in all 5 repeats" in verdict.why
    words = by_stack(repeats("a", 64, None), repeats("b", 64, 30e3)).words
    assert words[0].endswith("× as fast at 64 B; a misses the goal even at its minimum at 64 B.")
    assert only(by_stack(repeats("a", 64, None), repeats("b", 64, None))).word == "no verdict"
    assert only(by_stack(repeats("a", 64, None, n=2), repeats("b", 64, 3e4, n=2))).word == "no verdict"


def test_below_the_minimum_is_slower_only_by_what_the_figures_prove() -> None:
    """The truth is below the lowest rate that missed, 1,000 frames/s: what is just above it proves nothing."""
    for n in (3, 5):
        far = only(by_stack(repeats("a", 64, None, n=n), repeats("b", 64, 30e3, n=n)))
        assert far.at_least
        assert 25 < far.at_least < 30
        assert (far.at_most, far.bound_by) == (None, "minimum")
        near = only(by_stack(repeats("a", 64, None, n=n), repeats("b", 64, 1005.0, n=n)))
        assert near.word == "no difference shown"
        assert near.at_least
        assert near.at_least < 1
    mirrored = only(by_stack(repeats("a", 64, 30e3), repeats("b", 64, None)))
    assert mirrored.word == "A faster"
    assert mirrored.at_most
    assert mirrored.at_most < 1 / 25


def test_sometimes_below_the_minimum_is_no_mean() -> None:
    mixed = repeats("a", 64, 30e3, n=2) + [sim.made("a", 64, r, None) for r in (3, 4, 5)]
    verdict = only(by_stack(mixed, repeats("b", 64, 60e3)))
    assert (verdict.word, verdict.ratio) == ("no verdict", None)
    assert "a was below its minimum in 3 of 5 repeats: it has no mean" in verdict.why


def test_an_arm_that_is_sometimes_below_the_minimum_has_no_figure_at_all() -> None:
    """The repeats that have one alone would say too much. Nor has it a CPU cost, or a cost beside a baseline."""
    cpu: dict[str, Any] = {"cpu_home_us_per_frame": 5.0, "cpu_office_us_per_frame": 5.0}
    mixed = [*repeats("a", 64, 30e3, n=4, **cpu), sim.made("a", 64, 5, None, **cpu)]
    comparison = by_stack(mixed, repeats("b", 64, 60e3, **cpu), repeats("plain", 64, 90e3, **cpu))
    panel = comparison.panels[0]
    point = panel.curves["a"][64]
    assert (point.fps, point.mbps, point.cpu_us, point.cpu_home_us, point.at_least) == (None,) * 4 + (False,)
    assert repeats_note(point) == "BELOW_MINIMUM 1× of 5: no mean"
    assert only(comparison).cpu_ratio is None
    assert {o.arm for o in comparison.overheads} == {"b"}
    chart = figures(panel, ["a", "b"], styles(["a", "b"], list(panel.curves)), legend=False)["fps"]
    assert [(r["series"], r["mark"]) for r in chart["datasets"]["marks"]] == [("a", "↓")]


def test_plain_and_null_are_drawn_beside_two_stacks_and_are_arms_beside_one() -> None:
    plain, null = repeats("plain", 64, 90e3), repeats("null", 64, 80e3, suite="null-null")
    two = by_stack(plain, null, repeats("a", 64, 30e3), repeats("b", 64, 40e3))
    assert [arm.name for arm in two.arms] == ["a", "b"]
    assert two.panels[0].baselines == ["plain", "null"]
    assert set(two.panels[0].curves) == {"a", "b", "plain", "null"}
    one = by_stack(plain, null, repeats("a", 64, 30e3))
    assert [arm.name for arm in one.arms] == ["a", "plain", "null"]
    assert [pair.b for pair in one.panels[0].pairs] == ["plain", "null"]
    none = by_stack(plain, null, reference="plain")
    assert [arm.name for arm in none.arms] == ["plain", "null"]


def test_overheads_are_ratios_to_the_baseline_and_micros_above_it() -> None:
    cost = {"plain": 5.0, "a": 16.0, "b": 10.0}
    arms = [
        repeats(stack, 64, fps, cpu_home_us_per_frame=cost[stack], cpu_office_us_per_frame=cost[stack])
        for stack, fps in (("plain", 96e3), ("a", 30e3), ("b", 48e3))
    ]
    run = sim.run_of([o for arm in arms for o in arm], {"by": "stack"})
    run = Run(run.name, run.manifest.model_copy(update={"host": {"cpu_mhz": 2000}}), run.outcomes)
    comparison = of([run])
    a, b = comparison.overheads
    assert (a.arm, a.baseline, a.x, a.extra_cycles) == ("a", "plain", 64, 44e3)
    assert a.extra_us == Estimate(22.0, 22.0, 22.0, 5)
    assert a.slowdown
    assert b.slowdown
    assert a.slowdown.value == pytest.approx(3.2)
    assert b.slowdown.value == pytest.approx(2.0)
    assert a.slowdown.low < 3.2 / 1.01 < 3.2 * 1.01 < a.slowdown.high, "the resolution is in it"
    words = " ".join(comparison.words)
    assert re.search(r"plain is 3.20× \[3.1\d, 3.2\d\] as fast as a at 64 B; a takes 22 µs", words)
    assert "µs [22, 22] more CPU per frame than plain at 64 B." in words
    assert "CPU per frame of b: 0.62× [0.62, 0.62] at 64 B that of a." in words
    cpu = only(comparison).cpu_ratio
    assert cpu
    assert cpu.value == pytest.approx(10 / 16)


def test_a_baseline_at_the_testers_limit_makes_the_slowdown_a_bound() -> None:
    comparison = by_stack(
        repeats("plain", 64, 96e3, **CAPPED), repeats("a", 64, 30e3), repeats("b", 64, 30e3)
    )
    assert {(o.slowdown, o.at_most) for o in comparison.overheads} == {(None, None)}
    assert all(o.at_least and 3.0 < o.at_least < 3.2 for o in comparison.overheads)
    assert re.search(r"plain is at least 3\.1\d× as fast as a", " ".join(comparison.words))


def test_goals_that_agree_are_told_once() -> None:
    arms = [
        repeats(stack, size, fps, loss_goal=goal)
        for goal in (0.0, 1e-5)
        for stack, fps in (("a", 30e3), ("b", 40e3))
        for size in (64, 512)
    ]
    comparison = by_stack(*arms)
    assert comparison.family == 4
    assert comparison.words[0].startswith("At a loss goal of 0 %: b is faster than a at every size")
    assert comparison.words[1] == "At a loss goal of 0.001 % every verdict is the same."


def test_repeats_pair_within_an_interleaved_run_and_not_without() -> None:
    # A drift common to both arms: in pairs it cancels.
    drift = [1.0, 0.95, 0.9, 0.85, 0.8]
    outcomes = [
        sim.made(stack, 64, r + 1, fps * d)
        for r, d in enumerate(drift)
        for stack, fps in (("a", 30e3), ("b", 33e3))
    ]
    paired = of([sim.run_of(outcomes, {"by": "stack"})])
    apart = of([sim.run_of(outcomes, None)], by="stack")
    assert only(paired).word == "B faster"
    assert only(apart).word == "no difference shown"
    assert any("Not interleaved" in text for text in apart.warnings)
    assert not any("nterleaved" in text for text in paired.warnings)


def test_the_plans_reference_and_seed_are_the_default() -> None:
    outcomes = repeats("a", 64, 30e3) + repeats("b", 64, 40e3)
    run = sim.run_of(outcomes, {"by": "stack", "reference": "b", "seed": 7})
    comparison = of([run])
    assert (comparison.arms[0].name, comparison.seed, only(comparison).word) == ("b", 7, "A faster")
    assert of([run], reference="a").arms[0].name == "a"
    with pytest.raises(UsageError, match="expected: one of a, b"):
        of([run], reference="c")


def read_back(run: Run, stacks: dict[str, tuple[str, str, str]]) -> Run:
    """The run with what its gateways said: stack → (kind, version, kernel)."""
    contexts = {
        label: {"stack_version": {"home": v, "office": v}, "kernel": {"home": k, "office": k}}
        for label, (_, v, k) in stacks.items()
    }
    cases = [e.model_copy(update={"stack_kind": stacks[e.stack][0]}) for e in run.manifest.cases]
    manifest = run.manifest.model_copy(
        update={"contexts": contexts, "cases": cases, "context_of_case": {e.case: e.stack for e in cases}}
    )
    return Run(run.name, manifest, run.outcomes)


def test_versions_of_one_stack_are_arms_by_label() -> None:
    outcomes = [*repeats("old", 64, 3e4), *repeats("new", 64, 4e4), *repeats("libreswan", 64, 2e4)]
    run = read_back(
        sim.run_of([*outcomes, *repeats("plain", 64, 9e4)], {"by": "version"}),
        {
            "old": ("strongswan", "strongSwan 5.9.8", "6.1"),
            "new": ("strongswan", "strongSwan 6.0.1", "6.1"),
            "libreswan": ("libreswan", "Libreswan 4.10", "6.1"),
            "plain": ("plain", "kernel", "6.1"),
        },
    )
    comparison = of([run])
    assert [(arm.name, arm.detail) for arm in comparison.arms] == [
        ("old", "strongSwan 5.9.8, Linux 6.1"),
        ("new", "strongSwan 6.0.1, Linux 6.1"),
    ]
    assert comparison.panels[0].baselines == ["plain"]
    assert comparison.common["stack"] == "strongswan"


def test_kernels_are_read_back_and_duts_ignored() -> None:
    runs = [
        read_back(
            sim.run_of(repeats("a", 64, fps, dut=dut), None, name=dut), {"a": ("xfrm", "kernel", kernel)}
        )
        for dut, kernel, fps in (("uml-61", "6.1.176", 3e4), ("uml-66", "6.6.2", 4e4))
    ]
    comparison = of(runs, by="kernel", reference="uml-66")
    assert [arm.name for arm in comparison.arms] == ["6.6.2", "6.1.176"]
    assert only(comparison).word == "A faster"


def test_by_frame_size_the_suites_are_the_points() -> None:
    outcomes = [
        sim.made("a", size, r + 1, fps * SPREAD[r] * 64 / size, suite=suite)
        for suite, fps in (("aes128gcm16", 3e4), ("3des-sha1", 1e4))
        for size in (64, 128)
        for r in range(5)
    ]
    comparison = of([sim.run_of(outcomes, {"by": "frame_size", "reference": "128"})])
    assert [arm.name for arm in comparison.arms] == ["128 B", "64 B"]
    assert (comparison.panels[0].x_name, comparison.panels[0].x) == ("suite", ["aes128gcm16", "3des-sha1"])
    assert "passes" not in " ".join(comparison.words)


def test_unproven_encryption_is_carried() -> None:
    comparison = by_stack(repeats("a", 64, 3e4, encryption="not proven"), repeats("b", 64, 4e4))
    assert not comparison.panels[0].curves["a"][64].proven
    assert comparison.panels[0].curves["b"][64].proven
    assert any("Encryption not proven" in text for text in comparison.warnings)


def test_short_final_trials_are_said() -> None:
    comparison = by_stack(
        repeats("a", 64, 3e4, final_trial_s=9.99999), repeats("b", 64, 4e4, final_trial_s=59.999999)
    )
    assert comparison.is_short
    assert "Some final trials (10 s) are shorter than the 60 s of RFC 2544." in comparison.words


def change(**update: Any) -> Callable[[Run], Run]:
    return lambda run: Run(run.name, run.manifest.model_copy(update=update), run.outcomes)


def conditions(networks: int = 1, **settings: Any) -> dict[str, Any]:
    """Return conditions as a run of a plan records them."""
    throughput = {"trial": "2", "loss_goals": ["0", "0.001%"], **settings}
    return {"flows": {"networks": networks}, "tests": [{"throughput": throughput}]}


@pytest.mark.parametrize(
    ("altered", "difference"),
    [
        (change(line_rate_bps=1e10), "line rate: first: 1e+09 bit/s; second: 1e+10 bit/s"),
        (change(host={"cpu": "another"}), "host: cpu: first: a CPU; second: another"),
        (change(conditions=conditions(networks=256)), "flows.networks: first: 1; second: 256"),
        (change(espbench="9"), "espbench: first: 0; second: 9"),
        (change(host={"cpu": "a CPU", "load average at start": "9.0"}), ""),
        (change(conditions={}), ""),
        (change(conditions=conditions(trial="5")), "tests.throughput.trial: first: 2; second: 5"),
        (change(conditions=conditions(loss_goals=["0"])), ""),
    ],
)
def test_runs_that_differ_otherwise_are_refused_by_name_unless_allowed(
    altered: Callable[[Run], Run], difference: str
) -> None:
    same = change(host={"cpu": "a CPU", "load average at start": "0.1"}, conditions=conditions())
    runs = [
        same(sim.run_of(repeats("a", 64, fps), None, name=name))
        for name, fps in (("first", 3e4), ("second", 4e4))
    ]
    runs[1] = altered(runs[1])
    if not difference:
        assert only(of(runs)).word == "B faster"
        return
    with pytest.raises(UsageError) as refused:
        of(runs)
    assert difference in str(refused.value)
    assert "--allow-different" in str(refused.value)
    comparison = of(runs, allow_different=True)
    assert [d.what for d in comparison.differences] == [difference.split(": first", maxsplit=1)[0]]


def test_profiles_of_two_kernels_may_differ_in_the_kernel_alone() -> None:
    def run(name: str, kernel: str, memory: str) -> Run:
        made = read_back(
            sim.run_of(repeats("a", 64, 3e4, dut=name), None, name=name), {"a": ("xfrm", "kernel", kernel)}
        )
        return change(conditions={"profiles": {name: {"kernel": kernel, "memory": memory}}})(made)

    assert of([run("first", "6.1", "256M"), run("second", "6.6", "256M")], by="kernel").differences == []
    with pytest.raises(UsageError, match="profile: memory: first: 256M; second: 512M"):
        of([run("first", "6.1", "256M"), run("second", "6.6", "512M")], by="kernel")


def test_options_of_a_label_and_versions_read_back_are_conditions_of_a_run() -> None:
    runs = []
    for name, window, version in (("first", 0, "5.9.8"), ("second", 64, "6.0.1")):
        run = read_back(
            sim.run_of(repeats("a", 64, 3e4), None, name=name), {"a": ("strongswan", version, "6.1")}
        )
        cases = [
            e.model_copy(update={"options": {"replay_window": window} if window else {}})
            for e in run.manifest.cases
        ]
        runs.append(Run(name, run.manifest.model_copy(update={"cases": cases}), run.outcomes))
    with pytest.raises(UsageError) as refused:
        of(runs)
    assert "options of a: first: defaults; second: replay_window=64" in str(refused.value)
    assert "version of a: first: 5.9.8; second: 6.0.1" in str(refused.value)
    assert "--by version" in str(refused.value)
    with pytest.raises(UsageError) as refused:
        of(runs, by="version")
    assert "version of a" not in str(refused.value)


def test_nothing_in_common_and_one_arm_are_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="no point in common"):
        by_stack(repeats("a", 64, 3e4), repeats("b", 128, 3e4))
    run = sim.run_of(repeats("a", 64, 3e4) + repeats("a", 128, 3e4), None)
    with pytest.raises(UsageError, match=r"only a\n.*--by frame_size"):
        of([run], by="stack")
    with pytest.raises(UsageError, match="not an axis"):
        of([run], by="colour")
    with pytest.raises(UsageError, match="does not say what to compare"):
        of([run])


def test_run_directories_are_read_and_one_without_outcomes_is_refused(tmp_path: Path) -> None:
    shape = synthetic_run.Shape(sizes=(64, 512), suites=("aes128-sha1", "3des-sha1"), repeats=3)
    first, second = (synthetic_run.build(tmp_path, shape, name="same name") for _ in range(2))
    comparison = compare([first, second])
    assert comparison.axis == "run"
    assert [arm.name for arm in comparison.arms] == [first.path.name, second.path.name]
    assert {v.word for v in sim.verdicts_of(comparison)} == {"no difference shown"}
    assert {o.baseline for o in comparison.overheads} == {"plain"}
    assert of_run(first) is None, "its plan compares nothing"
    with pytest.raises(UsageError, match="named twice"):
        compare([first, first])
    (first.path / "results.json").unlink()
    with pytest.raises(UsageError, match="no outcome yet"):
        compare([RunDirectory.open(first.path), second])


def test_a_run_whose_plan_compares_carries_its_comparison(tmp_path: Path) -> None:
    shape = synthetic_run.Shape(sizes=(64, 512), suites=("aes128-sha1", "3des-sha1"), repeats=3)
    run = synthetic_run.build(tmp_path, shape)
    with run:
        run.save_manifest(run.manifest.model_copy(update={"compare": {"by": "suite", "seed": 3}}))
    comparison = of_run(RunDirectory.open(run.path))
    assert comparison
    assert (comparison.axis, comparison.seed, [arm.name for arm in comparison.arms]) == (
        "suite",
        3,
        ["aes128-sha1", "3des-sha1"],
    )
    assert comparison.panels[0].baselines == ["plain"]
