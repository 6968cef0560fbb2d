# SPDX-License-Identifier: Apache-2.0
"""The table of platforms, and how a run builds test beds on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from espbench.errors import EspbenchError
from espbench.plan import Case, Profile, ResolvedPlan, cases, load_profile, profile_names, resolve
from espbench.plan.reading.reader import read_text
from espbench.platforms import netns
from espbench.platforms.e500 import qemu_e500
from espbench.platforms.remote import remote_platform
from espbench.platforms.uml import uml_platform
from espbench.platforms.virtual import virtual_pair
from espbench.runs.beds import Beds, Choice, choose, profiles_of, virtual
from espbench.runs.platform_kinds.external import External
from espbench.runs.platform_kinds.shared.platform import Workspace, kits_of
from espbench.runs.platform_kinds.table import PLATFORMS
from espbench.this_machine.registry import Registry
from support.plans import external_text, plan_text

BOXES = external_text()


def pair(dut: str) -> str:
    return plan_text(dut=dut, stacks="[plain]", suites=None)


def plan(text: str) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"))


def chosen(dut: str) -> Choice:
    (choice,) = choose(plan(pair(dut)))
    return choice


def test_every_platform_a_profile_may_name_is_in_the_table() -> None:
    """The table also has the user's own boxes, which have no profile."""
    named = get_args(Profile.model_fields["platform"].annotation)
    assert set(PLATFORMS) == {*named, External.name}


GATEWAYS = [dut for dut in profile_names() if load_profile(dut).processor is None]


@pytest.mark.parametrize("dut", GATEWAYS)
def test_a_profile_is_on_the_platform_it_names(dut: str) -> None:
    """The platform has the profile's line rate, unless the plan has one."""
    profile, choice = load_profile(dut), chosen(dut)
    assert (choice.dut, choice.platform.name, choice.mtu) == (profile.name, profile.platform, profile.mtu)
    assert choice.platform.line_rate_bps == profile.line_rate
    assert choice.reason == f"the plan asks for {dut}"
    assert virtual([choice]) == profile.emulated
    (other,) = choose(plan(pair(dut) + "line_rate: 100Mbps\n"))
    assert other.platform.line_rate_bps == 100e6


def test_what_a_pair_takes_of_memory_decides_whether_two_can_stand() -> None:
    """Namespaces take none, guests and boards their own, and of boxes there is one pair."""
    memory = {dut: chosen(dut).platform.memory_mb() for dut in ("netns", "uml", "mpc8548e", "remote-example")}
    assert memory == {"netns": 0, "uml": 512, "mpc8548e": 256, "remote-example": math.inf}


def test_only_gateways_in_virtual_time_have_links_in_memory() -> None:
    """A pair has three, a single gateway two; a copy each in a trial, and one more where guests stay."""
    whole = virtual_pair.LINK_BYTES / 1e6
    duts = ("netns", "uml", "remote-example", "mpc8548e", "virt-x86")
    shares = {dut: chosen(dut).platform.links_mb() / whole for dut in duts}
    assert shares == {"netns": 0, "uml": 0, "remote-example": 0, "mpc8548e": 6, "virt-x86": 9}
    assert virtual_pair.links_mb(single=True) == 4 * whole


def test_the_users_boxes_have_neither_a_profile_nor_a_reason() -> None:
    """Their plan's line rate is the ports'."""
    resolved = plan(BOXES + "line_rate: 1Gbps\n")
    (choice,) = choose(resolved)
    assert (choice.dut, choice.platform.name, choice.reason) == ("auto", "external", "")
    assert (profiles_of([choice]), virtual([choice])) == ([], False)
    assert (choice.platform.line_rate_bps, choice.platform.takes_cpus) == (1e9, False)


def test_nothing_is_made_that_the_plan_does_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan on namespaces makes no other platform."""

    def refused(*_: object) -> None:
        raise AssertionError("made for nothing")

    for module, name in (
        (uml_platform, "UmlPlatform"),
        (remote_platform, "RemotePlatform"),
        (qemu_e500, "QemuE500Platform"),
    ):
        monkeypatch.setattr(module, name, refused)
    assert chosen("netns").platform.name == "netns"
    monkeypatch.setattr(netns, "NetnsPlatform", refused)
    with pytest.raises(AssertionError):
        chosen("netns")


class Fake:
    """A platform that makes a folder, and then fails if it is told to."""

    virtual_time = False

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.made: list[Path] = []

    def build(self, case: Case, workspace: Workspace) -> Any:
        self.made.append(workspace.registry.directory("made"))
        if self.fails:
            raise EspbenchError("no more")
        return case.dut

    def memory_mb(self) -> float:
        return 1024.0


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry("lab", tmp_path / "state") as made:
        yield made


def test_each_case_is_built_on_its_own_device(registry: Registry, tmp_path: Path) -> None:
    """Beds asks the platform of the case's device, and undoes what one left that failed."""
    one, two = Fake(), Fake(fails=True)
    resolved = plan(pair("netns"))
    first, second = cases(resolved, ["one", "two"])
    beds = Beds(resolved, cast(Any, {"one": one, "two": two}), Workspace(registry, tmp_path, cast(Any, None)))
    assert cast(Any, beds.build(first)) == "one"
    with pytest.raises(EspbenchError, match="no more"):
        beds.build(second)
    assert [path.exists() for path in (*one.made, *two.made)] == [True, False]


def test_each_kit_of_a_plan_is_named_once() -> None:
    """Workers of a cluster get the parts of these; boxes and namespaces are built of none."""
    (boards,) = choose(plan(plan_text(dut="mpc8548e", stacks="[strongswan]")))
    platforms = [chosen(dut).platform for dut in ("virt-x86", "remote-example", "mpc8548e", "netns")]
    assert [kit.name for kit in kits_of([*platforms, boards.platform])] == ["x86", "e500", "e500-strongswan"]
    assert kits_of([External(plan(BOXES)), platforms[1], platforms[3]]) == []
