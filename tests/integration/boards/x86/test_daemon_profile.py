# SPDX-License-Identifier: Apache-2.0
"""Profiles of a daemon that does ESP itself: what charon executes is of its functions and those of its libraries."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from support.plans import coarse, pair_plan, write_plan
from support.runs import espbench

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

PATIENCE_S = 1800.0
CASE = "0002-strongswan-libipsec-aes128gcm16-512-one-way"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile of a short plan with ESP in user space."""
    done = espbench("build", "x86", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    folder = tmp_path_factory.mktemp("profile")
    plan = pair_plan(
        "virt-x86", throughput=coarse("5000fps", "20000fps"), name="daemon", stacks=["strongswan-libipsec"],
        suites=["aes128gcm16"], frame_sizes=[512],
    )  # fmt: skip
    path = write_plan(folder, plan)
    done = espbench("profile", path, "--half", "--case", CASE, "--out", folder / "out", timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip().splitlines()[-1]).parent


def test_the_sum_is_what_was_executed_and_nearly_all_of_it_is_known(profiled: Path) -> None:
    """An instruction is 1 ns: the sum is the CPU time that the trial recorded, to the last instruction.

    Nearly all is known by a name or an offset. The kernel's functions have names, and only files without symbols
    offsets. The terminal says both shares.
    """
    (trial,) = [json.loads(line) for line in (profiled / "trials.jsonl").read_text().splitlines()]
    counts: dict[str, Counter[str]] = {"home": Counter(), "office": Counter()}
    for row in csv.DictReader((profiled / "profile.csv").read_text().splitlines()):
        counts[row["gateway"]][row["known_by"]] += int(row["instructions"])
        assert (row["known_by"] == "offset") == row["function"].startswith("0x")
        assert row["known_by"] != "offset" or row["where"] == "user space"
    sums = {side: of_side.total() for side, of_side in counts.items()}
    assert sums == {side: reading["cpu_ns"] for side, reading in trial["gateways"].items()}
    assert all(counts[side]["nothing"] <= 0.005 * total for side, total in sums.items()), counts
    shown = espbench("profile", profiled)
    for side, total in sums.items():
        name, offset = (f"{counts[side][kind] / total:.2%}" for kind in ("name", "offset"))
        assert f"{name} of them have a name, {offset} only an offset" in shown.stdout


def test_esp_is_done_by_the_daemons_libraries(profiled: Path) -> None:
    """The work that nobody else does is there for each frame: libipsec, and the cipher of OpenSSL."""
    each: Counter[tuple[str, str]] = Counter()
    for row in csv.DictReader((profiled / "profile.csv").read_text().splitlines()):
        if row["where"] == "user space":
            each[row["gateway"], row["module"]] += round(float(row["instructions_per_frame"]))
    for side in ("home", "office"):
        assert each[side, "libipsec.so.0"] > 100
        assert each[side, "libcrypto.so.3"] > 500
        assert each[side, "libc.so.6"] > 100


def test_nothing_that_names_addresses_is_left(profiled: Path) -> None:
    """The files of the guests are read and removed."""
    assert not list((profiled / "logs").glob("profile-*"))
