# SPDX-License-Identifier: Apache-2.0
"""Every number of a plan, a profile, a topology or a traffic profile has a largest value; more is a user's mistake."""

from __future__ import annotations

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
from espbench.plan.keys.model import Plan
from espbench.plan.reading.reader import Strict, read_text
from espbench.plan.traffic import traffic_profiles
from support.plans import plan_text

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
