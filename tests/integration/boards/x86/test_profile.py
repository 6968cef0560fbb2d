# SPDX-License-Identifier: Apache-2.0
"""Profiles of x86-64 gateways in virtual time: what is counted is what was recorded, and counting changes nothing."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.platforms.virtual.parts import recipe
from support.plans import coarse, pair_plan, write_plan
from support.runs import espbench

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

PATIENCE_S = 1800.0
CASE = "0002-xfrm-aes128gcm16-512-one-way"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run of a short plan, and the profile of its case with ESP.

    No load of it keeps a gateway busy: a busy one's queues move more of the functions that do not encrypt.
    """
    done = espbench("build", "x86", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    folder = tmp_path_factory.mktemp("profile")
    plan = pair_plan(
        "virt-x86",
        throughput=coarse("5000fps", "20000fps"),
        name="profile",
        stacks=["xfrm"],
        suites=["aes128gcm16"],
        frame_sizes=[512],
    )
    write_plan(folder, plan)
    command = ("run", folder / "profile.yaml", "--out", folder / "runs", "--no-report", "--jobs", "1")
    done = espbench(*command, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "runs").iterdir()
    done = espbench("profile", run, "--case", CASE, "--out", folder / "profiles", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "other gateways" not in done.stderr
    (profiled,) = (folder / "profiles").iterdir()
    assert done.stdout.strip().splitlines()[-1] == str(profiled / "profile.html")
    return run, profiled


def rows_of(profiled: Path) -> Iterator[tuple[str, dict[str, str]]]:
    with (profiled / "profile.csv").open() as file:
        for row in csv.DictReader(file):
            yield row["gateway"], row


def final_trial(run: Path) -> dict[str, Any]:
    """The last trial of the case, as it is recorded."""
    trials = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    of_case: dict[str, Any] = [trial for trial in trials if trial["case"] == CASE][-1]
    return of_case


def test_the_sum_over_functions_is_what_the_run_recorded(measured: tuple[Path, Path]) -> None:
    """The run that nobody profiled recorded the same sum, to the last instruction, with one ns for each."""
    run, profiled = measured
    sums: defaultdict[str, int] = defaultdict(int)
    named: defaultdict[str, int] = defaultdict(int)
    for side, row in rows_of(profiled):
        sums[side] += int(row["instructions"])
        named[side] += int(row["instructions"]) if row["known_by"] == "name" else 0
    gateways = final_trial(run)["gateways"]
    assert dict(sums) == {side: reading["cpu_ns"] for side, reading in gateways.items()}
    assert all(named[side] >= 0.995 * total for side, total in sums.items()), (named, sums)


def test_counting_changes_nothing(measured: tuple[Path, Path]) -> None:
    """The trial is the run's own final one, but for its number, its phase and the host."""
    was, now = (final_trial(folder) for folder in measured)
    for key in ("host", "sequence", "phase", "attempt", "seal"):
        was.pop(key, None), now.pop(key, None)
    assert now == was


def test_each_frame_is_encrypted_by_a_function_of_its_module(measured: tuple[Path, Path]) -> None:
    """Home encrypts and Office decrypts; what one frame passes once takes as many instructions for each."""
    _, profiled = measured
    each = {
        (side, row["function"]): float(row["instructions_per_frame"])
        for side, row in rows_of(profiled)
        if row["where"] == "softirq" and row["module"] == "esp4"
    }
    assert each["home", "esp_output"] > 20
    assert each["office", "esp_input"] > 20
    assert ("office", "esp_output") not in each
    assert ("home", "esp_input") not in each


def test_its_flame_graph_has_the_whole(measured: tuple[Path, Path]) -> None:
    """The graph also has callers: the interrupt's softirq polls the driver, which leads to ESP."""
    _, profiled = measured
    page = (profiled / "profile.html").read_text()
    (data,) = re.findall(r'id="data">(.*?)</script>', page)
    home, office = json.loads(data)
    assert "home" in home["title"]
    assert "office" in office["title"]
    assert called(home["root"], ["[hard interrupt]", "__napi_poll", "esp_output_tail [esp4]"])


def called(box: dict[str, Any], names: list[str]) -> bool:
    """Say whether a path of boxes has these names in this order."""
    rest = names[1:] if box["n"] == names[0] else names
    return not rest or any(called(child, rest) for child in box.get("c", []))


def test_against_itself_nothing_differs(measured: tuple[Path, Path], tmp_path: Path) -> None:
    """Measured again at its loads: every function is the same."""
    run, profiled = measured
    done = espbench(
        "profile", run, "--against", profiled, "--case", CASE, "--out", tmp_path, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("every function is the same, to the last instruction") == 2


def test_mistakes_are_one_message(measured: tuple[Path, Path], tmp_path: Path) -> None:
    """The message comes before anything is measured."""
    run, _ = measured
    done = espbench("profile", run, "--case", "0009-nothing", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert f"expected: one of 0001-plain-512-one-way, {CASE}" in done.stderr
    write_plan(tmp_path, pair_plan("uml", name="real"))
    done = espbench("profile", tmp_path / "real.yaml", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "name a dut in virtual time" in done.stderr
    assert not (tmp_path / "out").exists()


# At the beginning of esp_output: mov $6,%ecx and a push. The same in two instructions, of as many bytes:
# xor %ecx,%ecx; add $6,%ecx; and the push.
MODULE_BYTES = 40_000
SIGNED = b"~Module signature appended~"
ONE, TWO = bytes.fromhex("b9060000004156"), bytes.fromhex("31c983c1064156")


def test_one_instruction_planted_in_esp_output_is_found_there(
    measured: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's own module with one instruction more for each frame that Home encrypts, and none for Office.

    Functions of allocators and timers move in any case.
    """
    run, was = measured
    assert all(reading["cpu_pct"] < 60 for reading in final_trial(was)["gateways"].values())
    plant(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = espbench(
        "profile", run, "--against", was, "--case", CASE, "--top", "2000", "--out", tmp_path / "now",
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    home, office = re.split(r"(?=^\S.* instructions per frame)", done.stdout, flags=re.MULTILINE)[1:3]
    rows = [line.split() for line in home.splitlines()]
    assert [(row[0], row[-1]) for row in rows if "esp4" in row] == [("esp_output", "+1.000")]
    assert not [line for line in office.splitlines() if "esp4" in line.split()]


def plant(cache: Path) -> None:
    """A cache with everything that is in the user's, but for the instruction."""
    store = cache / "espbench" / "e500"
    shutil.copytree(recipe.store(), store, ignore=shutil.ignore_patterns("sources", "logs", "apt*", ".*"))
    cache.chmod(0o700)
    folder = store / f"{recipe.X86_KERNEL.name}-{recipe.key(recipe.X86_KERNEL)}"
    modules = folder / "modules.cpio"
    text = modules.read_bytes()
    module = text.index(b"modules/esp4.ko")
    place = text.find(ONE, module, module + MODULE_BYTES)
    assert place > 0, "Debian's esp4 is not as it was: find another instruction to make two of"
    text = text[:place] + TWO + text[place + len(TWO) :]
    # A signature that is wrong is refused, none is not.
    signature = text.index(SIGNED, place)
    modules.write_bytes(text[:signature] + SIGNED.swapcase() + text[signature + len(SIGNED) :])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["products"][modules.name] = recipe.digest(modules)
    (folder / "manifest.json").write_text(json.dumps(manifest))
