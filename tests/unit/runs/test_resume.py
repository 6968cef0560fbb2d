# SPDX-License-Identifier: Apache-2.0
"""A resumed run must have in common with its beginning every key of the plan, and what the plan names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from espbench.cli import run as command
from espbench.errors import UsageError
from espbench.measure import machine
from espbench.plan import load_plan
from espbench.results import FORMAT, RunDirectory
from espbench.runs.beds import choose
from espbench.runs.platform_kinds.namespaces import Namespaces
from espbench.terms import Manifest
from support.plans import pair_plan

PLAN = pair_plan(
    "./mine.yaml", name="edited", stacks=["plain", "xfrm"], suites=["aes128gcm16"], frame_sizes=[64, 512],
    tests=[{"throughput": {"final_trial": "2s", "trial": "1s"}}, {"latency": {"repeats": 3}}],
)  # fmt: skip
PROFILE = {"name": "mine", "description": "namespaces", "platform": "netns", "mtu": 1500}
HOST = {"cpu": "a CPU", "kernel": "Linux 6.1", "cpus usable": [0, 1]}


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """A run directory as an interrupted run leaves it."""
    monkeypatch.setattr(machine, "describe", lambda: dict(HOST))
    monkeypatch.setattr(machine, "tools", dict)
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(PROFILE))
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(PLAN))
    plan = load_plan(path)
    with RunDirectory.create(tmp_path, "edited", command._manifest(plan, choose(plan)), plan.text) as created:
        return created


def resumed(begun: RunDirectory, text: str | None = None) -> None:
    """Do what `run --resume` does before it measures anything; text: the edited plan.yaml."""
    if text is not None:
        (begun.path / "plan.yaml").write_text(text)
    directory = RunDirectory.open(begun.path)
    plan = load_plan(begun.path / "plan.yaml", beside=Path(directory.manifest.plan_path))
    command._same_run(directory, plan, choose(plan))


def refusal(begun: RunDirectory, text: str | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        resumed(begun, text)
    return str(caught.value)


def edited(*path: str | int, value: Any) -> str:
    """The plan's text with another value at one place."""
    plan = yaml.safe_load(yaml.safe_dump(PLAN))
    place = plan
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return str(yaml.safe_dump(plan))


@pytest.mark.parametrize(
    ("path", "value", "key", "was", "now"),
    [
        (["tests", 0, "throughput", "final_trial"], "60s", "tests[0].throughput.final_trial", '"2s"', '"60s"'),
        (["tests", 0, "throughput", "settle"], "1s", "tests[0].throughput.settle", '"5s"', '"1s"'),
        (["tests", 0, "throughput", "resolution"], "2%", "tests[0].throughput.resolution", '"1%"', '"2%"'),
        (["tests", 0, "throughput", "maximum"], "9kfps", "tests[0].throughput.maximum", "nothing", '"9000fps"'),
        (["tests", 0, "throughput", "warm_start"], False, "tests[0].throughput.warm_start", "true", "false"),
        (["tests", 1, "latency", "repeats"], 20, "tests[1].latency.repeats", "3", "20"),
        (["stacks", 1], {"stack": "xfrm", "replay_window": 64}, "stacks[1].replay_window", "32", "64"),
        (["stacks", 1], {"stack": "xfrm", "label": "mine"}, "stacks[1].label", "nothing", '"mine"'),
        (["frame_sizes"], [64], "frame_sizes", "[64, 512]", "[64]"),
        (["repeat"], 2, "repeat", "1", "2"),
        (["name"], "other", "name", '"edited"', '"other"'),
        (["flows"], {"ports": 9}, "flows.ports", "1", "9"),
        (["generator"], {"native": {"tx": "xdp"}}, "generator.native.tx", '"auto"', '"xdp"'),
        (["dont_fragment"], True, "dont_fragment", "false", "true"),
        (["capture"], True, "capture", "false", "true"),
        (["topology"], "single-gateway", "topology", '"gateway-to-gateway"', '"single-gateway"'),
        (["dut"], "netns", "dut", '"./mine.yaml"', '"netns"'),
    ],
)  # fmt: skip
def test_an_edited_plan_is_refused_by_the_key_with_both_values(
    begun: RunDirectory, path: list[str | int], value: Any, key: str, was: str, now: str
) -> None:
    """A 2 s figure must not come to claim the conformance of 60 s, and so with every other key."""
    expected, got = refusal(begun, edited(*path, value=value)).splitlines()[1:3]
    assert f"{key}: {was}" in expected
    assert f"{key}: {now}" in got


def test_the_refusal_says_where_and_what_to_do(begun: RunDirectory) -> None:
    """One message of four lines."""
    assert refusal(begun, edited("repeat", value=3)) == (
        f"{begun.path}: this run cannot go on here\n"
        "  expected: what it was begun with, repeat: 1\n"
        "  got: repeat: 3\n"
        "  what to do: undo the change, or start a new run, which measures every case anew"
    )


def test_comments_format_and_another_way_to_write_a_value_are_no_change(begun: RunDirectory) -> None:
    """The meaning of the plan alone counts."""
    text = edited("tests", 0, "throughput", "final_trial", value="2000ms").replace(
        "name:", "# mine\nname:   "
    )
    resumed(begun, text)
    resumed(begun, edited("repeat", value=1))


def test_a_profile_that_changed_is_refused(begun: RunDirectory) -> None:
    """It stands beside the plan, not in the run directory."""
    assert begun.path.parent == Path(begun.manifest.plan_path).parent
    (begun.path.parent / "mine.yaml").write_text(yaml.safe_dump(PROFILE | {"mtu": 1400}))
    said = refusal(begun)
    assert "profiles: mine.mtu: 1500" in said
    assert "profiles: mine.mtu: 1400" in said


@pytest.mark.parametrize(
    ("key", "value"), [("kernel", "Linux 6.12"), ("cpu", "another"), ("cpus usable", [0])]
)
def test_another_machine_is_refused(
    begun: RunDirectory, monkeypatch: pytest.MonkeyPatch, key: str, value: object
) -> None:
    """The generator's ceiling was measured on the one the run was begun on."""
    monkeypatch.setattr(machine, "describe", lambda: HOST | {key: value})
    assert f"this machine's {key}: {value}" in refusal(begun)


def test_a_run_in_virtual_time_goes_on_on_any_machine(
    begun: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The platform says whether its time is virtual; no list of names can forget a new one."""
    monkeypatch.setattr(machine, "describe", lambda: HOST | {"cpu": "another CPU"})
    monkeypatch.setattr(Namespaces, "virtual_time", True)
    resumed(begun)


def test_another_espbench_is_refused(begun: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its trials may be made and judged in another way."""
    begun.save_manifest(begun.manifest.model_copy(update={"espbench": "0.0.1"}))
    assert "espbench's version: 0.0.1" in refusal(begun)


def test_a_run_of_an_older_format_is_refused_once_and_says_what_to_do(begun: RunDirectory) -> None:
    """Its records have sentences without codes; two kinds of lines in one file would help nobody."""
    begun.save_manifest(begun.manifest.model_copy(update={"format": FORMAT - 1}))
    message = refusal(begun)
    assert f"expected: a run of format {FORMAT}" in message
    assert f"got: format {FORMAT - 1}, begun by espbench {begun.manifest.espbench}" in message
    assert "start a new run" in message


def test_a_run_of_before_every_key_was_kept_is_held_against_its_conditions(begun: RunDirectory) -> None:
    """Older manifests record the tests' settings, among others."""
    older = begun.manifest.model_dump(mode="json")
    older.pop("asked")
    begun.save_manifest(Manifest.model_validate(older))
    resumed(begun)
    path = ("tests", 0, "throughput", "final_trial")
    assert 'tests[0].throughput.final_trial: "60s"' in refusal(begun, edited(*path, value="60s"))
