# SPDX-License-Identifier: Apache-2.0
"""A plan is resolved once: everything it names is read once, and what was read does not change."""

from __future__ import annotations

from collections import Counter
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from pydantic import ValidationError

from espbench.errors import UsageError
from espbench.plan import ResolvedPlan, resolve
from espbench.plan.duts import profiles
from espbench.plan.reading.reader import Document, read, read_text
from support.plans import plan_text

PLAN = plan_text(
    dut=None,
    stacks="[plain, strongswan]",
    frame_sizes=None,
    tests="\n  - reset: {what: power, load: 1000fps}",
)


def resolved(text: str, folder: Path) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"), folder / "plan.yaml")


@pytest.mark.parametrize("more", ["", "capture: true\n", "repeat: 0\n"])
def test_each_profile_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    """Checks of the MTU, of power, of captures and of boards all want the profile; so they do with a mistake."""
    seen: Counter[str] = Counter()

    def counted(path: Path, what: str) -> Document:
        seen[path.name] += 1
        return read(path, what)

    monkeypatch.setattr(profiles, "read", counted)
    (tmp_path / "mine.yaml").write_text("{name: mine, description: d, platform: uml, line_rate: 1Gbps}")
    try:
        resolved(PLAN + "dut: [uml, ./mine.yaml]\n" + more, tmp_path)
    except UsageError as error:
        assert "repeat" in str(error)  # noqa: PT017  (whether there is one depends on the mistake)
    assert seen == {"uml.yaml": 1, "mine.yaml": 1}


def test_a_profile_that_cannot_be_read_is_one_mistake(tmp_path: Path) -> None:
    """Power and captures depend on its platform, and say nothing of one that nobody knows."""
    with pytest.raises(UsageError) as error:
        resolved(PLAN + "dut: ./none.yaml\ncapture: true\n", tmp_path)
    (line,) = str(error.value).splitlines()
    assert line.startswith("plan.yaml:7:6: dut: expected a DUT profile that can be read")


def test_what_was_read_stays_as_it_was(tmp_path: Path) -> None:
    """Neither the plan nor what it was resolved to can be changed from outside."""
    plan = resolved(PLAN + "dut: uml\n", tmp_path)
    with pytest.raises(ValidationError, match="frozen"):
        plan.plan.name = "other"
    with pytest.raises(FrozenInstanceError):
        plan.text = ""  # type: ignore[misc]
    (profile,) = plan.known_profiles or []
    with pytest.raises(ValidationError, match="frozen"):
        profile.mtu = 9000


def test_keys_of_the_traffic_profile_are_not_the_users(tmp_path: Path) -> None:
    """They fill the plan, and a message about them still points to `traffic`."""
    plan = resolved(PLAN + "traffic: networks-256\n", tmp_path)
    assert plan.plan.flows.networks == 256
    assert plan.plan.model_fields_set == {"name", "topology", "stacks", "suites", "tests", "traffic"}


def test_the_least_mtu_of_all_devices_counts(tmp_path: Path) -> None:
    """1500 where the machine chooses the device."""
    for name, mtu in (("a", 9000), ("b", 4000)):
        text = f"{{name: {name}, description: d, platform: netns, mtu: {mtu}}}"
        (tmp_path / f"{name}.yaml").write_text(text)
    text = PLAN.replace("reset: {what: power, load: 1000fps}", "frame_loss: {}")
    assert resolved(text, tmp_path).mtu == 1500
    assert resolved(text + "dut: ./a.yaml\n", tmp_path).mtu == 9000
    with pytest.raises(UsageError, match=r"at most 4018 B \(the MTU is 4000\)"):
        resolved(text + "dut: [./a.yaml, ./b.yaml]\nframe_sizes: [8000]\n", tmp_path)
