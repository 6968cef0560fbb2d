# SPDX-License-Identifier: Apache-2.0
"""The plan's `dut: auto` chooses by what the machine can do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from espbench.errors import MachineLacks, UsageError
from espbench.plan import resolve
from espbench.plan.reading.reader import read_text
from espbench.platforms.base import Readiness
from espbench.runs import automatic, beds
from espbench.runs.platform_kinds.table import PLATFORMS, Kind
from support.command_line import in_process
from support.plans import plan_text

Lacks = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Lacks:
    """Say what this machine lacks for each platform, and for ESP by its kernel; nothing else is asked of it."""

    def lacks(esp: str = "", **platforms: str) -> None:
        monkeypatch.setattr(automatic, "esp_missing", lambda: esp)
        for name in ("netns", "uml", "qemu_x86"):
            missing = platforms.get(name, "")
            answers = [Readiness("it", not missing, missing, f"mend {missing}")]
            kind = Kind(PLATFORMS[name].make, partial(list, answers))
            monkeypatch.setitem(PLATFORMS, name, kind)

    return lacks


def chosen(text: str = plan_text(dut="auto"), **how: bool) -> beds.Choice:
    (choice,) = beds.choose(resolve(read_text(text, "plan.yaml", "plan")), **how)
    return choice


def test_namespaces_where_the_kernel_has_esp(machine: Lacks) -> None:
    machine()
    assert (chosen().dut, chosen().reason) == ("netns", "auto: the running kernel does ESP in namespaces")


def test_uml_where_it_has_none(machine: Lacks) -> None:
    machine(esp="no ESP")
    assert (chosen().dut, chosen().reason) == (
        "uml",
        "auto: no ESP; User-Mode Linux has a kernel of its own",
    )


@pytest.mark.parametrize("esp", ["", "no ESP"])
def test_virtual_time_where_neither_can_be_made(machine: Lacks, esp: str) -> None:
    """An ordinary user's machine is like that; the reason names what is missing."""
    machine(esp, netns="needs root", uml="needs root")
    assert chosen().dut == "virt-x86"
    assert chosen().reason == "auto: needs root; gateways in virtual time do not need it"


@pytest.mark.parametrize(("uml", "dut"), [("", "uml"), ("needs root", "virt-x86")])
def test_a_plan_that_switches_a_gateway_off_gets_one_that_can_be(machine: Lacks, uml: str, dut: str) -> None:
    """A namespace cannot, however good the kernel's ESP is."""
    machine(uml=uml)
    choice = chosen(plan_text(dut="auto", stacks="[strongswan]", tests="[reset: {what: power}]"))
    assert choice.dut == dut
    assert "no power switch" in choice.reason or uml


def test_what_the_chosen_gateways_cannot_do_is_refused_before_the_run(machine: Lacks) -> None:
    """Only gateways in virtual time take a seed."""
    machine()
    with pytest.raises(UsageError) as error:
        chosen(plan_text(dut="auto", seed="5"))
    assert "seed: expected no seed with auto" in str(error.value)
    assert error.value.__notes__ == [
        "  dut: auto chose netns here: the running kernel does ESP in namespaces"
    ]


def test_a_seed_goes_with_gateways_in_virtual_time(machine: Lacks) -> None:
    machine(netns="needs root", uml="needs root")
    assert chosen(plan_text(dut="auto", seed="5")).dut == "virt-x86"


def test_not_where_it_is_refused(machine: Lacks) -> None:
    """The message then says what UML lacks, and what else could be done."""
    machine(netns="needs root", uml="needs root")
    choice = chosen(virtual_time=False)
    assert choice.dut == "uml"
    assert "--real-time" in choice.instead


def test_not_where_it_is_not_built(machine: Lacks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the demand names the remedy of UML and, beside it, the other way."""
    machine(netns="needs root", uml="needs root", qemu_x86="not built")
    choice = chosen()
    assert choice.dut == "uml"

    def refuse(on_note: object) -> None:
        raise MachineLacks("needs root", "run espbench as root")

    monkeypatch.setattr(choice.platform, "require", refuse)
    plan = resolve(read_text(plan_text(dut="auto"), "plan.yaml", "plan"))
    with pytest.raises(MachineLacks) as refused:
        beds.require(plan, [choice], lambda text: None)
    (note,) = refused.value.__notes__
    assert "espbench build x86" in note


def test_a_machine_that_can_never_build_them_is_not_told_to(
    machine: Lacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(netns="needs root", uml="needs root", qemu_x86="another processor")
    assert "espbench build x86" in chosen().instead
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert (chosen().dut, chosen().instead) == ("uml", "")


@pytest.mark.parametrize(
    ("esp", "netns", "uml", "reason"),
    [
        ("", "", "no taps", ""),
        ("no ESP", "", "", ""),
        ("", "needs root", "", ""),
        ("no ESP", "", "no taps", "no taps"),
        ("", "needs root", "no taps", "no taps"),
    ],
)
def test_doctor_says_whether_anything_is_measured_in_real_time(
    machine: Lacks, esp: str, netns: str, uml: str, reason: str
) -> None:
    """Exit code 4 if neither can be made: scripts/setup.sh and scripts/demo.sh ask for it."""
    machine(esp, netns=netns, uml=uml)
    done = in_process("doctor", "--real-time")
    assert done.returncode == (4 if reason else 0)
    assert done.stdout == ""
    assert (f"no gateways in real time: {reason}" in done.stderr) == bool(reason)


def test_what_virtual_time_cannot_do_is_said_before_anything_is_made(machine: Lacks) -> None:
    """Checks are the same as for a plan that names it; the message has the place, and why it was chosen."""
    machine(netns="needs root", uml="needs root")
    with pytest.raises(UsageError, match=r"plan.yaml:\d+:\d+: capture: expected no capture") as refused:
        chosen(plan_text(dut="auto", capture="true"))
    assert refused.value.__notes__ == ["  dut: auto chose virt-x86 here: needs root"]
    machine(esp="no ESP")
    assert chosen(plan_text(dut="auto", capture="true")).dut == "uml"
