# SPDX-License-Identifier: Apache-2.0
"""IKE daemons between x86-64 gateways in virtual time: they negotiate, and the kernel encrypts.

That two runs are the same is tested in test_x86_ike.py.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

import pytest

from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.proof import readiness
from espbench.measure.record import OfCase
from espbench.measure.trial import measure as measure_trial
from espbench.platforms.base import SIDES
from espbench.platforms.chance import Chance
from espbench.platforms.virtual.parts import guest
from espbench.platforms.virtual.parts.kits import X86_KIT
from espbench.platforms.virtual.parts.tools import Runner
from espbench.sentences import Code
from espbench.stacks.daemons import credentials
from espbench.terms import Trial
from espbench.this_machine.registry import Registry
from support.gateways.own_build import own_strongswan
from support.gateways.workshop import TRAFFIC, Workshop
from support.plans import pair_plan, write_plan
from support.runs import assert_complete, rows
from support.virtual.virtual_runs import Measured, build, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("x86")
    assert X86_KIT.find() is not None


def test_the_init_is_the_same_whatever_compiler_this_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every compiler on the PATH fails, and the folder is another."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("gcc", "cc", "as", "ld"):
        (programs / name).symlink_to("/bin/false")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    built = X86_KIT.require()
    with Registry(secrets.token_hex(3), tmp_path / "state") as registry:
        made = guest.build_x86(tmp_path, Runner(registry, tmp_path / "log", lambda line: None))
    assert made["initramfs.cpio"].read_bytes() == built.initramfs.read_bytes()


def measure(folder: Path, *stacks: Any, report: bool = False, resolution: str = "20%") -> Measured:
    """Trials as short as they can be, up to a load that every stack misses."""
    throughput = {
        "minimum": "4000fps", "maximum": "200000fps", "trial": "10ms", "final_trial": "20ms",
        "warm_up": "10ms", "resolution": resolution,
    }  # fmt: skip
    few = {"name": "daemons", "stacks": [*stacks], "suites": ["aes128gcm16"], "frame_sizes": [512]}
    plan = write_plan(folder, pair_plan("virt-x86", throughput=throughput, **few))
    return measured(plan, folder / "runs", report=report)


@pytest.fixture(scope="module")
def strongswan(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Measure it beside xfrm."""
    return measure(tmp_path_factory.mktemp("first"), "strongswan", "xfrm", report=True)


def test_what_charon_negotiated_costs_what_static_sas_cost(strongswan: Measured) -> None:
    """The same code of the kernel carries each frame."""
    assert_complete(strongswan.directory)
    rate = {row["stack"]: float(row["throughput_fps"]) for row in rows(strongswan.directory)}
    assert rate["strongswan"] == rate["xfrm"] < rate["plain"]
    spent = {}
    for stack in ("xfrm", "strongswan"):
        final = [trial for trial in strongswan.of(stack) if trial["phase"] == "final" and not trial["lost"]][
            -1
        ]
        spent[stack] = {side: final["gateways"][side]["cpu_us_per_frame"] for side in ("home", "office")}
    assert spent["strongswan"] == pytest.approx(spent["xfrm"], rel=0.02)


def test_every_frame_that_crossed_was_encrypted(strongswan: Measured) -> None:
    for trial in strongswan.of("strongswan"):
        assert trial["validity"] == "VALID"
        assert trial["proof"]["proven"], trial["proof"]
        if not trial["lost"]:
            home, office = trial["gateways"]["home"], trial["gateways"]["office"]
            assert home["encrypted_frames"] == office["decrypted_frames"] == trial["tx_frames"]


def test_the_context_says_what_negotiated_and_no_file_has_the_secret(
    strongswan: Measured,
) -> None:
    context = json.loads((strongswan.directory / "manifest.json").read_text())["contexts"][
        "strongswan-aes128gcm16-ipv4"
    ]
    assert context["home"]["daemon"].startswith("strongSwan 5.9")
    assert context["stack_version"]["home"] in (strongswan.directory / "report.html").read_text()
    assert context["keying"] == "IKEv2, PSK, of a seed"
    assert "strongswan.cpio sha256" in context["emulation"]["x86-userland"]
    # QEMU's digest is another where another compiler made it: it is told, beside what figures depend on.
    (qemu,) = context["emulator"]
    assert re.search(rf"{qemu} made of [0-9a-f]{{16}}\b", context["emulation"]["x86-qemu"])
    secret = credentials.make("psk", Chance())["home"].psk.encode()
    for file in strongswan.directory.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert secret not in data, file
            assert secret.hex().encode() not in data, file


KILL = ["sh", "-c", "kill -9 $(cat /run/espbench/strongswan/pid)"]


@pytest.mark.slow
def test_a_charon_that_dies_voids_the_trial_and_is_named(shop: Workshop) -> None:
    """The kernel carries every frame on with its SAs, so the frames do not show it.

    A death in mid-trial is one of the copy of the guests, which is forgotten. After one of the guest itself, the
    set-up is no longer what was asked for, and the mismatch names the gateway.
    """
    with shop.pair("strongswan", "aes128gcm16", dut="virt-x86") as (setup, _):
        assert setup.stack is not None
        readiness.establish(setup, TRAFFIC)
        home, office = (setup.bed.gateways[side] for side in SIDES)

        def kill() -> dict[str, Any]:
            office.run(KILL)
            return {}

        whole = measured_with(setup, [])
        assert (whole.validity, whole.lost) == ("VALID", 0)
        with pytest.raises(TrialBroken, match=r"^office: strongSwan has died") as died:
            measured_with(setup, [Action("killing", 0.05, kill, upsets=False)])
        assert died.value.code == Code.DAEMON_DIED
        again = measured_with(setup, [])
        assert again.gateways == whole.gateways
        assert setup.stack.security_context()["mismatches"] == []
        home.run(KILL)
        first, *_ = setup.stack.security_context()["mismatches"]
    assert first.startswith("home: charon does not answer: ")


def measured_with(setup: Setup, actions: list[Action]) -> Trial:
    """Make a short trial, in which this is done."""
    waits = Waits(learning_s=0.0, residue_s=0.05, settle_s=0.0)
    request = Request(1000.0, 0.2, "search")
    return measure_trial(setup, TRAFFIC, request, OfCase("test", 0, 0.01), waits, actions=actions)


@pytest.mark.slow
def test_a_build_of_the_users_negotiates_and_costs_what_debians_costs(
    strongswan: Measured, tmp_path: Path
) -> None:
    """Its image has Debian's programs with another version, which charon tells; no library is of this machine."""
    image = own_strongswan(tmp_path / "image")
    run = measure(tmp_path, {"stack": "strongswan", "label": "mine", "prefix": str(image)})
    trials, debians = run.of("mine"), strongswan.of("strongswan")
    assert all(trial["validity"] == "VALID" and trial["proof"]["proven"] for trial in trials)
    context = json.loads((run.directory / "manifest.json").read_text())["contexts"]["mine-aes128gcm16-ipv4"]
    assert re.fullmatch(
        r"strongSwan 7\.[\d.]+ \(own build [0-9a-f]{12}\)", context["stack_version"]["office"]
    )
    assert "libraries of this machine" not in context["emulation"]
    mine, of_debian = (
        [trial for trial in each if trial["phase"] == "final"][-1]["gateways"]["home"]["cpu_us_per_frame"]
        for each in (trials, debians)
    )
    assert mine == pytest.approx(of_debian, rel=0.01)


@pytest.mark.slow
def test_other_daemons_and_devices_carry_every_frame(tmp_path: Path) -> None:
    """Both daemons with each other, charon doing ESP itself; an XFRM interface and IP in IP by ip(8).

    libreswan at both ends is in test_x86_ike.py.
    """
    stacks: list[Any] = [
        {"home": "strongswan", "office": "libreswan"},
        "strongswan-libipsec",
        {"stack": "xfrm", "interface": True, "label": "xfrm-interface"},
        {"stack": "xfrm", "mode": "transport", "label": "xfrm-transport"},
    ]
    run = measure(tmp_path, *stacks, resolution="40%")
    assert_complete(run.directory)
    for name in ("strongswan-to-libreswan", "strongswan-libipsec", "xfrm-interface", "xfrm-transport"):
        trials = run.of(name)
        assert trials, name
        assert all(trial["validity"] == "VALID" and trial["proof"]["proven"] for trial in trials), name
    rate = {row["stack"]: float(row["throughput_fps"]) for row in rows(run.directory)}
    # Each frame goes to user space and back.
    assert rate["strongswan-libipsec"] < 0.6 * rate["strongswan-to-libreswan"]
