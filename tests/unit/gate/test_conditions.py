# SPDX-License-Identifier: Apache-2.0
"""The keys of conditions: of which device or stack, and how they stand in a base."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.gate import conditions
from espbench.gate.conditions import Key
from support.synthetic.gate import World

NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1)


@given(scope=st.just("") | NAMES, name=NAMES, deeper=NAMES)
def test_a_key_is_read_as_it_was_written(scope: str, name: str, deeper: str) -> None:
    for key in (Key(scope, name), Key(scope, f"{name}.{deeper}")):
        assert Key.read(str(key)) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("line rate", Key("", "line rate")),
        ("mpc8548e: profile.kernel", Key("mpc8548e", "profile.kernel")),
        ("xfrm: kind", Key("xfrm", "kind")),
    ],
)
def test_bases_of_earlier_versions_have_the_same_text(text: str, key: Key) -> None:
    """Their lines are sealed with it."""
    assert (Key.read(text), str(key)) == (key, text)


def test_a_user_names_a_condition_by_a_word_of_it() -> None:
    for name in ("mpc8548e: profile.kernel", "mpc8548e", "kernel"):
        assert conditions.is_named("mpc8548e: profile.kernel", [name])
    assert not conditions.is_named("mpc8548e: profile.kernel", ["profile.kernel", "kern"])


def test_gateways_that_said_nothing_yet_are_not_known() -> None:
    """A condition of the whole run that is called so is none of a stack."""
    assert conditions.knows_gateways({"line rate": "1", "xfrm: kind": "xfrm"})
    assert not conditions.knows_gateways({"kind": "x", "mpc8548e: profile.kind": "y"})


def test_all_that_a_kernel_of_ones_own_tells_is_under_test() -> None:
    """Its configuration too, of which a new version has other digests; not of a kernel that is espbench's own."""
    emulation = {
        "kernel": {"home": "6.9.0"},
        "configuration of the kernel": {"home": "sha256 01"},
        "qemu": "sha256 02",
    }
    of_kernel = {"board: emulation.kernel.home", "board: emulation.configuration of the kernel.home"}
    for path, subject in (("/opt/gate/bzImage", of_kernel), ("espbench's own", set())):
        kernel = {"board": {"platform": "made-up", "kernel": {"home": path, "office": path}}}
        manifest = World(conditions={"profiles": kernel}).manifest()
        contexts = {stack: {"emulation": emulation} for stack in manifest.contexts}
        recorded = conditions.of_run(manifest.model_copy(update={"contexts": contexts}))
        assert {key for key in recorded.subject if "emulation" in key} == subject
        assert "board: emulation.qemu" in recorded.instrument


def test_the_program_that_emulates_is_recorded_and_no_condition() -> None:
    """It is the same QEMU, by the compiler of another machine; the sources of QEMU are a condition."""
    manifest = World().manifest()

    def recorded(program: str, sources: str) -> conditions.Recorded:
        context = {"emulation": {"qemu": f"made of {sources}"}, "emulator": {"qemu": f"sha256 {program}"}}
        return conditions.of_run(
            manifest.model_copy(update={"contexts": dict.fromkeys(manifest.contexts, context)})
        )

    base = recorded("01", "a")
    assert recorded("02", "a") == base
    assert conditions.differences(base.instrument, recorded("01", "b").instrument)


def test_a_device_called_kernel_is_under_test_only_in_its_kernel() -> None:
    """The name of a device is the user's; its memory and its QEMU measure, whatever it is called."""
    profile = {"memory": "64M", "kernel": {"home": "/opt/gate/bzImage", "office": "/opt/gate/bzImage"}}
    manifest = World(conditions={"profiles": {"kernel": profile}}).manifest()
    contexts = {stack: {"emulation": {"qemu": "sha256 02"}} for stack in manifest.contexts}
    cases = [entry.model_copy(update={"dut": "kernel"}) for entry in manifest.cases]
    recorded = conditions.of_run(manifest.model_copy(update={"contexts": contexts, "cases": cases}))
    assert set(recorded.subject) == {"kernel: profile.kernel.home", "kernel: profile.kernel.office"}
    assert {"kernel: profile.memory", "kernel: emulation.qemu"} <= recorded.instrument.keys()
    known = conditions.of_plan("1", "t", 1e9, {"profiles": {"kernel": {"initrd": "/boot/initrd", **profile}}})
    assert conditions.own_kernels(known) == set(recorded.subject)


def test_debians_kernel_with_a_module_of_the_users_is_under_test() -> None:
    """A base does not list this kernel among the conditions of the instrument, so without this no base would fit."""
    profile = {"kernel": "Debian's", "modules": {"home": "/opt/esp4.ko", "office": "/opt/esp4.ko"}}
    manifest = World(conditions={"profiles": {"board": profile}}).manifest()
    recorded = conditions.of_run(manifest)
    known = conditions.of_plan("1", "t", 1e9, {"profiles": {"board": profile}})
    assert conditions.own_kernels(known) == recorded.subject.keys() & known.keys()
    assert "board: profile.kernel" in recorded.subject


def test_what_only_one_side_has_a_device_for_is_no_difference() -> None:
    was = {"a: kind": "1", "b: kind": "1", "mtu": "1500"}
    assert conditions.differences(was, {"a: kind": "2", "mtu": "1500"}) == [("a: kind", "1", "2")]


def test_a_profile_whose_name_has_dots_is_one_device() -> None:
    """Its kernel is under test like that of any other, and it is named as a whole."""
    own = "/opt/gate/bzImage"
    profiles = {"gw-1.2": {"memory": "128M", "kernel": {"home": own}}, "gw-1": {"memory": "256M"}}
    known = conditions.of_plan("1", "t", 1e9, {"profiles": profiles})
    assert known["gw-1.2: profile.memory"] == "128M"
    assert known["gw-1: profile.memory"] == "256M"
    assert conditions.own_kernels(known) == {"gw-1.2: profile.kernel.home"}
    assert conditions.is_named("gw-1.2: profile.memory", ["gw-1.2"])
    assert not conditions.is_named("gw-1.2: profile.memory", ["gw-1", "2"])


@pytest.mark.parametrize(
    ("key", "now", "is_told"),
    [
        ("board: emulation.qemu", None, False),
        ("board: emulation.qemu", "a", False),
        ("board: emulation.qemu", "c", True),
        ("board: profile.memory", None, True),  # the plan says it, whether a gateway is up or not
        ("other: emulation.qemu", None, True),
    ],
)
def test_what_gateways_did_not_report_is_no_difference(key: str, now: str | None, is_told: bool) -> None:
    """Some of the board's cases were not measured; the base has the values of all, of which one is that of these."""
    scope = {f"{name}: kind": "k" for name in ("board", "other")}
    found = conditions.differences(
        {**scope, key: "a / b"}, {**scope, **({key: now} if now else {})}, partly=["board"]
    )
    assert bool(found) == is_told
