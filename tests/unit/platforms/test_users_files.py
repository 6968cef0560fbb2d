# SPDX-License-Identifier: Apache-2.0
"""Machines of a cluster that measure in real time must have the same files of the user.

These files are not sent to them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.errors import MachineLacks
from espbench.plan import Profile, ResolvedPlan, load_profile, resolve
from espbench.plan.reading.reader import read_text
from espbench.runs.platform_kinds.shared.users_files import demand_same, digests
from support.plans import plan_text


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("linux", "lib/a.ko", "mine/sbin/swanctl", "mine/libexec/ipsec/charon"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def plan(folder: Path) -> tuple[ResolvedPlan, Profile]:
    (folder / "dut.yaml").write_text(
        "name: own\ndescription: mine\nplatform: uml\nkernel: ./linux\nmodules: lib\n"
    )
    text = plan_text(dut="./dut.yaml", stacks="[plain, {stack: strongswan, prefix: mine}]")
    resolved = resolve(read_text(text, "plan.yaml", "plan"), folder / "plan.yaml")
    return resolved, load_profile("./dut.yaml", folder / "plan.yaml")


def test_all_that_the_plan_names_is_compared(files: Path) -> None:
    """A kernel without a folder is a program of the machine."""
    resolved, profile = plan(files)
    expected = digests(resolved, [profile, None])
    assert list(expected) == [str(files / name) for name in ("lib", "linux", "mine")]
    demand_same(expected)
    assert digests(resolve(read_text(plan_text(), "plan.yaml", "plan")), [load_profile("uml")]) == {}


@pytest.mark.parametrize("name", ["linux", "lib/a.ko", "mine/sbin/swanctl"])
def test_other_files_are_one_message(files: Path, name: str) -> None:
    resolved, profile = plan(files)
    expected = digests(resolved, [profile])
    (files / name).write_text("another build")
    with pytest.raises(
        MachineLacks, match=r"expected the same files as .* got others \([0-9a-f]{16}…\)"
    ) as error:
        demand_same(expected)
    assert str(files / name.partition("/")[0]) in str(error.value)


def test_missing_and_renamed_files_are_others(files: Path) -> None:
    resolved, profile = plan(files)
    expected = digests(resolved, [profile])
    (files / "lib/a.ko").rename(files / "lib/b.ko")
    with pytest.raises(MachineLacks, match="got others"):
        demand_same(expected)
    (files / "lib/b.ko").unlink()
    (files / "lib").rmdir()
    with pytest.raises(MachineLacks, match=r"lib: expected .* got nothing"):
        demand_same(expected)
