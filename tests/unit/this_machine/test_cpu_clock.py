# SPDX-License-Identifier: Apache-2.0
"""The files of cpufreq say whether the clock of CPUs follows their load."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.this_machine.cpu_clock import follows_load


def cpus(folder: Path, *governors: str, most: str = "4000000\n") -> Path:
    """Make the files of these CPUs, as in sysfs."""
    for cpu, governor in enumerate(governors):
        policy = folder / f"cpu{cpu}" / "cpufreq"
        policy.mkdir(parents=True)
        (policy / "scaling_governor").write_text(f"{governor}\n")
        (policy / "scaling_min_freq").write_text("800000\n")
        (policy / "scaling_max_freq").write_text(most)
    return folder


@pytest.mark.parametrize("governor", ["schedutil", "powersave", "ondemand"])
def test_a_governor_that_follows_the_load_is_named(tmp_path: Path, governor: str) -> None:
    assert follows_load([0, 1], cpus(tmp_path, "performance", governor)) == governor


@pytest.mark.parametrize("governor", ["performance", "userspace"])
def test_a_governor_that_keeps_the_clock_is_none(tmp_path: Path, governor: str) -> None:
    assert follows_load([0], cpus(tmp_path, governor)) == ""


def test_only_these_cpus_count(tmp_path: Path) -> None:
    assert follows_load([0], cpus(tmp_path, "performance", "schedutil")) == ""


def test_a_governor_without_a_choice_is_none(tmp_path: Path) -> None:
    """The lowest clock is the highest one."""
    assert follows_load([0], cpus(tmp_path, "schedutil", most="800000\n")) == ""


def test_a_machine_without_cpufreq_has_none(tmp_path: Path) -> None:
    assert follows_load([0, 1], tmp_path) == ""
