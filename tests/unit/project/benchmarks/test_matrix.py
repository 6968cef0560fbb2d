# SPDX-License-Identifier: Apache-2.0
"""The matrix of roots and kernels finds the first fault of a machine, and runs again what has not passed."""

from __future__ import annotations

import json
from pathlib import Path

import emulated_x86
import matrix
import pytest

from espbench.results import RunDirectory
from support.synthetic import run as synthetic_run

READY = {
    "platform": [{"name": "netns", "ready": True}, {"name": "uml", "ready": False}],
    "stack": [{"name": name, "ready": True} for name in ("xfrm", "strongswan", "libreswan")],
}
FILES = {
    "doctor.json": json.dumps(READY),
    "doctor.exit": "0\n",
    "doctor.txt": "",
    "run.exit": "3\n",
    "run.txt": "measured\nresults.csv\n",
    "before.state": "lo\n",
    "after.state": "lo\n\n",
    "killed.exit": "137\n",
    "killed.txt": "Killed\n",
    "clean.exit": "0\n",
    "clean.txt": "3 things removed\n",
    "cleaned.state": "lo\n",
}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return what a machine leaves behind in which all is well."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    shape = synthetic_run.Shape(suites=("aes128gcm16",), sizes=(64, 512), goals=(0.0,), trials_per_case=2)
    with RunDirectory.open(synthetic_run.build(tmp_path / "runs", shape).path) as run:
        run.lock()
        run.update_manifest(platform="netns")
        (run.path / "report.html").write_text("a report")
    return tmp_path


def test_a_machine_that_does_all_has_no_fault(out: Path) -> None:
    """A case with a bound has a figure too."""
    assert matrix.first_fault(out) == ""
    assert matrix.statuses(out / "runs") == {"OK": matrix.CASES}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("doctor.exit", "4\n", "doctor: exit 4: it printed nothing"),
        ("doctor.json", FILES["doctor.json"].replace("libreswan", "other"), "doctor: not ready: libreswan"),
        ("run.exit", "1\n", "run: exit 1: results.csv"),
        ("after.state", "lo\nespbench-1\n", "left behind by the run: espbench-1"),
        ("killed.exit", "0\n", "the second run: expected to be killed (137), exit 0: Killed"),
        ("clean.exit", "1\n", "clean: exit 1: 3 things removed"),
        ("cleaned.state", "lo\nveth0\n", "left behind by clean: veth0"),
    ],
)
def test_each_fault_is_named(out: Path, name: str, content: str, words: str) -> None:
    (out / name).write_text(content)
    assert matrix.first_fault(out) == words


def test_a_machine_that_ended_early_did_not_do_the_rest(out: Path) -> None:
    (out / "clean.exit").unlink()
    assert matrix.first_fault(out).startswith("not done: ")


def test_gateways_of_another_platform_are_a_fault(out: Path) -> None:
    """Debian's kernel has ESP, so `auto` must find it."""
    (folder,) = (out / "runs").iterdir()
    with RunDirectory.open(folder) as run:
        run.lock()
        run.update_manifest(platform="uml")
    assert matrix.first_fault(out) == "run: gateways are uml, expected netns"


def test_a_result_without_a_figure_is_a_fault(out: Path) -> None:
    """So is one that is not there."""
    (folder,) = (out / "runs").iterdir()
    with RunDirectory.open(folder) as run:
        run.lock()
        first, *others = run.results()
        run.save_results(others)
        assert matrix.first_fault(out) == f"run: {matrix.CASES - 1} results, expected {matrix.CASES}"
        run.save_results([first.model_copy(update={"status": "INVALID", "words": "no word"}), *others])
        assert matrix.first_fault(out) == f"run: {first.stack}: INVALID, no word"


def test_only_what_passed_with_this_code_is_not_run_again() -> None:
    passed = matrix.Result("trixie/6.1", code="new")
    assert matrix.has_passed([passed], "trixie/6.1", "new")
    assert not matrix.has_passed([passed], "trixie/6.1", "newer")
    assert not matrix.has_passed([passed], "trixie/newest", "new")
    failed = matrix.Result("trixie/6.1", code="new", failed="doctor: exit 4")
    assert not matrix.has_passed([failed], "trixie/6.1", "new")


def test_each_step_took_the_time_since_the_one_before() -> None:
    heard = [("boot", 40.0), ("doctor", 70.0), ("quick plan", 300.0), ("done", 301.0)]
    assert matrix.durations(heard) == {"boot": 40.0, "doctor": 30.0, "quick plan": 230.0}


@pytest.mark.parametrize(
    "file", ["boot/vmlinuz-6.1.0-50-amd64", "usr/lib/modules/7.2.13+deb14-amd64/vmlinuz"]
)
def test_a_kernel_is_found_where_debian_puts_it(tmp_path: Path, file: str) -> None:
    """Debian moved it beside its modules; its version is in its name or in that of its folder."""
    kernel = tmp_path / file
    kernel.parent.mkdir(parents=True)
    kernel.write_bytes(b"")
    assert emulated_x86.kernel_of(tmp_path) == kernel
    assert emulated_x86.version_of(kernel) in file
    assert "vmlinuz" not in emulated_x86.version_of(kernel)
