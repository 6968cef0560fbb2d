# SPDX-License-Identifier: Apache-2.0
"""Tests of the estimate of a run's duration."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.cli.expected import expected as in_words
from espbench.cli.progress import rough
from espbench.plan import cases, load_plan
from espbench.runs.beds import choose
from espbench.runs.expected_time import expected_cpu_s, expected_s
from support.plans import plan_text


def expected(folder: Path, tests: str) -> float:
    file = folder / "plan.yaml"
    file.write_text(plan_text(stacks="[plain]", suites=None, frame_sizes="[512]", tests=tests))
    plan = load_plan(file)
    return expected_s(plan.plan, cases(plan), 1e9)


def test_the_standards_latency_takes_most_of_an_hour(tmp_path: Path) -> None:
    """20 trials of 120 s with waits of 9 s, although their load is not known yet."""
    throughput = expected(tmp_path, "[{throughput: {}}]")
    both = expected(tmp_path, "[{throughput: {}}, {latency: {}}]")
    assert 60 < throughput < 600
    assert both - throughput == pytest.approx(20 * 129, rel=0.05)


def test_every_plan_that_comes_with_espbench_has_an_estimate() -> None:
    for file in sorted((Path(__file__).parents[3] / "plans").glob("*.yaml")):
        plan = load_plan(file)
        assert (expected_s(plan.plan, cases(plan), 1e9) > 0) == bool(cases(plan)), file.name


def in_virtual_time(folder: Path, tests: str, at_once: int = 2) -> list[str]:
    file = folder / "plan.yaml"
    file.write_text(
        plan_text(
            dut="virt-x86", stacks="[strongswan]", suites="[aes128gcm16]", frame_sizes="[512]", tests=tests
        )
    )
    plan = load_plan(file)
    return in_words(plan, choose(plan), at_once)


def test_in_virtual_time_a_busy_gateway_executes_all_that_its_clock_allows(tmp_path: Path) -> None:
    """Two gateways, 10 s of 1,000 million instructions a second, at 250 million a second and CPU, and set-up."""
    file = tmp_path / "plan.yaml"
    tests = "[{throughput: {}}, {latency: {trial: 10s}}]"
    file.write_text(plan_text(stacks="[plain]", suites=None, frame_sizes="[512]", tests=tests))
    plan = load_plan(file)
    latency = [case for case in cases(plan) if case.test == "latency"]
    assert expected_cpu_s(plan.plan, latency, 1e9, 1e9) == pytest.approx(2 * 10 * 4 + 4)


def test_in_virtual_time_cases_are_measured_side_by_side(tmp_path: Path) -> None:
    [one] = in_virtual_time(tmp_path, "[{throughput: {}}]", 1)
    [two] = in_virtual_time(tmp_path, "[{throughput: {}}]", 2)
    assert ", one case after the other; " in one
    assert ", with 2 cases at the same time; " in two
    assert one != two


def test_in_virtual_time_the_ipsec_tests_have_no_estimate(tmp_path: Path) -> None:
    [only] = in_virtual_time(tmp_path, "[{set_up_rate: {tunnels: 3}}]")
    assert only == "how long IPsec tests take in virtual time is not known"
    [both] = in_virtual_time(tmp_path, "[{throughput: {}}, {set_up_rate: {tunnels: 3}}]")
    assert both.endswith("; boots and the IPsec tests come on top")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (91, "2 min"), (5390, "1 h 30 min"), (24300, "6 h 45 min")],
)
def test_a_time_in_words(seconds: float, words: str) -> None:
    assert rough(seconds) == words
