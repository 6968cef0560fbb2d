# SPDX-License-Identifier: Apache-2.0
"""Every number of a plan, a profile, a topology or a traffic profile has a largest value; more is a user's mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from espbench.errors import UsageError
from espbench.paths import data_dir
from espbench.plan import load_profile, resolve
from espbench.plan.duts.profiles import Profile
from espbench.plan.duts.topology import Topology
from espbench.plan.keys.generator_choice import FASTEST_FPS
from espbench.plan.keys.model import Plan
from espbench.plan.reading.reader import Strict, read_text
from espbench.plan.reading.units import LONGEST_S, LONGEST_WAIT_S, SHORTEST_S
from espbench.plan.traffic import traffic_profiles
from support.plans import kernels_text, plan_text

BOUNDS = {"maximum", "exclusiveMaximum", "const", "enum"}
HUGE = "0x" + 5000 * "f"


def unbounded(schema: Any, where: str = "") -> Iterator[str]:
    """List the places of numbers without an upper limit."""
    if isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from unbounded(part, f"{where}/{index}")
    elif isinstance(schema, dict):
        if schema.get("type") in ("integer", "number") and not BOUNDS & schema.keys():
            yield where
        for key, part in schema.items():
            yield from unbounded(part, f"{where}/{key}")


@pytest.mark.parametrize("model", [Plan, Profile, Topology, traffic_profiles.Profile])
def test_every_number_has_an_upper_limit(model: type[Strict]) -> None:
    assert [*unbounded(model.model_json_schema())] == []


@pytest.mark.parametrize(
    "more",
    [
        f"generator: {{native: {{senders: {HUGE}}}}}",
        f"generator: {{native: {{esp_memory_mib: {HUGE}}}}}",
        f"compare: {{by: stack, reference: {HUGE}}}",
    ],
)
def test_a_huge_number_in_a_plan_is_told(more: str) -> None:
    """It must not come to the program that takes it: Python does not write such numbers."""
    with pytest.raises(UsageError, match=r"expected .*, got a number of more than 60 digits"):
        resolve(read_text(f"{plan_text()}{more}\n", "plan.yaml", "plan"))


def numbers(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """List the places of whole numbers."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from numbers(value, (*path, key))
    elif isinstance(data, int) and not isinstance(data, bool):
        yield path


@pytest.mark.parametrize("name", ["mpc8548e-coalesced", "virt-x86", "ixp2800", "netns"])
def test_a_huge_number_in_a_profile_is_told(tmp_path: Path, name: str) -> None:
    """Fields that check themselves have no limit in their schema: each number of a profile is replaced."""
    text = (data_dir("dut-profiles") / f"{name}.yaml").read_text()
    for path in numbers(yaml.safe_load(text)):
        changed = place = yaml.safe_load(text)
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = "HUGE"
        file = tmp_path / "mine.yaml"
        file.write_text(yaml.safe_dump(changed).replace("HUGE", HUGE))
        with pytest.raises(UsageError, match="expected"):
            load_profile(str(file))


KERNELS = kernels_text(tests="\n  - cipher_kernels: {settings}")
BOARD = plan_text(dut="mpc8548e", suites=None, stacks="[plain]", tests="\n  - accelerator: {settings}")


@pytest.mark.parametrize(
    ("plan", "settings", "where"),
    [
        (KERNELS, {"engines": [1] * 900, "threads": [1] * 900}, "cipher_kernels.engines: "),
        (BOARD, {"sizes": [64] * 900, "suites": ["3des-md5"] * 800, "crypto": ["async"] * 900}, "sizes: "),
    ],
)
def test_points_of_one_test_are_counted_like_cases(plan: str, settings: dict[str, Any], where: str) -> None:
    """Each combination of its lists is a point; a list of them all must fit into memory."""
    with pytest.raises(UsageError) as error:
        resolve(read_text(plan.replace("{settings}", str(settings)), "plan.yaml", "plan"))
    assert f"{where}expected at most 20,000 combinations of " in str(error.value)


def test_points_of_all_tests_are_counted_together() -> None:
    one = f"  - cipher_kernels: {{engines: {300 * [1]}, threads: {8 * [1]}}}\n"
    text = KERNELS.replace("  - cipher_kernels: {settings}\n", one)
    with pytest.raises(UsageError, match=r"tests\[0\].*expected at most 20,000 .*, got 96,000"):
        resolve(read_text(text, "plan.yaml", "plan"))
    short = "  - cipher_kernels: {kernels: [aes], engines: [1, 2, 3, 4, 5, 6, 7, 8], threads: [1, 2, 4, 8]}\n"
    with pytest.raises(UsageError, match=r"tests\[156\].*expected at most 20,000 .*, got 20,096"):
        resolve(read_text(KERNELS.replace("  - cipher_kernels: {settings}\n", 160 * short), "p", "plan"))


@pytest.mark.parametrize(
    ("plan", "settings", "where"),
    [
        (KERNELS, "{threads: [1, 2, 1]}", "cipher_kernels.threads[2]"),
        (BOARD, "{sizes: [64, 64]}", "sizes[1]"),
    ],
)
def test_an_entry_of_a_tests_list_stands_there_once(plan: str, settings: str, where: str) -> None:
    with pytest.raises(UsageError) as error:
        resolve(read_text(plan.replace("{settings}", settings), "plan.yaml", "plan"))
    assert f"{where}: expected each entry once, got " in str(error.value)


LIMITS = (data_dir("traffic").parent / "src" / "trial" / "check_request.rs").read_text()


def test_the_generators_own_limits_are_those_of_a_plan() -> None:
    """No generator may refuse in mid-run what `validate` accepts."""
    assert float(re.search(r"FASTEST_FPS: f64 = (\w+);", LIMITS)[1]) == FASTEST_FPS  # type: ignore[index]
    assert f'"duration_s", trial.duration_s, {SHORTEST_S}, {float(LONGEST_S):_})' in LIMITS
    assert f'"residue_s", trial.residue_s, 0.0, {float(LONGEST_WAIT_S):_})' in LIMITS


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("{throughput: {trial: 0.5ms}}", "throughput.trial: expected a duration of at least 1ms, or 0"),
        ("{throughput: {residue: 90m}}", "throughput.residue: expected a wait of at most an hour"),
        (
            "{throughput: {maximum: 60000000fps}}",
            "maximum: expected at most 50000000fps with generator: native",
        ),
        ("{attack: {rates: [1fps, 0.06Gfps]}}", "attack.rates: expected at most 50000000fps with generator"),
    ],
)
def test_what_the_generator_refuses_is_refused_in_the_plan(settings: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        resolve(read_text(plan_text(tests=f"[{settings}]"), "plan.yaml", "plan"))
    assert words in str(error.value)
