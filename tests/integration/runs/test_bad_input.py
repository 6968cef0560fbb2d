# SPDX-License-Identifier: Apache-2.0
"""A user's mistake, or a lack of the machine, gets one message and the right exit code; nothing is made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.command_line import in_process
from support.gateways.boxes import RouterBox, leftovers
from support.plans import pair_plan, plan_text, quick, write_plan
from support.runs import ESPBENCH, espbench

NOBODY = (
    "setpriv",
    "--reuid",
    "65534",
    "--regid",
    "65534",
    "--clear-groups",
    "env",
    "-u",
    "XDG_CACHE_HOME",
    "HOME=/tmp",
)
pytestmark = pytest.mark.untimed

PLAN = plan_text(
    name="bad",
    dut="netns",
    stacks="[plain]",
    suites=None,
    tests="\n  - throughput: {trial: 200ms, final_trial: 400ms}",
)
TOO_LARGE = "stacks: [xfrm]\nsuites: [aes128gcm16]\ndont_fragment: true\nframe_sizes: [1518]"


def refused(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The message of a command that ended with this exit code, without a traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("given", "instead", "place", "named"),
    [
        ("frame_sizes: [64]", "frame_size: [64]", "5:1", "frame_sizes"),
        ("stacks: [plain]", "stacks: [plain, strongwan]", "4:17", "strongwan"),
        (
            "frame_sizes: [64]",
            "ip_versions: [6]\nframe_sizes: [65]",
            "6:15",
            "at least 84 B for IPv6, got 65",
        ),
        ("stacks: [plain]\nframe_sizes: [64]", TOO_LARGE, "7:15", "MTU 1500), got 1518"),
        ("trial: 200ms", "trial: 200", "7:25", "200"),
        ("name: bad", "name: [bad", "2:9", "YAML"),
    ],
    ids=["unknown-key", "unknown-stack", "too-small-for-ipv6", "too-large-with-DF", "no-unit", "not-yaml"],
)
def test_a_mistake_in_a_plan_is_named_with_its_place(
    tmp_path: Path, given: str, instead: str, place: str, named: str
) -> None:
    """Exit code 2, file:line:column, and no run directory; `validate` says the same as `run`."""
    assert given in PLAN
    file = tmp_path / "bad.yaml"
    file.write_text(PLAN.replace(given, instead))
    for done in (in_process("validate", file), in_process("run", file, "--out", tmp_path / "runs")):
        said = refused(done, 2)
        assert f"{file}:{place}" in said
        assert named in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "Usage"),
        (["run"], "expected a plan"),
        (["run", "--fast"], "--fast"),
        (["run", "missing.yaml"], "missing.yaml"),
        (["validate", "missing.yaml"], "missing.yaml"),
        (["run", "--resume", "missing"], "not a run directory"),
        (["report", "missing"], "not a run directory"),
        (["list", "chairs"], "chairs"),
        (["fly"], "fly"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], named: str
) -> None:
    """Exit code 2 and the word that is wrong."""
    monkeypatch.chdir(tmp_path)
    done = in_process(*arguments)
    assert named in refused(done, 2) + done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_run_directory_of_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    """Exit code 2 with both formats, for resuming and for reporting."""
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"format": 99, "espbench": "9.9"}))
    for done in (in_process("run", "--resume", tmp_path), in_process("report", tmp_path)):
        said = refused(done, 2)
        assert "format 99, written by espbench 9.9" in said
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_validate_and_dry_run_make_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both say how many cases there are; no directory, no namespace."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "good.yaml"
    file.write_text(PLAN.replace("[64]", "[64, 128]"))
    checked = in_process("validate", file)
    assert (checked.returncode, checked.stdout) == (0, f"{file}: ok, 2 cases\n")
    dry = in_process("run", file, "--dry-run")
    assert dry.returncode == 0
    assert "2 cases on netns" in dry.stdout
    assert len([line for line in dry.stdout.splitlines() if line.startswith("  ")]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["good.yaml"]


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("duts", "uml"),
        ("stacks", "xfrm"),
        ("suites", "aes128gcm16"),
        ("topologies", "gateway-to-gateway"),
        ("generators", "native"),
    ],
)
def test_everything_a_plan_may_name_is_listed(what: str, name: str) -> None:
    """One line each: its name and what it is."""
    done = in_process("list", what)
    assert done.returncode == 0
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert name in [line[0] for line in lines]
    assert all(len(line) == 2 for line in lines)


def test_the_schema_is_json_for_editors() -> None:
    """It knows the keys of a plan."""
    done = in_process("schema")
    assert done.returncode == 0
    assert {"name", "topology", "tests"} <= set(json.loads(done.stdout)["properties"])


@pytest.mark.root
def test_doctor_says_of_each_part_whether_it_is_ready() -> None:
    """People and programs get the same answer; a part that is not ready comes with what mends it."""
    done = in_process("doctor", "--json")
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    names = {kind: {part["name"] for part in parts} for kind, parts in answer.items()}
    assert {"netns", "uml", "external"} <= names["platform"]
    assert {"plain", "xfrm"} <= names["stack"]
    assert "native" in names["generator"]
    shown = in_process("doctor")
    assert shown.returncode == 0
    for parts in answer.values():
        for part in parts:
            assert part["ready"] or (part["missing"] and part["install"]), part
            (line,) = (s for s in shown.stdout.splitlines() if re.match(rf"\w+ +{part['name']} ", s))
            assert ("not ready" in line) != part["ready"]


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """A directory that user nobody may write, who must also be able to run this Python."""
    able = subprocess.run(
        [*NOBODY, sys.executable, "-c", "import espbench"], check=False, capture_output=True
    )
    if able.returncode:
        pytest.skip(f"user nobody may not read {sys.executable} or espbench")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.root
@pytest.mark.parametrize("dut", ["netns", "uml", "auto", "external"])
def test_without_rights_a_run_says_how_to_get_them(nobodys_folder: Path, dut: str) -> None:
    """Exit code 4, what is missing and what mends it, and no run directory."""
    plan: dict[str, Any] = pair_plan(dut)
    if dut == "external":
        plan = RouterBox().plan()
    said = refused(espbench("run", write_plan(nobodys_folder, plan), as_user=NOBODY, cwd=nobodys_folder), 4)
    assert "root" in said or "CAP_NET_ADMIN" in said
    assert "to fix it: run espbench as root" in said
    assert [path.name for path in nobodys_folder.iterdir()] == [f"{plan['name']}.yaml"]


@pytest.mark.root
def test_without_rights_doctor_and_calibrate_say_so_too(nobodys_folder: Path) -> None:
    """Exit code 4: nothing can be measured."""
    done = espbench("doctor", "--json", as_user=NOBODY, cwd=nobodys_folder)
    refused(done, 4)
    platforms = json.loads(done.stdout)["platform"]
    assert not any(part["ready"] for part in platforms)
    (emulated,) = (part for part in platforms if "run espbench as root" not in part["install"])
    assert (emulated["name"], emulated["missing"]) == (
        "qemu_e500",
        "not built",
    )  # needs no rights, once it is
    assert "run espbench as root" in espbench("doctor", as_user=NOBODY, cwd=nobodys_folder).stdout
    assert "to fix it: run espbench as root" in refused(
        espbench("calibrate", as_user=NOBODY, cwd=nobodys_folder), 4
    )


def own_network_plan(**port: str) -> dict[str, Any]:
    """An external plan whose ports are these; the interface exists nowhere, so nothing can be sent."""
    plan = RouterBox().plan(throughput=quick())
    for number, name in enumerate(("west", "east")):
        given = plan["ports"][name] | {"interface": f"espnone{number}"} | port
        plan["ports"][name] = {key: value for key, value in given.items() if value}
    return plan


def test_an_interface_in_use_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """RFC 6815: the initial namespace only with i_own_this_network, said at the line of the plan."""
    file = write_plan(tmp_path, own_network_plan(netns=""))
    said = refused(in_process("run", file, "--out", tmp_path / "runs"), 2)
    assert re.search(rf"{re.escape(str(file))}:\d+:\d+: .*interface", said)
    assert "RFC 6815" in said
    assert "i_own_this_network: true" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.root
@pytest.mark.alone
def test_the_initial_namespace_is_refused_under_any_name(tmp_path: Path) -> None:
    """The path looks like that of a tester's namespace, but the generator is not deceived."""
    file = write_plan(tmp_path, own_network_plan(netns="/proc/self/ns/net"))
    done = espbench("run", file, "--out", tmp_path / "runs")
    assert done.returncode in (1, 2)
    assert "RFC 6815" in refused(done, done.returncode)
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "trials.jsonl").read_text() == ""
    assert not leftovers()


@pytest.mark.root
@pytest.mark.alone
@pytest.mark.slow
def test_a_case_without_a_result_gives_exit_code_3(tmp_path: Path) -> None:
    """A box that forwards nothing: tried three times, reported, and told apart from success."""
    with RouterBox() as box:
        box.inside("sysctl -qw net.ipv4.ip_forward=0")
        file = write_plan(tmp_path, box.plan(throughput=quick(retries=2)))
        done = espbench("run", file, "--out", tmp_path / "runs")
    assert "INVALID" in refused(done, 3)
    (run,) = (tmp_path / "runs").iterdir()
    assert "no frame came back through the DUT" in (run / "results.csv").read_text()
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    assert {trial["validity"] for trial in trials} == {"INVALID"}
    assert done.stderr.count("INVALID no frame came back") == len(trials)
    assert (run / "report.html").exists()
    assert yaml.safe_load((run / "plan.yaml").read_text())["name"] == "box"


@pytest.mark.needs("command")
def test_the_module_and_the_command_are_one() -> None:
    """`python -m espbench` and `espbench` print the same version."""
    script = Path(sys.executable).with_name("espbench")
    by_name = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert (
        by_name.stdout
        == subprocess.run([*ESPBENCH, "--version"], capture_output=True, text=True, check=True).stdout
    )
